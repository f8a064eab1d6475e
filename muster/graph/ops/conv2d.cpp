// conv2d, its gradients for x and for the weight (each the other's gradient too), and channel_sum, which is
// the bias's.
#include <algorithm>

#include "muster/graph/ops/primitive.h"
#include "muster/graph/ops/window.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace conv2d_rows {

using kernels::Conv2dSize;

Attributes window_of(const Attributes& attributes) {
  return only(attributes, {"strides", "pads", "dilations", "group"});
}

// Along one axis: the output's size, or what is wrong.
Result<std::int64_t> out_size(std::string_view op, std::int64_t padded, std::int64_t kernel,
                              std::int64_t stride, std::int64_t dilation) {
  const std::int64_t reach = (kernel - 1) * dilation + 1;
  if (padded < reach)
    return bad("{}: a kernel that reaches over {} pixels does not fit an image of {} with its padding", op,
               reach, padded);
  return (padded - reach) / stride + 1;
}

Result<Conv2dSize> size_of(std::string_view op, const Shape& x, const Shape& weight,
                           const Attributes& attributes) {
  MUSTER_TRY(const auto strides, numbers(op, "strides", attributes, {1, 1}, 1));
  MUSTER_TRY(const auto pads, numbers(op, "pads", attributes, {0, 0, 0, 0}, 0));
  MUSTER_TRY(const auto dilations, numbers(op, "dilations", attributes, {1, 1}, 1));
  const std::int64_t groups = attributes.get("group", std::int64_t{1});
  if (groups < 1 || x[1] % groups != 0 || weight[0] % groups != 0)
    return bad("{}: {} channels in and {} out cannot be divided into {} groups", op, x[1], weight[0], groups);
  if (x[1] != weight[1] * groups)
    return bad("{}: x {} has {} channels, the weight {} is for {} in {} group{}", op, muster::to_string(x),
               x[1], muster::to_string(weight), weight[1] * groups, groups, groups == 1 ? "" : "s");
  if (weight[2] < 1 || weight[3] < 1)
    return bad("{}: the kernel of the weight {} is empty", op, muster::to_string(weight));
  MUSTER_TRY(const std::int64_t height,
             out_size(op, x[2] + pads[0] + pads[1], weight[2], strides[0], dilations[0]));
  MUSTER_TRY(const std::int64_t width,
             out_size(op, x[3] + pads[2] + pads[3], weight[3], strides[1], dilations[1]));
  return Conv2dSize{.batch = x[0],
                    .in_channels = x[1],
                    .in_height = x[2],
                    .in_width = x[3],
                    .out_channels = weight[0],
                    .out_height = height,
                    .out_width = width,
                    .kernel_height = weight[2],
                    .kernel_width = weight[3],
                    .stride_height = strides[0],
                    .stride_width = strides[1],
                    .pad_top = pads[0],
                    .pad_bottom = pads[1],
                    .pad_left = pads[2],
                    .pad_right = pads[3],
                    .dilation_height = dilations[0],
                    .dilation_width = dilations[1],
                    .groups = groups};
}

Shape x_shape(const Conv2dSize& size) {
  return {size.batch, size.in_channels, size.in_height, size.in_width};
}
Shape y_shape(const Conv2dSize& size) {
  return {size.batch, size.out_channels, size.out_height, size.out_width};
}
Shape weight_shape(const Conv2dSize& size) {
  return {size.out_channels, size.in_channels / size.groups, size.kernel_height, size.kernel_width};
}

Result<> check(std::string_view op, const Signature& signature) {
  MUSTER_TRY_VOID(require_floating(op, signature.inputs[0]));
  return require_equal_dtypes(op, signature);
}

Result<Conv2dSize> forward_size(const Signature& signature) {
  const TensorType& weight = signature.inputs[1];
  MUSTER_TRY_VOID(require_images("conv2d", "x", signature.inputs[0]));
  if (weight.shape.rank() != 4)
    return bad("conv2d: the weight must be (O, C / group, kernel height, kernel width), not {}",
               muster::to_string(weight.shape));
  return size_of("conv2d", signature.inputs[0].shape, weight.shape, signature.attributes);
}

Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(check("conv2d", signature));
  MUSTER_TRY(const Conv2dSize size, forward_size(signature));
  if (signature.inputs.size() == 3 && signature.inputs[2].shape != Shape{size.out_channels})
    return bad("conv2d: the bias must be ({},), not {}", size.out_channels,
               muster::to_string(signature.inputs[2].shape));
  return std::vector<TensorType>{{signature.inputs[0].dtype, y_shape(size)}};
}

