// conv3d, the convolution of volumes; conv3d_transpose, its gradient for x, which scripts use on its own; and
// conv3d_grad_weight. Each is linear in both inputs, so their gradients are each other.
#include <algorithm>
#include <utility>

#include "muster/graph/ops/primitive.h"
#include "muster/graph/ops/window.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace conv3d_rows {

using kernels::Conv3dSize;
using Numbers = std::vector<std::int64_t>;

Attributes window_of(const Attributes& attributes) {
  return only(attributes, {"strides", "pads", "dilations", "group"});
}

Conv3dSize::Axes axes_of(const Numbers& values) { return {values[0], values[1], values[2]}; }
// Those of the volume or the kernel of (N, C, D, H, W).
Conv3dSize::Axes axes_of(const Shape& shape) { return {shape[2], shape[3], shape[4]}; }

Result<> require_volumes(std::string_view op, std::string_view what, const TensorType& type) {
  if (type.shape.rank() == 5) return {};
  return bad("{}: {} must be volumes (N, C, D, H, W), not {}", op, what, muster::to_string(type.shape));
}

Result<> require_weight(std::string_view op, const TensorType& type) {
  if (type.shape.rank() == 5) return {};
  return bad("{}: the weight must be (O, C / group, kernel depth, kernel height, kernel width), not {}", op,
             muster::to_string(type.shape));
}

Result<> check(std::string_view op, const Signature& signature) {
  MUSTER_TRY_VOID(require_floating(op, signature.inputs[0]));
  return require_equal_dtypes(op, signature);
}

Result<> check_channels(std::string_view op, const Shape& x, const Shape& weight, std::int64_t groups) {
  if (groups < 1 || x[1] % groups != 0 || weight[0] % groups != 0)
    return bad("{}: {} channels in and {} out cannot be divided into {} groups", op, x[1], weight[0], groups);
  if (x[1] != weight[1] * groups)
    return bad("{}: x {} has {} channels, the weight {} is for {} in {} group{}", op, muster::to_string(x),
               x[1], muster::to_string(weight), weight[1] * groups, groups, groups == 1 ? "" : "s");
  return {};
}

Result<Conv3dSize> size_of(std::string_view op, const Shape& x, const Shape& weight,
                           const Attributes& attributes) {
  MUSTER_TRY(const auto strides, numbers(op, "strides", attributes, {1, 1, 1}, 1));
  MUSTER_TRY(const auto pads, numbers(op, "pads", attributes, {0, 0, 0, 0, 0, 0}, 0));
  MUSTER_TRY(const auto dilations, numbers(op, "dilations", attributes, {1, 1, 1}, 1));
  const std::int64_t groups = attributes.get("group", std::int64_t{1});
  MUSTER_TRY_VOID(check_channels(op, x, weight, groups));
  Conv3dSize size{.batch = x[0],
                  .in_channels = x[1],
                  .out_channels = weight[0],
                  .groups = groups,
                  .in = axes_of(x),
                  .kernel = axes_of(weight),
                  .stride = axes_of(strides),
                  .pad_before = {pads[0], pads[2], pads[4]},
                  .pad_after = {pads[1], pads[3], pads[5]},
                  .dilation = axes_of(dilations)};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (size.kernel[axis] < 1)
      return bad("{}: the kernel of the weight {} is empty", op, muster::to_string(weight));
    const std::int64_t padded = size.in[axis] + size.pad_before[axis] + size.pad_after[axis];
    const std::int64_t reach = (size.kernel[axis] - 1) * size.dilation[axis] + 1;
    if (padded < reach)
      return bad("{}: a kernel that reaches over {} places does not fit a volume of {} with its padding", op,
                 reach, padded);
    size.out[axis] = (padded - reach) / size.stride[axis] + 1;
  }
  return size;
}

Shape x_shape(const Conv3dSize& s) { return {s.batch, s.in_channels, s.in[0], s.in[1], s.in[2]}; }
Shape y_shape(const Conv3dSize& s) { return {s.batch, s.out_channels, s.out[0], s.out[1], s.out[2]}; }
Shape weight_shape(const Conv3dSize& s) {
  return {s.out_channels, s.in_channels / s.groups, s.kernel[0], s.kernel[1], s.kernel[2]};
}

Result<Conv3dSize> forward_size(const Signature& signature) {
  MUSTER_TRY_VOID(require_volumes("conv3d", "x", signature.inputs[0]));
  MUSTER_TRY_VOID(require_weight("conv3d", signature.inputs[1]));
  return size_of("conv3d", signature.inputs[0].shape, signature.inputs[1].shape, signature.attributes);
}

// The size of the convolution that is turned around, when `y`, its output, fits it.
Result<Conv3dSize> backward_size(std::string_view op, const Shape& x, const Shape& weight,
                                 std::string_view what, const Shape& y, const Attributes& attributes) {
  MUSTER_TRY(const Conv3dSize size, size_of(op, x, weight, attributes));
  if (y != y_shape(size))
    return bad("{}: {} must be {}, not {}", op, what, muster::to_string(y_shape(size)), muster::to_string(y));
  return size;
}

