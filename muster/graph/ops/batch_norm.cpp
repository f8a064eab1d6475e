#include <algorithm>

#include "muster/graph/ops/image.h"
#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/primitive.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace batch_norm_rows {

using kernels::BatchNormSize;

// The inputs [first, last) must be (C,), of x's dtype or beside bfloat16 float32.
Result<> check(std::string_view op, const Signature& signature, std::size_t first, std::size_t last = 5) {
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY_VOID(require_floating(op, x));
  if (x.shape.rank() < 2) return bad("{}: x must be (N, C, ...), not {}", op, muster::to_string(x.shape));
  const TensorType wanted{statistics_dtype(x.dtype), {x.shape[1]}};
  for (std::size_t i = first; i < last; ++i)
    if (signature.inputs[i] != wanted)
      return bad("{}: for x {} input {} must be {}, not {}", op, to_string(x), i, to_string(wanted),
                 to_string(signature.inputs[i]));
  return {};
}

Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(check("batch_norm", signature, 1));
  const TensorType& x = signature.inputs[0];
  const TensorType channel{statistics_dtype(x.dtype), {x.shape[1]}};
  return std::vector<TensorType>{x, channel, channel};
}

// Whether a gradient passes the relu, by element.
TensorType mask_of(const TensorType& x) { return {DType::uint8, x.shape}; }

Types infer_relu(const Signature& signature) {
  MUSTER_TRY(std::vector<TensorType> types, infer(signature));
  types.push_back(mask_of(signature.inputs[0]));
  return types;
}

Types infer_grad(const Signature& signature) {
  if (signature.inputs[1] != signature.inputs[0])
    return bad("batch_norm_grad: x {} and dy {} must be alike", to_string(signature.inputs[0]),
               to_string(signature.inputs[1]));
  MUSTER_TRY_VOID(check("batch_norm_grad", signature, 2));
  const TensorType& gamma = signature.inputs[2];
  return std::vector<TensorType>{signature.inputs[0], gamma, gamma};
}

Types infer_relu_grad(const Signature& signature) {
  const TensorType mask = mask_of(signature.inputs[0]);
  if (signature.inputs[5] != mask)
    return bad("batch_norm_relu_grad: the mask must be {}, not {}", to_string(mask),
               to_string(signature.inputs[5]));
  return infer_grad(signature);
}

// ---- Gradients by values ----------------------------------------------------------------------------------

// One value for each channel, against the pixels: (1, C, 1, 1).
class Channels {
 public:
  explicit Channels(const Value& x) : spread_(x.shape().rank(), 1) {
    const Shape& shape = x.shape();
    spread_[1] = shape[1];
    count_ = static_cast<double>(shape.elements()) / static_cast<double>(shape[1]);
    for (std::size_t axis = 0; axis < shape.rank(); ++axis)
      if (axis != 1) folded_.push_back(static_cast<std::int64_t>(axis));
  }

  double count() const { return count_; }  // elements of one channel
  Value spread(const Value& channel) const { return apply("reshape", {channel}, {{"shape", spread_}}); }
  Value sum(const Value& x) const { return apply("reduce_sum", {x}, {{"axes", folded_}}); }
  Value mean(const Value& x) const { return times(spread(sum(x)), 1 / count_); }

 private:
  double count_ = 1;
  std::vector<std::int64_t> spread_, folded_;
};

Value cast_to(const Value& x, DType dtype) {
  return x.dtype() == dtype ? x : apply("cast", {x}, {{"dtype", dtype}});
}

void add_to(Value& sum, const Value& part) { sum = sum.defined() ? plus(sum, part) : part; }

// What the gradients of the batch's statistics give x: the mean changes by 1 / n, the variance by
// 2 (x - mean) / n. Outside of training they are the moving ones, and count as constants.
Value through_statistics(const GradientQuery& query) {
  Value dx;
  if (!query.attributes.get("training", false)) return dx;
  const Value& dmean = query.output_gradients[1];
  const Value& dvariance = query.output_gradients[2];
  const Channels channels(query.inputs[0]);
  if (dvariance.defined()) {
    const Value x = cast_to(query.inputs[0], dvariance.dtype());
    const Value away = minus(x, channels.spread(query.outputs[1]));
    dx = times(away, channels.spread(times(dvariance, 2 / channels.count())));
  }
  if (dmean.defined())
    add_to(dx, apply("broadcast_to", {channels.spread(times(dmean, 1 / channels.count()))},
                     {{"shape", query.inputs[0].shape().sizes()}}));
  return dx.defined() ? cast_to(dx, query.inputs[0].dtype()) : dx;
}

std::vector<Value> gradient(const GradientQuery& query) {
  std::vector<Value> made(5);
  if (const Value& dy = query.output_gradients[0]; dy.defined()) {
    const std::vector<Value> inputs{query.inputs[0], dy, query.inputs[1], query.outputs[1], query.outputs[2]};
    const Values parts = apply_all("batch_norm_grad", inputs, query.attributes);
    std::copy(parts.begin(), parts.end(), made.begin());
  }
  if (const Value more = through_statistics(query); more.defined()) add_to(made[0], more);
  return made;
}