// The size of the convolution whose gradient this is, when dy fits it.
Result<Conv2dSize> backward_size(std::string_view op, const Shape& x, const Shape& weight,
                                 const TensorType& dy, const Attributes& attributes) {
  MUSTER_TRY(const Conv2dSize size, size_of(op, x, weight, attributes));
  if (dy.shape != y_shape(size))
    return bad("{}: dy must be {}, not {}", op, muster::to_string(y_shape(size)),
               muster::to_string(dy.shape));
  return size;
}

Result<Conv2dSize> grad_input_size(const Signature& signature) {
  constexpr std::string_view op = "conv2d_grad_input";
  const TensorType& dy = signature.inputs[0];
  const Shape& weight = signature.inputs[1].shape;
  MUSTER_TRY_VOID(require_images(op, "dy", dy));
  if (weight.rank() != 4)
    return bad("{}: the weight must have 4 axes, not {}", op, muster::to_string(weight));
  MUSTER_TRY(const auto input, numbers(op, "input_size", signature.attributes, {0, 0}, 1));
  const Shape x{dy.shape[0], weight[1] * signature.attributes.get("group", std::int64_t{1}), input[0],
                input[1]};
  return backward_size(op, x, weight, dy, signature.attributes);
}

Types infer_grad_input(const Signature& signature) {
  MUSTER_TRY_VOID(check("conv2d_grad_input", signature));
  MUSTER_TRY(const Conv2dSize size, grad_input_size(signature));
  return std::vector<TensorType>{{signature.inputs[0].dtype, x_shape(size)}};
}

Result<Conv2dSize> grad_weight_size(const Signature& signature) {
  constexpr std::string_view op = "conv2d_grad_weight";
  const Shape& x = signature.inputs[0].shape;
  const TensorType& dy = signature.inputs[1];
  MUSTER_TRY_VOID(require_images(op, "x", signature.inputs[0]));
  MUSTER_TRY_VOID(require_images(op, "dy", dy));
  MUSTER_TRY(const auto kernel, numbers(op, "kernel", signature.attributes, {0, 0}, 1));
  const std::int64_t groups = std::max<std::int64_t>(signature.attributes.get("group", std::int64_t{1}), 1);
  return backward_size(op, x, {dy.shape[1], x[1] / groups, kernel[0], kernel[1]}, dy, signature.attributes);
}

Types infer_grad_weight(const Signature& signature) {
  MUSTER_TRY_VOID(check("conv2d_grad_weight", signature));
  MUSTER_TRY(const Conv2dSize size, grad_weight_size(signature));
  const DType dtype = signature.attributes.get("dtype", signature.inputs[0].dtype);
  return std::vector<TensorType>{{dtype, weight_shape(size)}};
}

Value grad_input(const Value& dy, const Value& weight, const Value& x, const Attributes& window) {
  Attributes attributes = window;
  attributes.set("input_size", std::vector<std::int64_t>{x.shape()[2], x.shape()[3]});
  return apply("conv2d_grad_input", {dy, weight}, attributes);
}
Value grad_weight(const Value& x, const Value& dy, const Value& weight, const Attributes& window) {
  Attributes attributes = window;
  attributes.set("kernel", std::vector<std::int64_t>{weight.shape()[2], weight.shape()[3]});
  return apply("conv2d_grad_weight", {x, dy}, attributes);
}

std::vector<Value> gradient(const GradientQuery& query) {
  const Value& x = query.inputs[0];
  const Value& weight = query.inputs[1];
  const Value& dy = query.output_gradients[0];
  const Attributes window = window_of(query.attributes);
  std::vector<Value> gradients{grad_input(dy, weight, x, window), grad_weight(x, dy, weight, window)};
  if (query.inputs.size() == 3) gradients.push_back(apply("channel_sum", {dy}));
  return gradients;
}

// All three maps are linear in each of their inputs, so their gradients are each other.
std::vector<Value> gradient_of_grad_input(const GradientQuery& query) {
  const Value& g = query.output_gradients[0];
  const Attributes window = window_of(query.attributes);
  return {apply("conv2d", {g, query.inputs[1]}, window),
          grad_weight(g, query.inputs[0], query.inputs[1], window)};
}
std::vector<Value> gradient_of_grad_weight(const GradientQuery& query) {
  const Value& g = query.output_gradients[0];
  const Attributes window = window_of(query.attributes);
  return {grad_input(query.inputs[1], g, query.inputs[0], window),
          apply("conv2d", {query.inputs[0], g}, window)};
}

bool has_relu(const Signature& signature) {
  return signature.attributes.get<std::string>("activation", "none") == "relu";
}

