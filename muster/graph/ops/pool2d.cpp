// max_pool2d, avg_pool2d, adaptive_avg_pool2d and their gradients.
#include <algorithm>

#include "muster/graph/ops/primitive.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/ops/window.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace pool2d_rows {

using kernels::Pool2dSize;

// How many windows fit along one axis; with ceil_mode also one that begins in the image and reaches beyond.
Result<std::int64_t> windows(std::string_view op, std::int64_t in, std::int64_t before, std::int64_t after,
                             std::int64_t kernel, std::int64_t stride, bool ceil_mode) {
  const std::int64_t free = in + before + after - kernel;
  if (free < 0)
    return bad("{}: a window of {} pixels does not fit an image of {} with its padding", op, kernel,
               in + before + after);
  std::int64_t count = (free + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (count - 1) * stride >= in + before) --count;
  return count;
}

// `x` is (N, C, H, W).
Result<Pool2dSize> size_of(std::string_view op, const Shape& x, const Attributes& attributes) {
  MUSTER_TRY(const auto kernel, numbers(op, "kernel", attributes, {0, 0}, 1));
  MUSTER_TRY(const auto strides, numbers(op, "strides", attributes, {1, 1}, 1));
  MUSTER_TRY(const auto pads, numbers(op, "pads", attributes, {0, 0, 0, 0}, 0));
  // A window that lies in the padding alone would have no greatest pixel.
  for (std::size_t i = 0; i < pads.size(); ++i)
    if (pads[i] >= kernel[i / 2])
      return bad("{}: pads {} must be smaller than the kernel {}", op, to_string(Attribute(pads)),
                 to_string(Attribute(kernel)));
  const bool ceil_mode = attributes.get("ceil_mode", false);
  MUSTER_TRY(const std::int64_t height,
             windows(op, x[2], pads[0], pads[1], kernel[0], strides[0], ceil_mode));
  MUSTER_TRY(const std::int64_t width, windows(op, x[3], pads[2], pads[3], kernel[1], strides[1], ceil_mode));
  return Pool2dSize{.batch = x[0],
                    .channels = x[1],
                    .in_height = x[2],
                    .in_width = x[3],
                    .out_height = height,
                    .out_width = width,
                    .kernel_height = kernel[0],
                    .kernel_width = kernel[1],
                    .stride_height = strides[0],
                    .stride_width = strides[1],
                    .pad_top = pads[0],
                    .pad_bottom = pads[1],
                    .pad_left = pads[2],
                    .pad_right = pads[3],
                    .count_include_pad = attributes.get("count_include_pad", false)};
}

Result<Pool2dSize> adaptive_size(std::string_view op, const Shape& x, const Attributes& attributes) {
  MUSTER_TRY(const auto output, numbers(op, "output_size", attributes, {0, 0}, 1));
  if (x[2] < 1 || x[3] < 1) return bad("{}: the images {} are empty", op, muster::to_string(x));
  return Pool2dSize{.batch = x[0],
                    .channels = x[1],
                    .in_height = x[2],
                    .in_width = x[3],
                    .out_height = output[0],
                    .out_width = output[1]};
}

using SizeRule = Result<Pool2dSize> (*)(std::string_view, const Shape&, const Attributes&);

Result<Pool2dSize> forward_size(std::string_view op, SizeRule rule, const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY_VOID(require_floating(op, x));
  MUSTER_TRY_VOID(require_images(op, "x", x));
  return rule(op, x.shape, signature.attributes);
}

// Of the pooling whose gradient this is; dy must fit it.
Result<Pool2dSize> backward_size(std::string_view op, SizeRule rule, const Signature& signature) {
  const TensorType& dy = signature.inputs[0];
  MUSTER_TRY_VOID(require_floating(op, dy));
  MUSTER_TRY_VOID(require_images(op, "dy", dy));
  MUSTER_TRY(const auto input, numbers(op, "input_size", signature.attributes, {0, 0}, 1));
  MUSTER_TRY(const Pool2dSize size,
             rule(op, {dy.shape[0], dy.shape[1], input[0], input[1]}, signature.attributes));
  if (dy.shape[2] != size.out_height || dy.shape[3] != size.out_width)
    return bad("{}: dy must have {} by {} pixels, not {}", op, size.out_height, size.out_width,
               muster::to_string(dy.shape));
  return size;
}

