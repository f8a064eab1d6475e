#include <numeric>

#include "muster/graph/ops/array.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace one_hot_rows {

// The place of the new axis: -1 is behind the last.
Result<std::size_t> new_axis(const Attributes& attributes, const Shape& indices) {
  const std::int64_t axis = attributes.get("axis", std::int64_t{-1});
  const auto places = static_cast<std::int64_t>(indices.rank()) + 1;
  if (axis < -places || axis >= places)
    return bad("one_hot: indices {} have no place for a new axis {}", muster::to_string(indices), axis);
  return static_cast<std::size_t>(axis < 0 ? axis + places : axis);
}

Types infer(const Signature& signature) {
  const TensorType& indices = signature.inputs[0];
  const TensorType& on = signature.inputs[1];
  const TensorType& off = signature.inputs[2];
  if (!is_index(indices.dtype))
    return bad("one_hot: the indices must be int32 or int64, not {}", muster::to_string(indices.dtype));
  if (on != off || on.shape.rank() != 0)
    return bad("one_hot: the on and off values must be scalars of one dtype, not {} and {}", to_string(on),
               to_string(off));
  const std::int64_t depth = signature.attributes.get("depth", std::int64_t{0});
  if (depth < 0) return bad("one_hot: the depth {} is negative", depth);
  MUSTER_TRY(const std::size_t axis, new_axis(signature.attributes, indices.shape));
  Sizes sizes = indices.shape.sizes();
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  return std::vector<TensorType>{{on.dtype, Shape(std::move(sizes))}};
}

Value scalar(DType dtype, double value) {
  return apply("fill", std::span<const Value>{}, {{"dtype", dtype}, {"shape", Sizes{}}, {"value", value}});
}

// Each value gets the sum of the gradients at its places.
std::vector<Value> gradient(const GradientQuery& query) {
  const Value& g = query.output_gradients[0];
  const auto sum_where = [&](double on, double off) {
    const Value mask =
        apply("one_hot", {query.inputs[0], scalar(g.dtype(), on), scalar(g.dtype(), off)}, query.attributes);
    return summed_like(apply("mul", {g, mask}), query.inputs[1]);
  };
  return {Value(), sum_where(1, 0), sum_where(0, 1)};
}

struct Settings {
  kernels::OneHotSize size;
  std::size_t element_bytes = 0;
};

Prepared prepare(const Signature& signature) {
  const Shape& indices = signature.inputs[0].shape;
  const auto axis = new_axis(signature.attributes, indices);
  const TensorType& out = signature.outputs[0];
  return prepared(Settings{.size = {.outer = elements_between(indices, 0, *axis),
                                    .depth = out.shape[*axis],
                                    .inner = elements_between(indices, *axis, indices.rank())},
                           .element_bytes = size_bytes(out.dtype)});
}

template <class I>
void run(const KernelCall& call) {
  const auto& [size, element_bytes] = call.setting<Settings>();
  kernels::one_hot(size, call.input<I>(0), call.inputs[1], call.inputs[2], call.outputs[0], element_bytes);
}

// By comparing with each class: runtimes have ONNX's OneHot for few dtypes only, and it counts negative
// indices from the end.
Result<> to_onnx(OnnxCall& call) {
  const OnnxCall::End& indices = call.in();
  MUSTER_TRY(const std::size_t axis, new_axis(call.attributes(), indices.type.shape));
  const std::int64_t depth = call.out().type.shape[axis];
  Sizes sizes(call.out().type.shape.rank() - axis, 1);
  sizes.front() = depth;
  Tensor classes(DType::int64, Shape{std::move(sizes)});
  std::iota(classes.span<std::int64_t>().begin(), classes.span<std::int64_t>().end(), 0);
  const std::string index =
      indices.type.dtype == DType::int64 ? call.input() : call.cast(call.input(), DType::int64);
  const std::string beside = call.make("Unsqueeze", {index, call.list({static_cast<std::int64_t>(axis)})});
  return call.give("Where",
                   {call.make("Equal", {beside, call.constant(classes)}), call.input(1), call.input(2)});
}

}  // namespace one_hot_rows
}  // namespace

const Op& one_hot_op() {
  using namespace one_hot_rows;
  static const Op op{
      .name = "one_hot",
      .documentation =
          "one_hot(indices, on, off): a new axis of `depth` at `axis` (-1: the last), `on` at the index and "
          "`off` elsewhere; an index that is not in [0, depth) gives `off` everywhere. Indices int32 or "
          "int64, on and off scalars of the output's dtype, which is any.",
      .inputs_min = 3,
      .inputs_max = 3,
      .infer = infer,
      .gradient = gradient,
      .kernels = {for_any_dtype(reference<std::int32_t>(prepare, run<std::int32_t>)),
                  for_any_dtype(reference<std::int64_t>(prepare, run<std::int64_t>))},
      .onnx = to_onnx,
      .dimensions = one_hot_dimensions,
  };
  return op;
}

std::vector<const Op*> rows_of_one_hot() { return {&one_hot_op()}; }

}  // namespace muster::graph
