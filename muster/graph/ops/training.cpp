#include "muster/graph/ops/training.h"

#include <utility>

#include "muster/graph/ops/ops.h"

namespace muster::graph {

Result<> require_alike(std::string_view op, std::string_view what, const TensorType& given,
                       const TensorType& wanted) {
  if (given == wanted) return {};
  return bad("{}: the {} must be {}, not {}", op, what, to_string(wanted), to_string(given));
}

Result<> require_update(std::string_view op, const Signature& signature,
                        std::initializer_list<std::string_view> states) {
  const TensorType& parameter = signature.inputs[0];
  MUSTER_TRY_VOID(require_floating(op, parameter));
  MUSTER_TRY_VOID(require_alike(op, "gradient", signature.inputs[1], parameter));
  MUSTER_TRY_VOID(require_alike(op, "learning rate", signature.inputs[2], {DType::float32, {}}));
  std::size_t index = 3;
  for (const std::string_view state : states)
    MUSTER_TRY_VOID(require_alike(op, state, signature.inputs[index++], parameter));
  return {};
}

kernels::UpdateScale scale_of(const Attributes& attributes) {
  return {.gradient_scale = 1 / attributes.get("loss_scale", 1.0),
          .weight_decay = attributes.get("weight_decay", 0.0)};
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
