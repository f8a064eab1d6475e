#include "muster/graph/ops/primitive.h"

#include <algorithm>
#include <vector>

namespace muster::graph {

Prepared prepared(const PrimitivePtr& primitive) {
  if (primitive == nullptr) return {.settings = nullptr, .declined = true};
  return {.settings = primitive,
          .scratch_bytes = primitive->scratch_bytes,
          .input_formats = primitive->input_formats,
          .output_formats = primitive->output_formats};
}

void run_primitive(const KernelCall& call) {
  if (call.setting<Primitive>().run(call.inputs, call.outputs, call.scratch, call.threads)) return;
  *call.failure = Error{Code::internal, "a kernel of the primitive library failed"};
}

bool primitives_available() { return primitive_library() != nullptr; }

PrimitiveSetting setting_of(const Signature& signature) {
  return {.dtype = signature.inputs[0].dtype,
          .result = signature.outputs[0].dtype,
          .formats = signature.formats,
          .free = !signature.formats.empty(),
          .threads = signature.threads};
}

const PrimitiveLibrary& library_of(const FormatPtr& from, const FormatPtr& to) {
  if (is_batch_blocked(from) || is_batch_blocked(to)) return batch_blocked_library();
  const PrimitiveLibrary* const loaded = primitive_library();
  MUSTER_CHECK(loaded != nullptr, "a value has a format, but no library made it");
  return *loaded;
}

Prepared prepare_loaded(MakePrimitive make, const Signature& signature) {
  std::vector<FormatPtr> known(signature.formats.begin(), signature.formats.end());
  for (FormatPtr& format : known)
    if (is_batch_blocked(format)) format = nullptr;
  const Signature seen{signature.inputs, signature.outputs, signature.attributes, known, signature.threads};
  return prepared(make(*primitive_library(), seen));
}

namespace {

bool have_elements(const Signature& signature) {
  return std::all_of(signature.inputs.begin(), signature.inputs.end(),
                     [](const TensorType& type) { return type.shape.elements() > 0; });
}

}  // namespace

bool is_float32_with_elements(const Signature& signature) {
  return signature.inputs[0].dtype == DType::float32 && have_elements(signature);
}

bool suits_primitives(const Signature& signature) {
  const DType dtype = signature.inputs[0].dtype;
  return (dtype == DType::float32 || dtype == DType::bfloat16) && have_elements(signature) &&
         primitives_available();
}

}  // namespace muster::graph
