#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace layer_norm_rows {

Result<std::size_t> begin_axis(const Shape& shape, const Attributes& attributes) {
  return axis_at("layer_norm", shape, attributes.get("begin_norm_axis", std::int64_t{-1}));
}

// The axes before `begin`, or those from it on.
Shape leading(const Shape& shape, std::size_t begin) {
  return Shape({shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(begin)});
}
Shape trailing(const Shape& shape, std::size_t begin) {
  return Shape({shape.begin() + static_cast<std::ptrdiff_t>(begin), shape.end()});
}

Types infer(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY_VOID(require_floating("layer_norm", x));
  MUSTER_TRY(const std::size_t begin, begin_axis(x.shape, signature.attributes));
  const TensorType wanted{statistics_dtype(x.dtype), trailing(x.shape, begin)};
  for (std::size_t i : {1, 2})
    if (signature.inputs[i] != wanted)
      return bad("layer_norm: {} must be {}, not {}", i == 1 ? "gamma" : "beta", to_string(wanted),
                 to_string(signature.inputs[i]));
  const TensorType statistics{statistics_dtype(x.dtype), leading(x.shape, begin)};
  return std::vector<TensorType>{x, statistics, statistics};
}

// ---- Gradients by values ----------------------------------------------------------------------------------

// One value for each normalized row, against the rows themselves: (..., 1, 1).
class Rows {
 public:
  Rows(const Value& x, const Attributes& attributes)
      : begin_(*begin_axis(x.shape(), attributes)),
        columns_(static_cast<double>(trailing(x.shape(), begin_).elements())) {
    for (std::size_t axis = 0; axis < x.shape().rank(); ++axis)
      (axis < begin_ ? leading_ : trailing_).push_back(static_cast<std::int64_t>(axis));
    kept_ = x.shape().sizes();
    for (std::size_t axis = begin_; axis < kept_.size(); ++axis) kept_[axis] = 1;
  }

  double columns() const { return columns_; }
  // Of a statistic (...) that one value of each row.
  Value spread(const Value& statistic) const { return apply("reshape", {statistic}, {{"shape", kept_}}); }
  Value mean(const Value& x) const { return times(kept_sum(x), 1 / columns_); }
  Value kept_sum(const Value& x) const { return sum(x, trailing_, true); }
  // One sum for each row, like a statistic.
  Value row_sum(const Value& x) const { return sum(x, trailing_, false); }
  // One for each column, like gamma.
  Value column_sum(const Value& x) const { return leading_.empty() ? x : sum(x, leading_, false); }

 private:
  static Value sum(const Value& x, const std::vector<std::int64_t>& axes, bool keep_dims) {
    return apply("reduce_sum", {x}, {{"axes", axes}, {"keep_dims", keep_dims}});
  }

  std::size_t begin_;
  double columns_;
  std::vector<std::int64_t> leading_, trailing_, kept_;
};

// What the statistics' gradients give x: the mean changes by 1/n, rstd by -rstd^3 (x - mean) / n.
Value through_statistics(const GradientQuery& query) {
  const Value& x = query.inputs[0];
  const Rows rows(x, query.attributes);
  Value dx;
  if (const Value& dmean = query.output_gradients[1]; dmean.defined())
    dx = apply("broadcast_to", {times(rows.spread(dmean), 1 / rows.columns())},
               {{"shape", x.shape().sizes()}});
  if (const Value& drstd = query.output_gradients[2]; drstd.defined()) {
    const Value& rstd = query.outputs[2];
    const Value slope = times(times(drstd, times(rstd, apply("square", {rstd}))), -1 / rows.columns());
    const Value part = times(minus(x, rows.spread(query.outputs[1])), rows.spread(slope));
    dx = dx.defined() ? plus(dx, part) : part;
  }
  return dx;
}

std::vector<Value> gradient(const GradientQuery& query) {
  std::vector<Value> made(3);
  if (query.output_gradients[0].defined()) {
    const Value inputs[] = {query.output_gradients[0], query.inputs[0], query.inputs[1], query.outputs[1],
                            query.outputs[2]};
    made = apply_all("layer_norm_grad", inputs, query.attributes);
  }
  const Value more = through_statistics(query);
  if (more.defined()) made[0] = made[0].defined() ? plus(made[0], more) : more;
  return made;
}

// With n = (x - mean) rstd and a = dy gamma, layer_norm_grad gives
//   dx = rstd (a - mean(a) - n mean(a n)), dgamma = sum(dy n), dbeta = sum(dy).
// For their gradients g, h and b, with G = g rstd, what flows back is
//   to a: p = G - mean(G) - n mean(G n), and so gamma p to dy and sum(dy p) to gamma;
//   to n: q = h dy - a mean(G n) - G mean(a n), and from there to x, mean and rstd;
//   to dy from dgamma and dbeta: h n + b; to rstd from dx itself: sum(g dx) / rstd.
std::vector<Value> gradient_of_grad(const GradientQuery& query) {
  const Value& dy = query.inputs[0];
  const Value& x = query.inputs[1];
  const Value& gamma = query.inputs[2];
  const Rows rows(x, query.attributes);
  const Value rstd = rows.spread(query.inputs[4]);
  const Value away = minus(x, rows.spread(query.inputs[3]));
  const Value n = times(away, rstd);
  const Value& g = query.output_gradients[0];
  const Value& h = query.output_gradients[1];
  const Value& b = query.output_gradients[2];

  std::vector<Value> made(5);
  const auto add = [&made](std::size_t input, const Value& part) {
    made[input] = made[input].defined() ? plus(made[input], part) : part;
  };
  Value q;
  if (h.defined()) {
    q = times(h, dy);
    add(0, times(h, n));
  }
  if (b.defined()) add(0, apply("broadcast_to", {b}, {{"shape", x.shape().sizes()}}));
  if (g.defined()) {
    const Value a = times(dy, gamma);
    const Value scaled = times(g, rstd);
    const Value along = rows.mean(times(scaled, n)), a_along = rows.mean(times(a, n));
    const Value p = minus(minus(scaled, rows.mean(scaled)), times(n, along));
    add(0, times(gamma, p));
    add(2, rows.column_sum(times(dy, p)));
    const Value bend = negated(plus(times(a, along), times(scaled, a_along)));
    q = q.defined() ? plus(q, bend) : bend;
    const Value per_rstd = minus(minus(a, rows.mean(a)), times(n, a_along));
    add(4, rows.row_sum(times(g, per_rstd)));
  }
  if (!q.defined()) return made;
  const Value to_x = times(q, rstd);
  add(1, to_x);
  add(3, negated(rows.row_sum(to_x)));
  add(4, rows.row_sum(times(q, away)));
  return made;
}

