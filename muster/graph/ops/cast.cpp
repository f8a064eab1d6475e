#include "muster/graph/ops/array.h"
#include "muster/graph/ops/ops.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace cast_rows {

Types infer(const Signature& signature) {
  const DType to = signature.attributes.get("dtype", DType::float32);
  return std::vector<TensorType>{{to, signature.inputs[0].shape}};
}

std::vector<Value> gradient(const GradientQuery& query) {
  return {apply("cast", {query.output_gradients[0]}, {{"dtype", query.inputs[0].dtype()}})};
}

struct Settings {
  DType from = DType::float32;
  DType to = DType::float32;
  std::int64_t count = 0;
};

// Elements may lie in any order that the other dtype has too.
Prepared prepare(const Signature& signature) {
  const DType from = signature.inputs[0].dtype;
  const DType to = signature.outputs[0].dtype;
  const FormatPtr given = signature.formats.empty() ? nullptr : signature.formats[0];
  const FormatPtr made = given == nullptr ? nullptr : given->with_dtype(to);
  if (made == nullptr) return prepared(Settings{from, to, signature.outputs[0].shape.elements()});
  const std::size_t elements = given->size_bytes() / muster::size_bytes(from);
  Prepared in_order = prepared(Settings{from, to, static_cast<std::int64_t>(elements)});
  in_order.input_formats = {given};
  in_order.output_formats = {made};
  return in_order;
}

void run(const KernelCall& call) {
  const auto& [from, to, elements] = call.setting<Settings>();
  kernels::cast(call.inputs[0], from, call.outputs[0], to, elements, call.threads);
}

}  // namespace cast_rows
}  // namespace

namespace {
namespace cast_rows {

Result<> to_onnx(OnnxCall& call) {
  return call.give("Cast", {call.input()}, {{"to", onnx_dtype(call.out().type.dtype)}});
}

}  // namespace cast_rows
}  // namespace

const Op& cast_op() {
  using namespace cast_rows;
  static const Op op{
      .name = "cast",
      .documentation =
          "The same numbers as `dtype`. From floating to whole numbers rounds towards zero; what int32 (for "
          "uint32 and 64 bits int64) does not hold, and NaN, becomes its least number, and narrower dtypes "
          "take the low bits: -1 is 255 in uint8. To bool is x != 0.",
      .infer = infer,
      .gradient = gradient,
      .kernels = {for_any_dtype({"reference", any_signature, prepare, run})},
      .schema = {.inputs = {"x"},
                 .attributes = {{.name = "dtype", .otherwise = DType::float32, .required = true}},
                 .primitives = {{"Cast", {}, {"x", "dtype"}}}},
      .onnx = to_onnx,
      .dimensions = elementwise,
  };
  return op;
}

std::vector<const Op*> rows_of_cast() { return {&cast_op()}; }

}  // namespace muster::graph