Shape x_shape(const Pool2dSize& size) { return {size.batch, size.channels, size.in_height, size.in_width}; }
Shape y_shape(const Pool2dSize& size) { return {size.batch, size.channels, size.out_height, size.out_width}; }

DType positions_dtype(const Pool2dSize& size) {
  return size.kernel_height * size.kernel_width <= 255 ? DType::uint8 : DType::int32;
}

Types infer_max(const Signature& signature) {
  MUSTER_TRY(const Pool2dSize size, forward_size("max_pool2d", size_of, signature));
  return std::vector<TensorType>{{signature.inputs[0].dtype, y_shape(size)},
                                 {positions_dtype(size), y_shape(size)}};
}

Types infer_max_grad(const Signature& signature) {
  MUSTER_TRY(const Pool2dSize size, backward_size("max_pool2d_grad", size_of, signature));
  const TensorType wanted{positions_dtype(size), y_shape(size)};
  if (signature.inputs[1] != wanted)
    return bad("max_pool2d_grad: the positions must be {}, not {}", to_string(wanted),
               to_string(signature.inputs[1]));
  return std::vector<TensorType>{{signature.inputs[0].dtype, x_shape(size)}};
}

struct AvgNames {
  static constexpr std::string_view forward = "avg_pool2d";
  static constexpr std::string_view backward = "avg_pool2d_grad";
  static constexpr SizeRule rule = size_of;
};
struct AdaptiveNames {
  static constexpr std::string_view forward = "adaptive_avg_pool2d";
  static constexpr std::string_view backward = "adaptive_avg_pool2d_grad";
  static constexpr SizeRule rule = adaptive_size;
};

template <class Names>
Types infer_avg(const Signature& signature) {
  MUSTER_TRY(const Pool2dSize size, forward_size(Names::forward, Names::rule, signature));
  return std::vector<TensorType>{{signature.inputs[0].dtype, y_shape(size)}};
}
template <class Names>
Types infer_avg_grad(const Signature& signature) {
  MUSTER_TRY(const Pool2dSize size, backward_size(Names::backward, Names::rule, signature));
  return std::vector<TensorType>{{signature.inputs[0].dtype, x_shape(size)}};
}

Attributes window_of(const Attributes& attributes) {
  return only(attributes, {"kernel", "strides", "pads", "ceil_mode", "count_include_pad", "output_size"});
}

Attributes backward_attributes(const GradientQuery& query) {
  Attributes attributes = window_of(query.attributes);
  const Shape& x = query.inputs[0].shape();
  attributes.set("input_size", std::vector<std::int64_t>{x[2], x[3]});
  return attributes;
}

std::vector<Value> gradient_max(const GradientQuery& query) {
  return {
      apply("max_pool2d_grad", {query.output_gradients[0], query.outputs[1]}, backward_attributes(query))};
}
template <class Names>
std::vector<Value> gradient_avg(const GradientQuery& query) {
  return {apply(Names::backward, {query.output_gradients[0]}, backward_attributes(query))};
}
// Where the greatest pixels lie in their images (H, W) as one row of pixels: int32 like the positions.
Value pixels_of(const Value& positions, const Pool2dSize& size) {
  const Value in_window = apply("cast", {positions}, {{"dtype", DType::int32}});
  const Value width = scalar_like(in_window, static_cast<double>(size.kernel_width));
  const Value row = apply("floor_div", {in_window, width});
  const Value column = minus(in_window, times(row, width));
  const auto starts = [](std::int64_t windows, std::int64_t stride, std::int64_t before, bool is_row) {
    Tensor made(DType::int32, is_row ? Shape{windows, 1} : Shape{windows});
    for (std::int64_t i = 0; i < windows; ++i)
      made.data<std::int32_t>()[i] = static_cast<std::int32_t>(i * stride - before);
    return Value(made);
  };
  const Value y = plus(row, starts(size.out_height, size.stride_height, size.pad_top, true));
  const Value x = plus(column, starts(size.out_width, size.stride_width, size.pad_left, false));
  return plus(times(y, static_cast<double>(size.in_width)), x);
}