Result<Conv3dSize> transpose_size(const Signature& signature) {
  constexpr std::string_view op = "conv3d_transpose";
  MUSTER_TRY_VOID(require_volumes(op, "x", signature.inputs[0]));
  MUSTER_TRY_VOID(require_weight(op, signature.inputs[1]));
  const Shape& x = signature.inputs[0].shape;
  const Shape& weight = signature.inputs[1].shape;
  MUSTER_TRY(const auto size, numbers(op, "size", signature.attributes, {0, 0, 0}, 1));
  const std::int64_t channels = weight[1] * signature.attributes.get("group", std::int64_t{1});
  return backward_size(op, {x[0], channels, size[0], size[1], size[2]}, weight, "x", x, signature.attributes);
}

Result<Conv3dSize> grad_weight_size(const Signature& signature) {
  constexpr std::string_view op = "conv3d_grad_weight";
  MUSTER_TRY_VOID(require_volumes(op, "x", signature.inputs[0]));
  MUSTER_TRY_VOID(require_volumes(op, "dy", signature.inputs[1]));
  const Shape& x = signature.inputs[0].shape;
  const Shape& dy = signature.inputs[1].shape;
  MUSTER_TRY(const auto kernel, numbers(op, "kernel", signature.attributes, {0, 0, 0}, 1));
  const std::int64_t groups = std::max<std::int64_t>(signature.attributes.get("group", std::int64_t{1}), 1);
  const Shape weight{dy[1], x[1] / groups, kernel[0], kernel[1], kernel[2]};
  return backward_size(op, x, weight, "dy", dy, signature.attributes);
}

Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(check("conv3d", signature));
  MUSTER_TRY(const Conv3dSize size, forward_size(signature));
  return std::vector<TensorType>{{signature.inputs[0].dtype, y_shape(size)}};
}
Types infer_transpose(const Signature& signature) {
  MUSTER_TRY_VOID(check("conv3d_transpose", signature));
  MUSTER_TRY(const Conv3dSize size, transpose_size(signature));
  return std::vector<TensorType>{{signature.inputs[0].dtype, x_shape(size)}};
}
Types infer_grad_weight(const Signature& signature) {
  MUSTER_TRY_VOID(check("conv3d_grad_weight", signature));
  MUSTER_TRY(const Conv3dSize size, grad_weight_size(signature));
  return std::vector<TensorType>{{signature.inputs[0].dtype, weight_shape(size)}};
}

Value transpose(const Value& dy, const Value& weight, const Value& x, const Attributes& window) {
  Attributes attributes = window;
  attributes.set("size", Numbers{x.shape()[2], x.shape()[3], x.shape()[4]});
  return apply("conv3d_transpose", {dy, weight}, attributes);
}
Value grad_weight(const Value& x, const Value& dy, const Value& weight, const Attributes& window) {
  Attributes attributes = window;
  attributes.set("kernel", Numbers{weight.shape()[2], weight.shape()[3], weight.shape()[4]});
  return apply("conv3d_grad_weight", {x, dy}, attributes);
}

std::vector<Value> gradient(const GradientQuery& query) {
  const Value& x = query.inputs[0];
  const Value& weight = query.inputs[1];
  const Value& dy = query.output_gradients[0];
  const Attributes window = window_of(query.attributes);
  return {transpose(dy, weight, x, window), grad_weight(x, dy, weight, window)};
}
std::vector<Value> gradient_of_transpose(const GradientQuery& query) {
  const Value& g = query.output_gradients[0];
  const Attributes window = window_of(query.attributes);
  return {apply("conv3d", {g, query.inputs[1]}, window),
          grad_weight(g, query.inputs[0], query.inputs[1], window)};
}
std::vector<Value> gradient_of_grad_weight(const GradientQuery& query) {
  const Value& g = query.output_gradients[0];
  const Attributes window = window_of(query.attributes);
  return {transpose(query.inputs[1], g, query.inputs[0], window),
          apply("conv3d", {query.inputs[0], g}, window)};
}

// Each output of the forward pass takes as many products as its kernel has weights; so do both gradients.
template <Result<Conv3dSize> (*size_of_signature)(const Signature&)>
double flops(const Signature& signature) {
  const Conv3dSize size = *size_of_signature(signature);
  return 2.0 * static_cast<double>(y_shape(size).elements()) *
         static_cast<double>(weight_shape(size).elements() / std::max<std::int64_t>(1, size.out_channels));
}

template <Result<Conv3dSize> (*size)(const Signature&)>
Prepared prepare(const Signature& signature) {
  return prepared(*size(signature));
}

template <class T, void (*kernel)(const Conv3dSize&, const T*, const T*, T*, int)>
void run(const KernelCall& call) {
  kernel(call.setting<Conv3dSize>(), call.input<T>(0), call.input<T>(1), call.output<T>(), call.threads);
}

template <Direction direction, Result<Conv3dSize> (*size)(const Signature&)>
PrimitivePtr make(const PrimitiveLibrary& library, const Signature& signature) {
  return library.conv3d(setting_of(signature), *size(signature), direction);
}