// ---- Rows -------------------------------------------------------------------------------------------------

Types infer_grad(const Signature& signature) {
  const TensorType& x = signature.inputs[1];
  MUSTER_TRY_VOID(require_floating("layer_norm_grad", x));
  MUSTER_TRY(const std::size_t begin, begin_axis(x.shape, signature.attributes));
  const TensorType gamma{statistics_dtype(x.dtype), trailing(x.shape, begin)};
  const TensorType statistics{statistics_dtype(x.dtype), leading(x.shape, begin)};
  const TensorType* wanted[] = {&x, &x, &gamma, &statistics, &statistics};
  for (std::size_t i = 0; i < 5; ++i)
    if (signature.inputs[i] != *wanted[i])
      return bad("layer_norm_grad: input {} must be {}, not {}", i, to_string(*wanted[i]),
                 to_string(signature.inputs[i]));
  return std::vector<TensorType>{x, gamma, gamma};
}

struct Settings {
  DType dtype = DType::float32;
  kernels::LayerNormSize size;
};

template <std::size_t x_index>
Prepared prepare(const Signature& signature) {
  const TensorType& x = signature.inputs[x_index];
  const std::size_t begin = *begin_axis(x.shape, signature.attributes);
  return prepared(Settings{x.dtype,
                           {.rows = leading(x.shape, begin).elements(),
                            .columns = trailing(x.shape, begin).elements(),
                            .eps = signature.attributes.get("eps", 1e-5)}});
}

void run(const KernelCall& call) {
  const auto& [dtype, size] = call.setting<Settings>();
  kernels::layer_norm(size, dtype,
                      {.x = call.inputs[0],
                       .gamma = call.inputs[1],
                       .beta = call.inputs[2],
                       .y = call.outputs[0],
                       .mean = call.outputs[1],
                       .rstd = call.outputs[2]},
                      call.threads);
}

void run_grad(const KernelCall& call) {
  const auto& [dtype, size] = call.setting<Settings>();
  kernels::layer_norm_grad(size, dtype,
                           {.dy = call.inputs[0],
                            .x = call.inputs[1],
                            .gamma = call.inputs[2],
                            .mean = call.inputs[3],
                            .rstd = call.inputs[4],
                            .dx = call.outputs[0],
                            .dgamma = call.outputs[1],
                            .dbeta = call.outputs[2]},
                           call.threads);
}

}  // namespace layer_norm_rows
}  // namespace

namespace {
namespace layer_norm_rows {

// The statistics are for the gradient.
Result<> to_onnx(OnnxCall& call) {
  return call.give("LayerNormalization", call.all_inputs(),
                   {{"axis", call.attributes().get("begin_norm_axis", std::int64_t{-1})},
                    {"epsilon", static_cast<float>(call.attributes().get("eps", 1e-5))}});
}

}  // namespace layer_norm_rows
}  // namespace

const Op& layer_norm_op() {
  using namespace layer_norm_rows;
  static const Op op{
      .name = "layer_norm",
      .documentation =
          "y = (x - mean) / sqrt(variance + eps) gamma + beta over the axes from begin_norm_axis (-1 unless "
          "set) on; gamma and beta have the shape of those axes, eps is 1e-5 unless set; float32 or float64, "
          "or x and y bfloat16 and all others float32; statistics in double. Outputs: y, and the mean and 1 "
          "/ sqrt(variance + eps) that the gradient needs. Source: Ba, Kiros, Hinton, Layer normalization, "
          "arXiv 1607.06450.",
      .inputs_min = 3,
      .inputs_max = 3,
      .outputs = 3,
      .infer = infer,
      .gradient = gradient,
      .kernels = {with_bfloat16({"reference", any_signature, prepare<0>, run})},
      .precision = MixedPrecision::full,
      .mixes = true,
      .schema = {.inputs = {"x", "gamma", "beta"},
                 .attributes = {{.name = "begin_norm_axis", .otherwise = std::int64_t{-1}},
                                {.name = "eps", .otherwise = 1e-5}}},
      .onnx = to_onnx,
      .dimensions = norm_dimensions,
  };
  return op;
}

const Op& layer_norm_grad_op() {
  using namespace layer_norm_rows;
  static const Op op{
      .name = "layer_norm_grad",
      .documentation = "dx, dgamma and dbeta from dy, x, gamma and the statistics that layer_norm gave.",
      .inputs_min = 5,
      .inputs_max = 5,
      .outputs = 3,
      .infer = infer_grad,
      .gradient = gradient_of_grad,
      .kernels = {with_bfloat16({"reference", any_signature, prepare<1>, run_grad})},
      .dimensions = norm_grad_dimensions,
  };
  return op;
}

std::vector<const Op*> rows_of_layer_norm() { return {&layer_norm_op(), &layer_norm_grad_op()}; }

}  // namespace muster::graph