// With rstd = 1 / sqrt(variance + eps) and n = (x - mean) rstd, batch_norm_grad gives
//   dx = gamma rstd p(dy), dgamma = sum(dy n), dbeta = sum(dy),
// where p(v) = v - mean(v) - n mean(v n) in training, and v outside of it. For their gradients g, h and b,
// what flows back is
//   to dy: gamma rstd p(g) + h n + b; to gamma: rstd sum(g p(dy));
//   to n: q = h dy, in training less gamma rstd (g mean(dy n) + dy mean(g n));
//   to x and mean through n: q rstd and its sum's negative; to rstd: sum(q (x - mean)) + gamma sum(g p(dy)).
std::vector<Value> gradient_of_grad(const GradientQuery& query) {
  const DType dtype = query.inputs[2].dtype();
  const Value x = cast_to(query.inputs[0], dtype), dy = cast_to(query.inputs[1], dtype);
  const Value& gamma = query.inputs[2];
  const Value& h = query.output_gradients[1];
  const Value& b = query.output_gradients[2];
  const bool training = query.attributes.get("training", false);
  const Channels channels(x);
  const Value& variance = query.inputs[4];
  const Value rstd =
      apply("rsqrt", {plus(variance, scalar_like(variance, query.attributes.get("eps", 1e-5)))});
  const Value wide_rstd = channels.spread(rstd);
  const Value away = minus(x, channels.spread(query.inputs[3]));
  const Value n = times(away, wide_rstd);

  Value to_x, to_dy, to_gamma, to_mean, to_rstd, q;
  if (h.defined()) {
    const Value wide = channels.spread(h);
    q = times(wide, dy);
    to_dy = times(wide, n);
  }
  if (b.defined()) add_to(to_dy, apply("broadcast_to", {channels.spread(b)}, {{"shape", x.shape().sizes()}}));
  if (query.output_gradients[0].defined()) {
    const Value g = cast_to(query.output_gradients[0], dtype);
    const Value scale = channels.spread(times(gamma, rstd));
    Value of_g = g, of_dy = dy;
    if (training) {
      const Value g_along = channels.mean(times(g, n)), dy_along = channels.mean(times(dy, n));
      of_g = minus(minus(g, channels.mean(g)), times(n, g_along));
      of_dy = minus(minus(dy, channels.mean(dy)), times(n, dy_along));
      add_to(q, negated(times(scale, plus(times(g, dy_along), times(dy, g_along)))));
    }
    add_to(to_dy, times(scale, of_g));
    const Value product = channels.sum(times(g, of_dy));
    to_gamma = times(rstd, product);
    to_rstd = times(gamma, product);
  }
  if (q.defined()) {
    to_x = times(q, wide_rstd);
    to_mean = negated(channels.sum(to_x));
    add_to(to_rstd, channels.sum(times(q, away)));
    to_x = cast_to(to_x, query.inputs[0].dtype());
  }
  if (to_dy.defined()) to_dy = cast_to(to_dy, query.inputs[1].dtype());
  Value to_variance;
  if (to_rstd.defined()) to_variance = times(times(to_rstd, times(rstd, apply("square", {rstd}))), -0.5);
  return {to_x, to_dy, to_gamma, to_mean, to_variance};
}

BatchNormSize size_of(const Signature& signature) {
  const Shape& x = signature.inputs[0].shape;
  std::int64_t inner = 1;
  for (std::size_t axis = 2; axis < x.rank(); ++axis) inner *= x[axis];
  return {.batch = x[0],
          .channels = x[1],
          .inner = inner,
          .plane = {x.begin() + 2, x.end()},
          .eps = signature.attributes.get("eps", 1e-5),
          .momentum = signature.attributes.get("momentum", 0.9),
          .training = signature.attributes.get("training", false)};
}

Prepared prepare(const Signature& signature) { return prepared(size_of(signature)); }

template <Direction direction, bool relu>
PrimitivePtr make(const PrimitiveLibrary& library, const Signature& signature) {
  return library.batch_norm(setting_of(signature), size_of(signature), direction, relu);
}

template <class T>
T* written(const KernelCall& call, std::size_t input) {
  return reinterpret_cast<T*>(call.inputs[input]);
}

template <class T, bool relu>
void run(const KernelCall& call) {
  kernels::batch_norm<T>(call.setting<BatchNormSize>(),
                         {.x = call.input<T>(0),
                          .gamma = call.input<T>(1),
                          .beta = call.input<T>(2),
                          .moving_mean = written<T>(call, 3),
                          .moving_variance = written<T>(call, 4),
                          .y = call.output<T>(0),
                          .mean = call.output<T>(1),
                          .variance = call.output<T>(2),
                          .mask = relu ? call.output<std::uint8_t>(3) : nullptr,
                          .threads = call.threads});
}