// What flows back to dy is what flows to the pixel that it came from.
std::vector<Value> gradient_max_grad(const GradientQuery& query) {
  const Value& flow = query.output_gradients[0];
  const Pool2dSize size = *size_of("max_pool2d_grad", flow.shape(), query.attributes);
  const auto by_image = [&size](const Value& value, std::int64_t pixels) {
    return apply("reshape", {value},
                 {{"shape", std::vector<std::int64_t>{size.batch, size.channels, pixels}}});
  };
  const Value index = by_image(pixels_of(query.inputs[1], size), size.out_height * size.out_width);
  const Value picked = apply("gather_elements", {by_image(flow, size.in_height * size.in_width), index},
                             {{"axis", std::int64_t{2}}});
  return {apply("reshape", {picked}, {{"shape", query.inputs[0].shape().sizes()}}), Value()};
}

// The gradient of a linear map's gradient is the map.
template <class Names>
std::vector<Value> gradient_avg_grad(const GradientQuery& query) {
  return {apply(Names::forward, {query.output_gradients[0]}, window_of(query.attributes))};
}

template <SizeRule rule>
Prepared prepare(const Signature& signature) {
  return prepared(*forward_size("pooling", rule, signature));
}
template <SizeRule rule>
Prepared prepare_grad(const Signature& signature) {
  return prepared(*backward_size("pooling", rule, signature));
}

template <class T, class P>
void run_max(const KernelCall& call) {
  kernels::max_pool2d<T, P>(call.setting<Pool2dSize>(), {.x = call.input<T>(0),
                                                         .y = call.output<T>(0),
                                                         .positions = call.output<P>(1),
                                                         .threads = call.threads});
}
template <class T, class P>
void run_max_grad(const KernelCall& call) {
  kernels::max_pool2d_grad<T, P>(call.setting<Pool2dSize>(), {.dy = call.input<T>(0),
                                                              .positions = call.input<P>(1),
                                                              .dx = call.output<T>(),
                                                              .threads = call.threads});
}

template <class T, class P>
bool usable_max(const Signature& signature) {
  return first_is<T>(signature) && signature.outputs[1].dtype == dtype_of<P>;
}
template <class T, class P>
bool usable_max_grad(const Signature& signature) {
  return first_is<T>(signature) && signature.inputs[1].dtype == dtype_of<P>;
}
template <class T, class P>
Kernel max_kernel() {
  return {"reference", usable_max<T, P>, prepare<size_of>, run_max<T, P>};
}
template <class T, class P>
Kernel max_grad_kernel() {
  return {"reference", usable_max_grad<T, P>, prepare_grad<size_of>, run_max_grad<T, P>};
}

template <class T>
using Average = void (*)(const Pool2dSize&, const kernels::AvgPool2dArguments<T>&);

template <class T, Average<T> average>
void run_avg(const KernelCall& call) {
  average(call.setting<Pool2dSize>(),
          {.x = call.input<T>(0), .y = call.output<T>(), .threads = call.threads});
}

PrimitivePtr make_max(const PrimitiveLibrary& library, const Signature& signature) {
  return library.max_pool2d(setting_of(signature), *forward_size("max_pool2d", size_of, signature),
                            Direction::forward);
}
PrimitivePtr make_max_grad(const PrimitiveLibrary& library, const Signature& signature) {
  return library.max_pool2d(setting_of(signature), *backward_size("max_pool2d_grad", size_of, signature),
                            Direction::grad_input);
}

PrimitivePtr make_avg(const PrimitiveLibrary& library, const Signature& signature) {
  return library.avg_pool2d(setting_of(signature), *forward_size("avg_pool2d", size_of, signature),
                            Direction::forward);
}
PrimitivePtr make_avg_grad(const PrimitiveLibrary& library, const Signature& signature) {
  return library.avg_pool2d(setting_of(signature), *backward_size("avg_pool2d_grad", size_of, signature),
                            Direction::grad_input);
}

// Where the sizes divide, an adaptive pooling is a plain one.
PrimitivePtr make_even(const PrimitiveLibrary& library, const Signature& signature, Pool2dSize size,
                       Direction direction) {
  if (size.in_height % size.out_height != 0 || size.in_width % size.out_width != 0) return nullptr;
  size.kernel_height = size.stride_height = size.in_height / size.out_height;
  size.kernel_width = size.stride_width = size.in_width / size.out_width;
  return library.avg_pool2d(setting_of(signature), size, direction);
}
PrimitivePtr make_adaptive(const PrimitiveLibrary& library, const Signature& signature) {
  return make_even(library, signature, *forward_size("adaptive_avg_pool2d", adaptive_size, signature),
                   Direction::forward);
}
PrimitivePtr make_adaptive_grad(const PrimitiveLibrary& library, const Signature& signature) {
  return make_even(library, signature, *backward_size("adaptive_avg_pool2d_grad", adaptive_size, signature),
                   Direction::grad_input);
}

