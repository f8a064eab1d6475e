// Rotary positions.
#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace rotary_rows {

Types infer(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const TensorType& cos = signature.inputs[1];
  const TensorType& sin = signature.inputs[2];
  MUSTER_TRY_VOID(require_floating("rotary", x));
  if (x.shape.rank() == 0 || x.shape[x.shape.rank() - 1] % 2 != 0)
    return bad("rotary: the last axis of x must have an even size, not {}", to_string(x));
  const DType dtype = statistics_dtype(x.dtype);
  if (cos != sin || cos.dtype != dtype)
    return bad("rotary: cos and sin must be {} of one shape, not {} and {}", muster::to_string(dtype),
               to_string(cos), to_string(sin));
  const bool is_whole =
      cos.shape.rank() > 0 && cos.shape[cos.shape.rank() - 1] == x.shape[x.shape.rank() - 1];
  if (!is_whole || broadcast_shape(x.shape, cos.shape) != x.shape)
    return bad("rotary: cos and sin must have the last size of x {} and broadcast to it, not {}",
               to_string(x), to_string(cos));
  return std::vector<TensorType>{x};
}

Value turned(const Value& x, const Value& cos, const Value& sin, bool adjoint) {
  return apply("rotary", {x, cos, sin}, {{"adjoint", adjoint}});
}

// y = x cos + R x sin, where R takes (a, b) to (-b, a); adjoint y = x cos + R' (x sin).
std::vector<Value> gradient(const GradientQuery& query) {
  const Value& x = query.inputs[0];
  const Value& cos = query.inputs[1];
  const Value& sin = query.inputs[2];
  const Value& dy = query.output_gradients[0];
  const bool adjoint = query.attributes.get("adjoint", false);
  const auto to_table = [&](const Value& by_element) {
    const Value wide = by_element.dtype() == cos.dtype()
                           ? by_element
                           : apply("cast", {by_element}, {{"dtype", cos.dtype()}});
    return apply("sum_to", {wide}, {{"shape", cos.shape().sizes()}});
  };
  const Value& what_turns = adjoint ? dy : x;
  const Value quarter = turned(what_turns, filled_like(cos, 0), filled_like(sin, 1), false);
  return {turned(dy, cos, sin, !adjoint), to_table(times(dy, x)), to_table(times(adjoint ? x : dy, quarter))};
}

struct Settings {
  DType dtype = DType::float32;
  kernels::RotarySize size;
};

Prepared prepare(const Signature& signature) {
  const Shape& x = signature.inputs[0].shape;
  const Shape& table = signature.inputs[1].shape;
  const std::size_t rows = x.rank() - 1, added = x.rank() - table.rank();
  kernels::RotarySize size{.rows = 1,
                           .depth = x[rows],
                           .sizes = {x.begin(), x.begin() + static_cast<std::ptrdiff_t>(rows)},
                           .table_steps = std::vector<std::int64_t>(rows, 0),
                           .adjoint = signature.attributes.get("adjoint", false)};
  std::int64_t step = 1;
  for (std::size_t axis = rows; axis-- > 0;) {
    size.rows *= x[axis];
    if (axis < added || table[axis - added] == 1) continue;
    size.table_steps[axis] = step;
    step *= table[axis - added];
  }
  return prepared(Settings{signature.inputs[0].dtype, std::move(size)});
}

void run(const KernelCall& call) {
  const auto& [dtype, size] = call.setting<Settings>();
  kernels::rotary(size, dtype, call.inputs[0], call.inputs[1], call.inputs[2], call.outputs[0], call.threads);
}

// x cos + (-b, a) sin.
Result<> to_onnx(OnnxCall& call) {
  if (call.attributes().get("adjoint", false)) return call.refuse("it belongs to a gradient");
  if (call.in().type.dtype != call.in(1).type.dtype)
    return call.refuse("x and its tables differ in dtype: export it in float32");
  const Shape& x = call.in().type.shape;
  const std::int64_t depth = x[x.rank() - 1];
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return call.make("Slice", {call.input(), call.list({begin}), call.list({end}), call.list({-1})});
  };
  const std::string second = call.make("Neg", {part(depth / 2, depth)});
  const std::string turned = call.make("Concat", {second, part(0, depth / 2)}, {{"axis", std::int64_t{-1}}});
  return call.give(
      "Add", {call.make("Mul", {call.input(), call.input(1)}), call.make("Mul", {turned, call.input(2)})});
}

// As the elements of a table and of x meet, but for the last axis.
void dimensions(DimensionMap& map) {
  map.align();
  for (std::vector<DimensionMap::Labels>* all : {&map.of_inputs, &map.of_outputs})
    for (DimensionMap::Labels& labels : *all) labels.back() = DimensionMap::whole;
}

}  // namespace rotary_rows
}  // namespace

const Op& rotary_op() {
  using namespace rotary_rows;
  static const Op op{
      .name = "rotary",
      .documentation =
          "Rotary positions: with the last axis of x as two halves (a, b), y = x cos + (-b, a) sin; with "
          "`adjoint` the transposed matrix of it, which is its gradient by x. cos and sin have the last size "
          "of x and broadcast to it: (tokens, depth) for x (samples, heads, tokens, depth). float32 or "
          "float64, or x and y bfloat16 and cos and sin float32. Source: Su, Lu, Pan, Murtadha, Wen, Liu, "
          "RoFormer, arXiv 2104.09864.",
      .inputs_min = 3,
      .inputs_max = 3,
      .infer = infer,
      .gradient = gradient,
      .kernels = {with_bfloat16({"reference", any_signature, prepare, run})},
      .mixes = true,
      .schema = {.inputs = {"x", "cos", "sin"}, .attributes = {{.name = "adjoint", .otherwise = false}}},
      .onnx = to_onnx,
      .dimensions = dimensions,
  };
  return op;
}

std::vector<const Op*> rows_of_rotary() { return {&rotary_op()}; }

}  // namespace muster::graph
