#include <array>

#include "muster/graph/ops/ops.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace fill_rows {

Types infer(const Signature& signature) {
  const Shape shape(signature.attributes.get("shape", std::vector<std::int64_t>{}));
  for (const std::int64_t size : shape)
    if (size < 0) return bad("fill: {} has a negative size", muster::to_string(shape));
  return std::vector<TensorType>{{signature.attributes.get("dtype", DType::float32), shape}};
}

struct Settings {
  std::array<std::byte, 8> element{};
  std::size_t element_bytes = 0;
  std::int64_t count = 0;
};

Prepared prepare(const Signature& signature) {
  const TensorType& out = signature.outputs[0];
  Settings settings{.element_bytes = size_bytes(out.dtype), .count = out.shape.elements()};
  const double value = signature.attributes.get("value", 0.0);
  kernels::cast(&value, DType::float64, settings.element.data(), out.dtype, 1);
  return prepared(settings);
}

void run(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  kernels::fill_elements(settings.element.data(), settings.element_bytes, call.outputs[0], settings.count);
}

Result<> to_onnx(OnnxCall& call) {
  const DType dtype = call.out().type.dtype;
  Tensor value(dtype, Shape{1});
  const double number = call.attributes().get("value", 0.0);
  kernels::cast(&number, DType::float64, value.bytes(), dtype, 1);
  MUSTER_TRY(const std::string shape, call.shape_of(call.out()));
  return call.give("ConstantOfShape", {shape}, {{"value", value}});
}

}  // namespace fill_rows
}  // namespace

const Op& fill_op() {
  using namespace fill_rows;
  static const Op op{
      .name = "fill",
      .documentation = "A tensor of `dtype` and `shape` full of `value`.",
      .inputs_min = 0,
      .inputs_max = 0,
      .infer = infer,
      .kernels = {taking(DTypes::all(), {"reference", any_signature, prepare, run})},
      .onnx = to_onnx,
  };
  return op;
}

std::vector<const Op*> rows_of_fill() { return {&fill_op()}; }

}  // namespace muster::graph