// ---- ONNX -------------------------------------------------------------------------------------------------

// Windows that reach over the end (ceil_mode) get padding there: runtimes differ in what they make of
// ONNX's own ceil_mode.
Result<OnnxAttributes> onnx_window(const OnnxCall& call) {
  MUSTER_TRY(const Pool2dSize size, size_of("pooling", call.in().type.shape, call.attributes()));
  const auto end = [](std::int64_t out, std::int64_t stride, std::int64_t kernel, std::int64_t in,
                      std::int64_t before) {
    return std::max<std::int64_t>(0, (out - 1) * stride + kernel - in - before);
  };
  const std::int64_t bottom =
      std::max(size.pad_bottom,
               end(size.out_height, size.stride_height, size.kernel_height, size.in_height, size.pad_top));
  const std::int64_t right = std::max(size.pad_right, end(size.out_width, size.stride_width,
                                                          size.kernel_width, size.in_width, size.pad_left));
  return OnnxAttributes{{"kernel_shape", std::vector<std::int64_t>{size.kernel_height, size.kernel_width}},
                        {"strides", std::vector<std::int64_t>{size.stride_height, size.stride_width}},
                        {"pads", std::vector<std::int64_t>{size.pad_top, size.pad_left, bottom, right}}};
}

Result<> onnx_max(OnnxCall& call) {
  MUSTER_TRY(OnnxAttributes window, onnx_window(call));
  return call.give("MaxPool", {call.input()}, std::move(window));
}

Result<> onnx_avg(OnnxCall& call) {
  const bool counts_padding = call.attributes().get("count_include_pad", false);
  if (counts_padding && call.attributes().get("ceil_mode", false))
    return call.refuse(
        "with ceil_mode and count_include_pad runtimes differ in what they divide by: pad the "
        "images and leave both away");
  MUSTER_TRY(OnnxAttributes window, onnx_window(call));
  window.push_back({"count_include_pad", std::int64_t{counts_padding}});
  return call.give("AveragePool", {call.input()}, std::move(window));
}

Result<> onnx_adaptive_avg(OnnxCall& call) {
  MUSTER_TRY(const Pool2dSize size,
             adaptive_size("adaptive_avg_pool2d", call.in().type.shape, call.attributes()));
  if (size.out_height == 1 && size.out_width == 1) return call.give("GlobalAveragePool", {call.input()});
  if (size.in_height % size.out_height != 0 || size.in_width % size.out_width != 0)
    return call.refuse(
        "its windows differ in size, which ONNX's AveragePool cannot have: choose an output_size "
        "that divides the image");
  const std::vector<std::int64_t> window{size.in_height / size.out_height, size.in_width / size.out_width};
  return call.give("AveragePool", {call.input()}, {{"kernel_shape", window}, {"strides", window}});
}

}  // namespace pool2d_rows
}  // namespace

const Op& max_pool2d_op() {
  using namespace pool2d_rows;
  static const Op op{
      .name = "max_pool2d",
      .documentation =
          "The greatest pixel of each window of images x (N, C, H, W); kernel [h, w], strides [h, w], pads "
          "[top, bottom, left, right] (never the greatest), ceil_mode: also windows that reach over the end. "
          "The second output says which pixel of the window it is, the first of equals.",
      .outputs = 2,
      .infer = infer_max,
      .gradient = gradient_max,
      .kernels = {batch_blocked_kernel<make_max, comes_batch_blocked<0>>(), primitive_kernel<make_max>(),
                  max_kernel<float, std::uint8_t>(), max_kernel<float, std::int32_t>(),
                  max_kernel<double, std::uint8_t>(), max_kernel<double, std::int32_t>()},
      .onnx = onnx_max,
      .dimensions = pool_dimensions,
  };
  return op;
}

const Op& max_pool2d_grad_op() {
  using namespace pool2d_rows;
  static const Op op{
      .name = "max_pool2d_grad",
      .documentation =
          "The gradient of max_pool2d's x from dy and the positions (its second output); H and W are "
          "input_size, the other attributes are max_pool2d's.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer_max_grad,
      .gradient = gradient_max_grad,
      .kernels = {batch_blocked_kernel<make_max_grad, comes_batch_blocked<1>>(),
                  primitive_kernel<make_max_grad>(), max_grad_kernel<float, std::uint8_t>(),
                  max_grad_kernel<float, std::int32_t>(), max_grad_kernel<double, std::uint8_t>(),
                  max_grad_kernel<double, std::int32_t>()},
      .dimensions = pool_dimensions,
  };
  return op;
}

