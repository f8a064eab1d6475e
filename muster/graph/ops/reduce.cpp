// reduce_sum, reduce_mean and sum_to.
#include <algorithm>

#include "muster/graph/ops/array.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {

// The axes that are summed: all when none is named. Negative ones count from the end.
Result<std::vector<bool>> summed_axes(std::string_view op, const Signature& signature) {
  const Shape& shape = signature.inputs[0].shape;
  const auto axes = signature.attributes.get("axes", std::vector<std::int64_t>{});
  std::vector<bool> summed(shape.rank(), axes.empty());
  for (const std::int64_t axis : axes) {
    const auto rank = static_cast<std::int64_t>(shape.rank());
    const std::int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) return bad("{}: {} has no axis {}", op, muster::to_string(shape), axis);
    summed[static_cast<std::size_t>(at)] = true;
  }
  return summed;
}

// The shape with summed axes kept as 1.
Shape kept(const Shape& shape, const std::vector<bool>& summed) {
  Shape result = shape;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if (summed[axis]) result[axis] = 1;
  return result;
}

Types infer_reduce(std::string_view op, const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY_VOID(require_floating(op, x));
  MUSTER_TRY(const std::vector<bool> summed, summed_axes(op, signature));
  if (signature.attributes.get("keep_dims", false))
    return std::vector<TensorType>{{x.dtype, kept(x.shape, summed)}};
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 0; axis < x.shape.rank(); ++axis)
    if (!summed[axis]) sizes.push_back(x.shape[axis]);
  return std::vector<TensorType>{{x.dtype, Shape(std::move(sizes))}};
}

Types infer_sum(const Signature& signature) { return infer_reduce("reduce_sum", signature); }
Types infer_mean(const Signature& signature) { return infer_reduce("reduce_mean", signature); }

Value scaled(const Value& x, double factor) {
  return apply("mul",
               {x, apply("fill", std::span<const Value>{},
                         {{"dtype", x.dtype()}, {"shape", std::vector<std::int64_t>{}}, {"value", factor}})});
}

// How many elements become one.
double ratio(const TensorType& in, const TensorType& out) {
  return static_cast<double>(in.shape.elements()) /
         static_cast<double>(std::max<std::int64_t>(out.shape.elements(), 1));
}

std::vector<Value> gradient_sum(const GradientQuery& query) {
  const Value& x = query.inputs[0];
  const Value& g = query.output_gradients[0];
  const auto summed = summed_axes("reduce_sum", {std::span(&x.type(), 1), {}, query.attributes});
  const Value spread = apply("reshape", {g}, {{"shape", kept(x.shape(), *summed).sizes()}});
  return {apply("broadcast_to", {spread}, {{"shape", x.shape().sizes()}})};
}

std::vector<Value> gradient_mean(const GradientQuery& query) {
  std::vector<Value> gradients = gradient_sum(query);
  return {scaled(gradients[0], 1 / ratio(query.inputs[0].type(), query.outputs[0].type()))};
}

struct Settings {
  Shape in, out;
  std::int64_t count = 0;
  double scale = 1;
};

template <bool mean>
Prepared prepare_reduce(const Signature& signature) {
  const TensorType& in = signature.inputs[0];
  const TensorType& out = signature.outputs[0];
  const auto summed = summed_axes("reduce", signature);
  return prepared(
      Settings{in.shape, kept(in.shape, *summed), in.shape.elements(), mean ? 1 / ratio(in, out) : 1});
}

Prepared prepare_shapes(const Signature& signature) {
  return prepared(Settings{signature.inputs[0].shape, signature.outputs[0].shape,
                           signature.outputs[0].shape.elements(), 1});
}

template <class T>
bool usable_all(const Signature& signature) {
  return first_is<T>(signature) && signature.outputs[0].shape.elements() == 1;
}

template <class T>
void run_all(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  kernels::sum_all(call.input<T>(0), call.output<T>(), settings.count, settings.scale);
}

template <class T>
void run_to(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  kernels::sum_to(call.input<T>(0), settings.in, call.output<T>(), settings.out);
  const std::int64_t out_count = settings.out.elements();
  if (settings.scale != 1)
    for (std::int64_t i = 0; i < out_count; ++i) call.output<T>()[i] *= static_cast<T>(settings.scale);
}

template <bool mean>
std::vector<Kernel> reduce_kernels() {
  return {{"all", usable_all<float>, prepare_reduce<mean>, run_all<float>},
          {"all", usable_all<double>, prepare_reduce<mean>, run_all<double>},
          reference<float>(prepare_reduce<mean>, run_to<float>),
          reference<double>(prepare_reduce<mean>, run_to<double>)};
}

Shape wanted_shape(const Signature& signature) {
  return Shape(signature.attributes.get("shape", std::vector<std::int64_t>{}));
}

Types infer_sum_to(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const Shape shape = wanted_shape(signature);
  MUSTER_TRY_VOID(require_floating("sum_to", x));
  if (!broadcasts_to(shape, x.shape))
    return bad("sum_to: {} cannot be summed to {}", muster::to_string(x.shape), muster::to_string(shape));
  return std::vector<TensorType>{{x.dtype, shape}};
}

std::vector<Value> gradient_sum_to(const GradientQuery& query) {
  return {apply("broadcast_to", {query.output_gradients[0]}, {{"shape", query.inputs[0].shape().sizes()}})};
}

// All leading axes go: the gradient of a bias.
template <class T>
bool usable_rows(const Signature& signature) {
  const Shape& out = signature.outputs[0].shape;
  const Shape& in = signature.inputs[0].shape;
  return first_is<T>(signature) && out.rank() == 1 && in.rank() >= 1 && in.sizes().back() == out[0];
}

template <class T>
void run_rows(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  const std::int64_t columns = settings.out.elements();
  const std::int64_t rows = columns == 0 ? 0 : settings.in.elements() / columns;
  kernels::sum_rows(call.input<T>(0), call.output<T>(), rows, columns);
}

}  // namespace

const Op& reduce_sum_op() {
  static const Op op{
      .name = "reduce_sum",
      .documentation =
          "The sum over `axes` (all when empty); summed axes stay as 1 with keep_dims. Sums of all "
          "elements run in double.",
      .infer = infer_sum,
      .gradient = gradient_sum,
      .kernels = reduce_kernels<false>(),
  };
  return op;
}

const Op& reduce_mean_op() {
  static const Op op{
      .name = "reduce_mean",
      .documentation = "The mean over `axes` (all when empty); averaged axes stay as 1 with keep_dims.",
      .infer = infer_mean,
      .gradient = gradient_mean,
      .kernels = reduce_kernels<true>(),
  };
  return op;
}

const Op& sum_to_op() {
  static const Op op{
      .name = "sum_to",
      .documentation = "The sum that undoes broadcasting from `shape`.",
      .infer = infer_sum_to,
      .gradient = gradient_sum_to,
      .kernels = {{"rows", usable_rows<float>, prepare_shapes, run_rows<float>},
                  {"rows", usable_rows<double>, prepare_shapes, run_rows<double>},
                  reference<float>(prepare_shapes, run_to<float>),
                  reference<double>(prepare_shapes, run_to<double>)},
  };
  return op;
}

}  // namespace muster::graph