// Each output of the forward pass takes as many products as its kernel has weights; so do both gradients.
template <Result<Conv2dSize> (*size_of_signature)(const Signature&)>
double flops(const Signature& signature) {
  const Conv2dSize size = *size_of_signature(signature);
  return 2.0 * static_cast<double>(y_shape(size).elements()) *
         static_cast<double>(weight_shape(size).elements() / std::max<std::int64_t>(1, size.out_channels));
}

struct Settings {
  Conv2dSize size;
  bool bias = false;
  bool relu = false;
};

template <Direction direction, Result<Conv2dSize> (*size)(const Signature&)>
PrimitivePtr make(const PrimitiveLibrary& library, const Signature& signature) {
  return library.conv2d(setting_of(signature), *size(signature), direction, signature.inputs.size() == 3,
                        has_relu(signature));
}

// In a plan the library works on blocks of 16 channels: our own kernels are faster between fewer, and from or
// to fewer where the images lie as they want them already. Outside of plans, where everything is plain, they
// are faster for any kernel of more than one pixel until the channels are many. As measured.
constexpr std::int64_t few = 16;
constexpr std::int64_t many = 64;

template <Direction direction, Result<Conv2dSize> (*size)(const Signature&)>
bool suits_batch_blocked(const Signature& signature) {
  if (!is_float32_with_elements(signature)) return false;
  const Conv2dSize s = *size(signature);
  if (s.groups != 1) return false;
  if (!primitives_available()) return true;
  if (!fills_batch_blocks(s.batch)) return false;
  const std::int64_t least = std::min(s.in_channels, s.out_channels);
  const std::int64_t most = std::max(s.in_channels, s.out_channels);
  if (signature.formats.empty()) return most <= many && s.kernel_height * s.kernel_width > 1;
  const bool batch_blocked_images =
      comes_batch_blocked<0>(signature) ||
      (direction == Direction::grad_weight && comes_batch_blocked<1>(signature));
  return most < few || (least < few && batch_blocked_images);
}

template <Direction direction, Result<Conv2dSize> (*size)(const Signature&)>
Kernel own_kernel() {
  return batch_blocked_kernel<make<direction, size>, suits_batch_blocked<direction, size>>();
}

PrimitivePtr make_sum(const PrimitiveLibrary&, const Signature& signature) {
  return batch_blocked_channel_sum(setting_of(signature), signature.inputs[0].shape);
}

template <Result<Conv2dSize> (*size)(const Signature&)>
Prepared prepare(const Signature& signature) {
  return prepared(Settings{*size(signature), signature.inputs.size() == 3, has_relu(signature)});
}

template <class T>
void run(const KernelCall& call) {
  const auto& [size, bias, relu] = call.setting<Settings>();
  kernels::conv2d<T>(size, {.x = call.input<T>(0),
                            .weight = call.input<T>(1),
                            .bias = bias ? call.input<T>(2) : nullptr,
                            .y = call.output<T>(),
                            .relu = relu,
                            .threads = call.threads});
}
template <class T>
void run_grad_input(const KernelCall& call) {
  kernels::conv2d_grad_input<T>(
      call.setting<Settings>().size,
      {.dy = call.input<T>(0), .weight = call.input<T>(1), .dx = call.output<T>(), .threads = call.threads});
}
template <class T>
void run_grad_weight(const KernelCall& call) {
  kernels::conv2d_grad_weight<T>(
      call.setting<Settings>().size,
      {.x = call.input<T>(0), .dy = call.input<T>(1), .dweight = call.output<T>(), .threads = call.threads});
}

Types infer_sum(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY_VOID(require_floating("channel_sum", x));
  if (x.shape.rank() < 2)
    return bad("channel_sum: a tensor (N, C, ...) is needed, not {}", muster::to_string(x.shape));
  return std::vector<TensorType>{{x.dtype, {x.shape[1]}}};
}

std::vector<Value> gradient_of_sum(const GradientQuery& query) {
  const Shape& x = query.inputs[0].shape();
  std::vector<std::int64_t> spread(x.rank(), 1);
  spread[1] = x[1];
  const Value g = apply("reshape", {query.output_gradients[0]}, {{"shape", spread}});
  return {apply("broadcast_to", {g}, {{"shape", x.sizes()}})};
}

struct SumSettings {
  std::int64_t batch = 0, channels = 0, inner = 0;
};

Prepared prepare_sum(const Signature& signature) {
  const Shape& x = signature.inputs[0].shape;
  std::int64_t inner = 1;
  for (std::size_t axis = 2; axis < x.rank(); ++axis) inner *= x[axis];
  return prepared(SumSettings{x[0], x[1], inner});
}

template <class T>
void run_sum(const KernelCall& call) {
  const auto& [batch, channels, inner] = call.setting<SumSettings>();
  kernels::channel_sum(call.input<T>(0), call.output<T>(), batch, channels, inner);
}