const Op& avg_pool2d_op() {
  using namespace pool2d_rows;
  static const Op op{
      .name = "avg_pool2d",
      .documentation =
          "The average of each window of images x (N, C, H, W): over its pixels in the image, or with "
          "count_include_pad in the padded image; kernel, strides, pads and ceil_mode as in max_pool2d.",
      .infer = infer_avg<AvgNames>,
      .gradient = gradient_avg<AvgNames>,
      .kernels = {batch_blocked_kernel<make_avg, comes_batch_blocked<0>>(), primitive_kernel<make_avg>(),
                  reference<float>(prepare<size_of>, run_avg<float, kernels::avg_pool2d<float>>),
                  reference<double>(prepare<size_of>, run_avg<double, kernels::avg_pool2d<double>>)},
      .onnx = onnx_avg,
      .dimensions = pool_dimensions,
  };
  return op;
}

const Op& avg_pool2d_grad_op() {
  using namespace pool2d_rows;
  static const Op op{
      .name = "avg_pool2d_grad",
      .documentation =
          "The gradient of avg_pool2d's x from dy; H and W are input_size, the other attributes are "
          "avg_pool2d's.",
      .infer = infer_avg_grad<AvgNames>,
      .gradient = gradient_avg_grad<AvgNames>,
      .kernels = {batch_blocked_kernel<make_avg_grad, comes_batch_blocked<0>>(),
                  primitive_kernel<make_avg_grad>(),
                  reference<float>(prepare_grad<size_of>, run_avg<float, kernels::avg_pool2d_grad<float>>),
                  reference<double>(prepare_grad<size_of>,
                                    run_avg<double, kernels::avg_pool2d_grad<double>>)},
      .dimensions = pool_dimensions,
  };
  return op;
}

const Op& adaptive_avg_pool2d_op() {
  using namespace pool2d_rows;
  static const Op op{
      .name = "adaptive_avg_pool2d",
      .documentation =
          "Images x (N, C, H, W) averaged down to output_size [h, w]: output i of an axis averages the "
          "pixels [floor(i in / out), ceil((i + 1) in / out)).",
      .infer = infer_avg<AdaptiveNames>,
      .gradient = gradient_avg<AdaptiveNames>,
      .kernels =
          {batch_blocked_kernel<make_adaptive, comes_batch_blocked<0>>(), primitive_kernel<make_adaptive>(),
           reference<float>(prepare<adaptive_size>, run_avg<float, kernels::adaptive_avg_pool2d<float>>),
           reference<double>(prepare<adaptive_size>, run_avg<double, kernels::adaptive_avg_pool2d<double>>)},
      .onnx = onnx_adaptive_avg,
      .dimensions = pool_dimensions,
  };
  return op;
}

const Op& adaptive_avg_pool2d_grad_op() {
  using namespace pool2d_rows;
  static const Op op{
      .name = "adaptive_avg_pool2d_grad",
      .documentation = "The gradient of adaptive_avg_pool2d's x from dy; H and W are input_size.",
      .infer = infer_avg_grad<AdaptiveNames>,
      .gradient = gradient_avg_grad<AdaptiveNames>,
      .kernels = {batch_blocked_kernel<make_adaptive_grad, comes_batch_blocked<0>>(),
                  primitive_kernel<make_adaptive_grad>(),
                  reference<float>(prepare_grad<adaptive_size>,
                                   run_avg<float, kernels::adaptive_avg_pool2d_grad<float>>),
                  reference<double>(prepare_grad<adaptive_size>,
                                    run_avg<double, kernels::adaptive_avg_pool2d_grad<double>>)},
      .dimensions = pool_dimensions,
  };
  return op;
}

std::vector<const Op*> rows_of_pool2d() {
  return {&max_pool2d_op(),      &max_pool2d_grad_op(),     &avg_pool2d_op(),
          &avg_pool2d_grad_op(), &adaptive_avg_pool2d_op(), &adaptive_avg_pool2d_grad_op()};
}

}  // namespace muster::graph