template <class T, bool relu>
void run_grad(const KernelCall& call) {
  kernels::batch_norm_grad<T>(call.setting<BatchNormSize>(),
                              {.x = call.input<T>(0),
                               .dy = call.input<T>(1),
                               .gamma = call.input<T>(2),
                               .mean = call.input<T>(3),
                               .variance = call.input<T>(4),
                               .mask = relu ? call.input<std::uint8_t>(5) : nullptr,
                               .dx = call.output<T>(0),
                               .dgamma = call.output<T>(1),
                               .dbeta = call.output<T>(2),
                               .threads = call.threads});
}

Result<> to_onnx(OnnxCall& call) {
  if (call.attributes().get("training", false))
    return call.refuse("it is training: call set_train(False) on the cell that holds it");
  return call.give("BatchNormalization", call.all_inputs(),
                   {{"epsilon", static_cast<float>(call.attributes().get("eps", 1e-5))}});
}

}  // namespace batch_norm_rows
}  // namespace

const Op& batch_norm_op() {
  using namespace batch_norm_rows;
  static const Op op{
      .name = "batch_norm",
      .documentation =
          "y = (x - mean) / sqrt(variance + eps) gamma + beta by channel, x (N, C, ...), the others (C,): "
          "gamma, beta, moving_mean, moving_variance. With training, mean and variance are the batch's "
          "(divided by the count) and moving = momentum moving + (1 - momentum) batch is written in place "
          "(the variance divided by the count less one); else they are the moving ones. The other outputs "
          "are the mean and the variance that were used. float32, float64, or x and y bfloat16 and all "
          "others float32: then only y is rounded.",
      .inputs_min = 5,
      .inputs_max = 5,
      .outputs = 3,
      .infer = infer,
      .gradient = gradient,
      .kernels = {batch_blocked_kernel<make<Direction::forward, false>, comes_batch_blocked<0>>(),
                  primitive_kernel<make<Direction::forward, false>>(),
                  reference<float>(prepare, run<float, false>),
                  reference<double>(prepare, run<double, false>)},
      .written = {3, 4},
      .precision = MixedPrecision::full,
      .mixes = true,
      .onnx = to_onnx,
      .dimensions = batch_norm_dimensions,
  };
  return op;
}

const Op& batch_norm_grad_op() {
  using namespace batch_norm_rows;
  static const Op op{
      .name = "batch_norm_grad",
      .documentation =
          "The gradients of batch_norm's x, gamma and beta from x, dy, gamma and the mean and variance that "
          "batch_norm used; with training dx counts what they change with x.",
      .inputs_min = 5,
      .inputs_max = 5,
      .outputs = 3,
      .infer = infer_grad,
      .gradient = gradient_of_grad,
      .kernels = {batch_blocked_kernel<make<Direction::grad_input, false>, comes_batch_blocked<0>>(),
                  primitive_kernel<make<Direction::grad_input, false>>(),
                  reference<float>(prepare, run_grad<float, false>),
                  reference<double>(prepare, run_grad<double, false>)},
      .dimensions = batch_norm_grad_dimensions,
  };
  return op;
}

const Op& batch_norm_relu_op() {
  using namespace batch_norm_rows;
  static const Op op{
      .name = "batch_norm_relu",
      .documentation =
          "relu(batch_norm) in one pass; the fourth output says where y > 0, in a way that only "
          "batch_norm_relu_grad need understand. Made by the compiler; it has no gradient of its own.",
      .inputs_min = 5,
      .inputs_max = 5,
      .outputs = 4,
      .infer = infer_relu,
      .kernels = {batch_blocked_kernel<make<Direction::forward, true>, comes_batch_blocked<0>>(),
                  primitive_kernel<make<Direction::forward, true>>(),
                  reference<float>(prepare, run<float, true>), reference<double>(prepare, run<double, true>)},
      .written = {3, 4},
  };
  return op;
}

const Op& batch_norm_relu_grad_op() {
  using namespace batch_norm_rows;
  static const Op op{
      .name = "batch_norm_relu_grad",
      .documentation =
          "batch_norm_grad of what relu lets pass, by batch_norm_relu's fourth output. Made by the compiler.",
      .inputs_min = 6,
      .inputs_max = 6,
      .outputs = 3,
      .infer = infer_relu_grad,
      .kernels = {batch_blocked_kernel<make<Direction::grad_input, true>, comes_batch_blocked<0>>(),
                  primitive_kernel<make<Direction::grad_input, true>>(),
                  reference<float>(prepare, run_grad<float, true>),
                  reference<double>(prepare, run_grad<double, true>)},
  };
  return op;
}

std::vector<const Op*> rows_of_batch_norm() {
  return {&batch_norm_op(), &batch_norm_grad_op(), &batch_norm_relu_op(), &batch_norm_relu_grad_op()};
}

}  // namespace muster::graph
