#include "muster/graph/ops/primitive.h"

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
          .formats = signature.formats,
          .free = !signature.formats.empty(),
          .threads = signature.threads};
}

bool suits_primitives(const Signature& signature) {
  if (signature.inputs[0].dtype != DType::float32) return false;
  for (const TensorType& type : signature.inputs)
    if (type.shape.elements() == 0) return false;
  return primitives_available();
}

}  // namespace muster::graph
