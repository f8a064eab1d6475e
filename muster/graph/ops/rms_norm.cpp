// Root mean square normalization.
#include <algorithm>
#include <optional>

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

// Of x and gamma, which the op `name` has at `at` and the place behind it.
Result<> require_norm(std::string_view name, const Signature& signature, std::size_t at) {
  const TensorType& x = signature.inputs[at];
  const TensorType& gamma = signature.inputs[at + 1];
  MUSTER_TRY_VOID(require_floating(name, x));
  const std::size_t rank = gamma.shape.rank();
  const bool ends_with =
      rank > 0 && rank <= x.shape.rank() &&
      std::equal(gamma.shape.begin(), gamma.shape.end(), x.shape.end() - static_cast<std::ptrdiff_t>(rank));
  const DType dtype = statistics_dtype(x.dtype);
  if (!ends_with || gamma.dtype != dtype)
    return bad("{}: gamma must be {} with the last sizes of x {}, not {}", name, muster::to_string(dtype),
               to_string(x), to_string(gamma));
  return {};
}

Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(require_norm("rms_norm", signature, 0));
  const TensorType& x = signature.inputs[0];
  const DType dtype = statistics_dtype(x.dtype);
  if (signature.inputs.size() == 3 && signature.inputs[2] != TensorType{dtype, {}})
    return bad("rms_norm: epsilon must be one {}, not {}", muster::to_string(dtype),
               to_string(signature.inputs[2]));
  return std::vector<TensorType>{x, {dtype, statistics_shape(x.shape, signature.inputs[1].shape)}};
}

Types infer_grad(const Signature& signature) {
  MUSTER_TRY_VOID(require_norm("rms_norm_grad", signature, 1));
  const TensorType& x = signature.inputs[1];
  const TensorType& gamma = signature.inputs[2];
  const TensorType rstd{statistics_dtype(x.dtype), statistics_shape(x.shape, gamma.shape)};
  if (signature.inputs[0] != x)
    return bad("rms_norm_grad: dy must be {}, not {}", to_string(x), to_string(signature.inputs[0]));
  if (signature.inputs[3] != rstd)
    return bad("rms_norm_grad: rstd must be {}, not {}", to_string(rstd), to_string(signature.inputs[3]));
  return std::vector<TensorType>{x, gamma};
}

Value in_dtype(const Value& x, DType dtype) {
  return x.dtype() == dtype ? x : apply("cast", {x}, {{"dtype", dtype}});
}

// Sums over the axes of gamma, which stay as 1.
class Rows {
 public:
  explicit Rows(const Value& gamma) : columns_(static_cast<double>(gamma.shape().elements())) {
    for (std::size_t i = 1; i <= gamma.shape().rank(); ++i) axes_.push_back(-static_cast<std::int64_t>(i));
  }
  double columns() const { return columns_; }
  Value sum(const Value& x) const { return apply("reduce_sum", {x}, {{"axes", axes_}, {"keep_dims", true}}); }
  Value mean(const Value& x) const { return times(sum(x), 1 / columns_); }

 private:
  double columns_;
  std::vector<std::int64_t> axes_;
};

Value column_sum(const Value& x, const Value& gamma) {
  return apply("sum_to", {x}, {{"shape", gamma.shape().sizes()}});
}

// rstd changes by -rstd^3 x / columns with x, and by -rstd^3 / 2 with epsilon.
std::vector<Value> gradient(const GradientQuery& query) {
  const Value& x = query.inputs[0];
  const Value& gamma = query.inputs[1];
  const Value& rstd = query.outputs[1];
  std::vector<Value> made(query.inputs.size());
  if (const Value& dy = query.output_gradients[0]; dy.defined()) {
    const Value inputs[] = {dy, x, gamma, rstd};
    const std::vector<Value> parts = apply_all("rms_norm_grad", inputs, {});
    for (std::size_t i = 0; i < 2; ++i) made[i] = parts[i];
  }
  if (const Value& drstd = query.output_gradients[1]; drstd.defined()) {
    const Value slope = times(times(drstd, times(rstd, apply("square", {rstd}))), -1 / Rows(gamma).columns());
    const Value part = in_dtype(times(in_dtype(x, rstd.dtype()), slope), x.dtype());
    made[0] = made[0].defined() ? plus(made[0], part) : part;
  }
  return made;
}

