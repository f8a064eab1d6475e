#include "muster/graph/ops/training.h"

#include <utility>

#include "muster/graph/ops/ops.h"

namespace muster::graph {

Result<> require_alike(std::string_view op, std::string_view what, const TensorType& given,
                       const TensorType& wanted) {
  if (given == wanted) return {};
  return bad("{}: the {} must be {}, not {}", op, what, to_string(wanted), to_string(given));
}

Prepared in_order_of_parameter(Prepared made, const Signature& signature) {
  const FormatPtr format = signature.formats.empty() ? nullptr : signature.formats[0];
  if (format == nullptr) return made;
  for (const TensorType& type : signature.inputs)
    made.input_formats.push_back(type == signature.inputs[0] ? format : nullptr);
  made.output_formats = {format};
  return made;
}

Kernel in_parts(Kernel kernel, RunPart run_part, void (*finish)(const KernelCall&)) {
  kernel.run_part = run_part;
  kernel.finish = finish;
  return kernel;
}

}  // namespace muster::graph
