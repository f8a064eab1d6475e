// clip and select: choosing element by element.
#include <limits>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace select_rows {

kernels::ClipBounds bounds_of(const Attributes& attributes) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {attributes.get("min", -infinity), attributes.get("max", infinity)};
}

Types infer_clip(const Signature& signature) {
  MUSTER_TRY_VOID(require_number("clip", signature.inputs[0]));
  return same_as_first(signature);
}

std::vector<Value> gradient_clip(const GradientQuery& query) {
  const auto [low, high] = bounds_of(query.attributes);
  const Value& x = query.inputs[0];
  const Value inside = apply("logical_and", {apply("greater_equal", {x, scalar_like(x, low)}),
                                             apply("less_equal", {x, scalar_like(x, high)})});
  return {where(inside, query.output_gradients[0])};
}

struct ClipSettings {
  kernels::ClipBounds bounds;
  Elements elements;
};

Prepared prepare_clip(const Signature& signature) {
  return prepared(ClipSettings{bounds_of(signature.attributes),
                               {signature.inputs[0].dtype, signature.inputs[0].shape.elements()}});
}

void run_clip(const KernelCall& call) {
  const auto& [bounds, elements] = call.setting<ClipSettings>();
  kernels::clip(bounds, elements.dtype, call.inputs[0], call.outputs[0], elements.count, call.threads);
}

Types infer_select(const Signature& signature) {
  const TensorType& condition = signature.inputs[0];
  const TensorType& a = signature.inputs[1];
  const TensorType& b = signature.inputs[2];
  if (condition.dtype != DType::bool_)
    return bad("select: the condition must be bool, not {}", muster::to_string(condition.dtype));
  if (a.dtype != b.dtype)
    return bad("select: {} and {} differ in dtype: cast one of them", to_string(a), to_string(b));
  const auto both = broadcast_shape(a.shape, b.shape);
  const auto all = both ? broadcast_shape(condition.shape, *both) : std::nullopt;
  if (!all)
    return bad("select: {}, {} and {} do not fit together", muster::to_string(condition.shape),
               muster::to_string(a.shape), muster::to_string(b.shape));
  return std::vector<TensorType>{{a.dtype, *all}};
}

std::vector<Value> gradient_select(const GradientQuery& query) {
  const Value& condition = query.inputs[0];
  const Value& g = query.output_gradients[0];
  const Value zero = scalar_like(g, 0);
  return {Value(), summed_like(apply("select", {condition, g, zero}), query.inputs[1]),
          summed_like(apply("select", {condition, zero, g}), query.inputs[2])};
}

struct SelectSettings {
  std::size_t size_bytes = 0;
  kernels::BroadcastLoops loops;
};

Prepared prepare_select(const Signature& signature) {
  const Shape operands[] = {signature.inputs[0].shape, signature.inputs[1].shape, signature.inputs[2].shape};
  return prepared(SelectSettings{size_bytes(signature.inputs[1].dtype),
                                 kernels::broadcast_loops(signature.outputs[0].shape, operands)});
}

void run_select(const KernelCall& call) {
  const auto& [size_bytes, loops] = call.setting<SelectSettings>();
  kernels::select(
      size_bytes, loops,
      {.condition = call.input<bool>(0), .a = call.inputs[1], .b = call.inputs[2], .out = call.outputs[0]},
      call.threads);
}

}  // namespace select_rows
}  // namespace

namespace {
namespace select_rows {

Result<> onnx_clip(OnnxCall& call) {
  const DType dtype = call.in().type.dtype;
  const auto bound = [&](std::string_view name) {
    const Attribute* found = call.attributes().find(name);
    return found == nullptr ? std::string() : call.scalar(std::get<double>(*found), dtype);
  };
  const std::string low = bound("min");
  return call.give("Clip", {call.input(), low, bound("max")});
}

}  // namespace select_rows
}  // namespace

const Op& clip_op() {
  using namespace select_rows;
  static const Op op{
      .name = "clip",
      .documentation =
          "x, but not below `min` nor above `max`, which may both be left out; NaN stays. x of any shape, "
          "float32, float64, int32 or int64; y like x. The gradient flows where min <= x <= max. If min "
          "is above max, every element becomes max.",
      .infer = infer_clip,
      .gradient = gradient_clip,
      .kernels = {taking(arithmetic_and_bfloat16, {"reference", any_signature, prepare_clip, run_clip})},
      .sharing = Sharing::reuse,
      .schema = {.inputs = {"x"},
                 .attributes = {{.name = "min", .otherwise = 0.0, .optional = true},
                                {.name = "max", .otherwise = 0.0, .optional = true}},
                 .methods = {{"clip"}}},
      .onnx = onnx_clip,
      .dimensions = elementwise,
  };
  return op;
}

const Op& select_op() {
  using namespace select_rows;
  static const Op op{
      .name = "select",
      .documentation =
          "a where the condition (bool) is true, else b; the three shapes broadcast, a and b have one dtype, "
          "whichever.",
      .inputs_min = 3,
      .inputs_max = 3,
      .infer = infer_select,
      .gradient = gradient_select,
      .kernels = {for_any_dtype({"reference", any_signature, prepare_select, run_select})},
      .schema = {.inputs = {"condition", "a", "b"},
                 .promotion = Promotion::common_choice,
                 .mindspore = {{"select", {"condition", "input", "other"}},
                               {"where", {"condition", "input", "other"}}},
                 .primitives = {{"Select"}}},
      .onnx = onnx_as<"Where">,
      .dimensions = elementwise,
  };
  return op;
}

std::vector<const Op*> rows_of_select() { return {&clip_op(), &select_op()}; }

}  // namespace muster::graph