// With n = x rstd and a = dy gamma, rms_norm_grad gives dx = rstd (a - n mean(a n)) and dgamma = sum(dy n).
// For their gradients g and h, with G = g rstd, what flows back is
//   to a: p = G - n mean(G n), and so gamma p to dy and sum(dy p) to gamma;
//   to n: q = h dy - a mean(G n) - G mean(a n), and from there to x and rstd;
//   to dy from dgamma: h n; to rstd from dx itself: sum(g (a - n mean(a n))).
std::vector<Value> gradient_of_grad(const GradientQuery& query) {
  const DType given = query.inputs[1].dtype();
  const Value& gamma = query.inputs[2];
  const Value& rstd = query.inputs[3];
  const DType dtype = rstd.dtype();
  const Value dy = in_dtype(query.inputs[0], dtype), x = in_dtype(query.inputs[1], dtype);
  const Value n = times(x, rstd);
  const Rows rows(gamma);
  std::vector<Value> made(4);
  const auto add = [&made](std::size_t input, const Value& part) {
    made[input] = made[input].defined() ? plus(made[input], part) : part;
  };
  Value q;
  if (const Value& h = query.output_gradients[1]; h.defined()) {
    q = times(dy, h);
    add(0, times(n, h));
  }
  if (query.output_gradients[0].defined()) {
    const Value g = in_dtype(query.output_gradients[0], dtype);
    const Value a = times(dy, gamma), scaled = times(g, rstd);
    const Value along = rows.mean(times(scaled, n)), a_along = rows.mean(times(a, n));
    const Value p = minus(scaled, times(n, along));
    add(0, times(p, gamma));
    add(2, column_sum(times(dy, p), gamma));
    const Value bend = negated(plus(times(a, along), times(scaled, a_along)));
    q = q.defined() ? plus(q, bend) : bend;
    add(3, rows.sum(times(g, minus(a, times(n, a_along)))));
  }
  if (!q.defined()) return made;
  add(1, times(q, rstd));
  add(3, rows.sum(times(q, x)));
  for (const std::size_t input : {0, 1}) made[input] = in_dtype(made[input], given);
  return made;
}

struct Settings {
  DType dtype = DType::float32;
  kernels::RmsNormSize size;
  std::optional<double> epsilon;  // nothing: an input has it
};

template <std::size_t x_index>
Prepared prepare(const Signature& signature) {
  const TensorType& x = signature.inputs[x_index];
  const std::int64_t columns = signature.inputs[x_index + 1].shape.elements();
  const bool has_input = x_index == 0 && signature.inputs.size() == 3;
  return prepared(Settings{
      .dtype = x.dtype,
      .size = {.rows = columns == 0 ? 0 : x.shape.elements() / columns, .columns = columns},
      .epsilon = has_input ? std::nullopt : std::optional(signature.attributes.get("epsilon", 1e-6))});
}

double epsilon_of(const KernelCall& call, const Settings& settings) {
  if (settings.epsilon) return *settings.epsilon;
  return settings.dtype == DType::float64 ? *call.input<double>(2)
                                          : static_cast<double>(*call.input<float>(2));
}

void run(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  kernels::rms_norm(settings.size, settings.dtype,
                    {.x = call.inputs[0],
                     .gamma = call.inputs[1],
                     .epsilon = epsilon_of(call, settings),
                     .y = call.outputs[0],
                     .rstd = call.outputs[1]},
                    call.threads);
}

void run_grad(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  kernels::rms_norm_grad(settings.size, settings.dtype,
                         {.dy = call.inputs[0],
                          .x = call.inputs[1],
                          .gamma = call.inputs[2],
                          .rstd = call.inputs[3],
                          .dx = call.outputs[0],
                          .dgamma = call.outputs[1]},
                         call.threads);
}

// x rstd gamma; rstd is the second output.
Result<> to_onnx(OnnxCall& call) {
  const DType dtype = call.in().type.dtype;
  if (dtype != call.in(1).type.dtype) return call.refuse("x and gamma differ in dtype: export it in float32");
  std::vector<std::int64_t> axes;
  for (std::size_t i = call.in(1).type.shape.rank(); i > 0; --i)
    axes.push_back(-static_cast<std::int64_t>(i));
  const std::string square = call.make("Mul", {call.input(), call.input()});
  const std::string mean = call.make("ReduceMean", {square}, {{"axes", axes}, {"keepdims", std::int64_t{1}}});
  const std::string epsilon =
      call.inputs() > 2 ? call.input(2) : call.scalar(call.attributes().get("epsilon", 1e-6), dtype);
  const std::string root = call.make("Sqrt", {call.make("Add", {mean, epsilon})});
  return call.give("Mul", {call.make("Div", {call.input(), root}), call.input(1)});
}

}  // namespace rms_norm_rows
}  // namespace

const Op& rms_norm_op() {
  using namespace rms_norm_rows;
  static const Op op{
      .name = "rms_norm",
      .documentation =
          "(y, rstd): y = x rstd gamma with rstd = 1 / sqrt(mean(x^2) + epsilon) over the axes of gamma, "
          "which has the last sizes of x; in rstd those axes are 1. float32 or float64, or x and y bfloat16 "
          "and gamma and rstd float32; sums in double. A third input is an epsilon instead of the "
          "attribute's, of which there is no gradient. Source: Zhang, Sennrich, Root mean square layer "
          "normalization, arXiv 1910.07467.",
      .inputs_min = 2,
      .inputs_max = 3,
      .outputs = 2,
      .infer = infer,
      .gradient = gradient,
      .kernels = {with_bfloat16({"reference", any_signature, prepare<0>, run})},
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

const Op& rms_norm_grad_op() {
  using namespace rms_norm_rows;
  static const Op op{
      .name = "rms_norm_grad",
      .documentation = "dx and dgamma from dy, x, gamma and the rstd that rms_norm gave.",
      .inputs_min = 4,
      .inputs_max = 4,
      .outputs = 2,
      .infer = infer_grad,
      .gradient = gradient_of_grad,
      .kernels = {with_bfloat16({"reference", any_signature, prepare<1>, run_grad})},
      .mixes = true,
      .dimensions = rms_norm_grad_dimensions,
  };
  return op;
}

std::vector<const Op*> rows_of_rms_norm() { return {&rms_norm_op(), &rms_norm_grad_op()}; }

}  // namespace muster::graph
