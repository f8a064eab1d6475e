// Root mean square normalization.
#include <cmath>

#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace rms_norm_rows {

// x with the axes of gamma, its last ones, as 1.
Shape statistics_shape(const Shape& x, const Shape& gamma) {
  Shape made = x;
  for (std::size_t axis = x.rank() - gamma.rank(); axis < x.rank(); ++axis) made[axis] = 1;
  return made;
}

Types infer(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const TensorType& gamma = signature.inputs[1];
  MUSTER_TRY_VOID(require_floating("rms_norm", x));
  const std::size_t rank = gamma.shape.rank();
  const bool ends_with =
      rank > 0 && rank <= x.shape.rank() &&
      std::equal(gamma.shape.begin(), gamma.shape.end(), x.shape.end() - static_cast<std::ptrdiff_t>(rank));
  const DType dtype = statistics_dtype(x.dtype);
  if (!ends_with || gamma.dtype != dtype)
    return bad("rms_norm: gamma must be {} with the last sizes of x {}, not {}", muster::to_string(dtype),
               to_string(x), to_string(gamma));
  return std::vector<TensorType>{x, {dtype, statistics_shape(x.shape, gamma.shape)}};
}

Value in_dtype(const Value& x, DType dtype) {
  return x.dtype() == dtype ? x : apply("cast", {x}, {{"dtype", dtype}});
}

// With n = x rstd: dx = rstd (a - n mean(a n)) for a = dy gamma, dgamma = the sum of dy n; the gradient of
// rstd itself goes on as -rstd^2 n / columns.
std::vector<Value> gradient(const GradientQuery& query) {
  const Value& gamma = query.inputs[1];
  const Value& rstd = query.outputs[1];
  const DType given = query.inputs[0].dtype();
  const Value x = in_dtype(query.inputs[0], rstd.dtype());
  const Value n = times(x, rstd);
  const double columns = static_cast<double>(gamma.shape().elements());
  std::vector<std::int64_t> axes;
  for (std::size_t i = 1; i <= gamma.shape().rank(); ++i) axes.push_back(-static_cast<std::int64_t>(i));
  Value dx, dgamma;
  if (query.output_gradients[0].defined()) {
    const Value dy = in_dtype(query.output_gradients[0], rstd.dtype());
    const Value a = times(dy, gamma);
    const Value along = apply("reduce_mean", {times(a, n)}, {{"axes", axes}, {"keep_dims", true}});
    dx = times(minus(a, times(n, along)), rstd);
    dgamma = apply("sum_to", {times(dy, n)}, {{"shape", gamma.shape().sizes()}});
  }
  if (const Value& drstd = query.output_gradients[1]; drstd.defined()) {
    const Value part = times(times(times(drstd, apply("square", {rstd})), -1 / columns), n);
    dx = dx.defined() ? plus(dx, part) : part;
  }
  return {dx.defined() ? in_dtype(dx, given) : dx, dgamma};
}

struct Settings {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  double epsilon = 0;
};

Prepared prepare(const Signature& signature) {
  const Shape& gamma = signature.inputs[1].shape;
  return prepared(Settings{.rows = signature.outputs[1].shape.elements(),
                           .columns = gamma.elements(),
                           .epsilon = signature.attributes.get("epsilon", 1e-6)});
}

template <class T>
void run(const KernelCall& call) {
  const auto& [rows, columns, epsilon] = call.setting<Settings>();
  const T* gamma = call.input<T>(1);
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* x = call.input<T>(0) + row * columns;
    T* y = call.output<T>(0) + row * columns;
    double squares = 0;
    for (std::int64_t i = 0; i < columns; ++i)
      squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
    call.output<T>(1)[row] = static_cast<T>(rstd);
    for (std::int64_t i = 0; i < columns; ++i)
      y[i] = static_cast<T>(static_cast<double>(x[i]) * rstd) * gamma[i];
  }
}

namespace {

// x rstd gamma; rstd is the second output.
Result<> to_onnx(OnnxCall& call) {
  const DType dtype = call.in().type.dtype;
  if (dtype != call.in(1).type.dtype) return call.refuse("x and gamma differ in dtype: export it in float32");
  std::vector<std::int64_t> axes;
  for (std::size_t i = call.in(1).type.shape.rank(); i > 0; --i)
    axes.push_back(-static_cast<std::int64_t>(i));
  const std::string square = call.make("Mul", {call.input(), call.input()});
  const std::string mean = call.make("ReduceMean", {square}, {{"axes", axes}, {"keepdims", std::int64_t{1}}});
  const std::string epsilon = call.scalar(call.attributes().get("epsilon", 1e-6), dtype);
  const std::string root = call.make("Sqrt", {call.make("Add", {mean, epsilon})});
  return call.give("Mul", {call.make("Div", {call.input(), root}), call.input(1)});
}

}  // namespace
}  // namespace rms_norm_rows

const Op& rms_norm_op() {
  using namespace rms_norm_rows;
  static const Op op{
      .name = "rms_norm",
      .documentation =
          "(y, rstd): y = x rstd gamma with rstd = 1 / sqrt(mean(x^2) + epsilon) over the axes of gamma, "
          "which has the last sizes of x; in rstd those axes are 1. float32 or float64, or x and y bfloat16 "
          "and gamma and rstd float32; sums in double. Source: Zhang, Sennrich, Root mean square layer "
          "normalization, arXiv 1910.07467.",
      .inputs_min = 2,
      .inputs_max = 2,
      .outputs = 2,
      .infer = infer,
      .gradient = gradient,
      .kernels = {reference<float>(prepare, run<float>), reference<double>(prepare, run<double>)},
      .precision = MixedPrecision::full,
      .mixes = true,
      .schema = {.inputs = {"x", "gamma"},
                 .attributes = {{.name = "epsilon", .otherwise = 1e-6, .range = {.min = 0}}},
                 .results = 2,
                 .methods = {{"rms_norm"}},
                 .mindspore = {{"rms_norm"}},
                 .primitives = {{"RmsNorm", {"epsilon"}}}},
      .onnx = to_onnx,
      .dimensions = rms_norm_dimensions,
  };
  return op;
}

}  // namespace

std::vector<const Op*> rows_of_rms_norm() { return {&rms_norm_op()}; }

}  // namespace muster::graph