std::vector<Argument> window_arguments() {
  return {{.name = "strides", .otherwise = Numbers{1, 1, 1}, .range = {.min = 1}, .python = "stride"},
          {.name = "pads", .otherwise = Numbers{0, 0, 0, 0, 0, 0}, .range = {.min = 0}, .python = "padding"},
          {.name = "dilations", .otherwise = Numbers{1, 1, 1}, .range = {.min = 1}, .python = "dilation"},
          {.name = "group", .otherwise = std::int64_t{1}, .range = {.min = 1}}};
}

std::vector<Argument> transpose_arguments() {
  std::vector<Argument> made = window_arguments();
  made.insert(made.begin(),
              {.name = "size", .otherwise = Numbers{1, 1, 1}, .required = true, .range = {.min = 1}});
  return made;
}

// ONNX names the begins of all axes before the ends.
Result<> to_onnx(OnnxCall& call) {
  const Shape& weight = call.in(1).type.shape;
  MUSTER_TRY(const auto strides, numbers("conv3d", "strides", call.attributes(), {1, 1, 1}, 1));
  MUSTER_TRY(const auto pads, numbers("conv3d", "pads", call.attributes(), {0, 0, 0, 0, 0, 0}, 0));
  MUSTER_TRY(const auto dilations, numbers("conv3d", "dilations", call.attributes(), {1, 1, 1}, 1));
  return call.give("Conv", call.all_inputs(),
                   {{"kernel_shape", Numbers{weight[2], weight[3], weight[4]}},
                    {"strides", strides},
                    {"pads", Numbers{pads[0], pads[2], pads[4], pads[1], pads[3], pads[5]}},
                    {"dilations", dilations},
                    {"group", call.attributes().get("group", std::int64_t{1})}});
}

}  // namespace conv3d_rows

const Op& conv3d_op() {
  using namespace conv3d_rows;
  static const Op op{
      .name = "conv3d",
      .documentation =
          "y (N, O, D', H', W') from volumes x (N, C, D, H, W) and a weight (O, C / group, kd, kh, kw): the "
          "sum over the kernel and the channels of the group, x zero outside the volume. strides [d, h, w], "
          "pads [front, back, top, bottom, left, right] in places, dilations [d, h, w], group; D' = "
          "floor((D + front + back - (kd - 1) dilation - 1) / stride) + 1, H' and W' likewise. float32 or "
          "float64, or bfloat16 where the primitive library has it.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer,
      .gradient = gradient,
      .flops = flops<forward_size>,
      .kernels = {primitive_kernel<make<Direction::forward, forward_size>>(),
                  reference<float>(prepare<forward_size>, run<float, kernels::conv3d<float>>),
                  reference<double>(prepare<forward_size>, run<double, kernels::conv3d<double>>)},
      .precision = MixedPrecision::low,
      .schema = {.inputs = {"x", "weight"},
                 .attributes = window_arguments(),
                 .promotion = Promotion::common_floating},
      .onnx = to_onnx,
  };
  return op;
}

const Op& conv3d_transpose_op() {
  using namespace conv3d_rows;
  static const Op op{
      .name = "conv3d_transpose",
      .documentation =
          "y (N, C, *size) from x (N, O, D, H, W) and a weight (O, C / group, kd, kh, kw): the gradient of "
          "conv3d for its volumes, which have `size` [d, h, w]. The other attributes are those of conv3d, "
          "which has to make volumes of x's size out of such ones.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer_transpose,
      .gradient = gradient_of_transpose,
      .flops = flops<transpose_size>,
      .kernels = {primitive_kernel<make<Direction::grad_input, transpose_size>>(),
                  reference<float>(prepare<transpose_size>, run<float, kernels::conv3d_grad_input<float>>),
                  reference<double>(prepare<transpose_size>,
                                    run<double, kernels::conv3d_grad_input<double>>)},
      .precision = MixedPrecision::low,
      .schema = {.inputs = {"x", "weight"},
                 .attributes = transpose_arguments(),
                 .promotion = Promotion::common_floating},
  };
  return op;
}

const Op& conv3d_grad_weight_op() {
  using namespace conv3d_rows;
  static const Op op{
      .name = "conv3d_grad_weight",
      .documentation =
          "The gradient of conv3d's weight (O, C / group, kd, kh, kw) from x and dy; kd, kh and kw are "
          "kernel, the other attributes are conv3d's.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer_grad_weight,
      .gradient = gradient_of_grad_weight,
      .flops = flops<grad_weight_size>,
      .kernels = {primitive_kernel<make<Direction::grad_weight, grad_weight_size>>(),
                  reference<float>(prepare<grad_weight_size>, run<float, kernels::conv3d_grad_weight<float>>),
                  reference<double>(prepare<grad_weight_size>,
                                    run<double, kernels::conv3d_grad_weight<double>>)},
  };
  return op;
}

}  // namespace

std::vector<const Op*> rows_of_conv3d() {
  return {&conv3d_op(), &conv3d_transpose_op(), &conv3d_grad_weight_op()};
}

}  // namespace muster::graph