// ONNX names the begins of both axes before the ends.
Result<> to_onnx(OnnxCall& call) {
  const Shape& weight = call.in(1).type.shape;
  MUSTER_TRY(const auto strides, numbers("conv2d", "strides", call.attributes(), {1, 1}, 1));
  MUSTER_TRY(const auto pads, numbers("conv2d", "pads", call.attributes(), {0, 0, 0, 0}, 0));
  MUSTER_TRY(const auto dilations, numbers("conv2d", "dilations", call.attributes(), {1, 1}, 1));
  return call.give("Conv", call.all_inputs(),
                   {{"kernel_shape", std::vector<std::int64_t>{weight[2], weight[3]}},
                    {"strides", strides},
                    {"pads", std::vector<std::int64_t>{pads[0], pads[2], pads[1], pads[3]}},
                    {"dilations", dilations},
                    {"group", call.attributes().get("group", std::int64_t{1})}});
}

}  // namespace conv2d_rows
}  // namespace

const Op& conv2d_op() {
  using namespace conv2d_rows;
  static const Op op{
      .name = "conv2d",
      .documentation =
          "y (N, O, H', W') from images x (N, C, H, W), a weight (O, C / group, kh, kw) and an optional bias "
          "(O,): the sum over the kernel and the channels of the group, x zero outside the image. strides "
          "[h, w], pads [top, bottom, left, right] in pixels, dilations [h, w], group; H' = floor((H + top + "
          "bottom - (kh - 1) dilation - 1) / stride) + 1. The compiler sets activation to 'relu' where relu "
          "follows. float32 or float64.",
      .inputs_min = 2,
      .inputs_max = 3,
      .infer = infer,
      .gradient = gradient,
      .flops = flops<forward_size>,
      .kernels = {own_kernel<Direction::forward, forward_size>(),
                  primitive_kernel<make<Direction::forward, forward_size>>(),
                  reference<float>(prepare<forward_size>, run<float>),
                  reference<double>(prepare<forward_size>, run<double>)},
      .precision = MixedPrecision::low,
      .onnx = to_onnx,
      .dimensions = conv_dimensions,
  };
  return op;
}

const Op& conv2d_grad_input_op() {
  using namespace conv2d_rows;
  static const Op op{
      .name = "conv2d_grad_input",
      .documentation =
          "The gradient of conv2d's x (N, C, H, W) from dy and the weight; H and W are input_size, the other "
          "attributes are conv2d's.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer_grad_input,
      .gradient = gradient_of_grad_input,
      .flops = flops<grad_input_size>,
      .kernels = {own_kernel<Direction::grad_input, grad_input_size>(),
                  primitive_kernel<make<Direction::grad_input, grad_input_size>>(),
                  reference<float>(prepare<grad_input_size>, run_grad_input<float>),
                  reference<double>(prepare<grad_input_size>, run_grad_input<double>)},
      .dimensions = conv_grad_input_dimensions,
  };
  return op;
}

const Op& conv2d_grad_weight_op() {
  using namespace conv2d_rows;
  static const Op op{
      .name = "conv2d_grad_weight",
      .documentation =
          "The gradient of conv2d's weight (O, C / group, kh, kw) from x and dy; kh and kw are kernel, the "
          "other attributes are conv2d's. Where x and dy are bfloat16 and a cast to float32 follows, the "
          "compiler sets dtype to float32.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer_grad_weight,
      .gradient = gradient_of_grad_weight,
      .flops = flops<grad_weight_size>,
      .kernels = {own_kernel<Direction::grad_weight, grad_weight_size>(),
                  primitive_kernel<make<Direction::grad_weight, grad_weight_size>>(),
                  reference<float>(prepare<grad_weight_size>, run_grad_weight<float>),
                  reference<double>(prepare<grad_weight_size>, run_grad_weight<double>)},
      .dimensions = conv_grad_weight_dimensions,
  };
  return op;
}

const Op& channel_sum_op() {
  using namespace conv2d_rows;
  static const Op op{
      .name = "channel_sum",
      .documentation = "(C,): the sums of x (N, C, ...) over all axes but the second; float32 or float64.",
      .infer = infer_sum,
      .gradient = gradient_of_sum,
      .kernels = {batch_blocked_kernel<make_sum, comes_batch_blocked<0>>(),
                  reference<float>(prepare_sum, run_sum<float>),
                  reference<double>(prepare_sum, run_sum<double>)},
      .dimensions = channel_sum_dimensions,
  };
  return op;
}

std::vector<const Op*> rows_of_conv2d() {
  return {&conv2d_op(), &conv2d_grad_input_op(), &conv2d_grad_weight_op(), &channel_sum_op()};
}

}  // namespace muster::graph
