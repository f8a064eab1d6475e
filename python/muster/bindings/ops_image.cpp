// conv2d, pooling and batch_norm as Python functions.
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Value;
using nn::ops::Pads;
using nn::ops::Pair;

std::vector<std::int64_t> integers(nb::handle object, const char* name) {
  std::vector<std::int64_t> found;
  const bool ok = PyLong_Check(object.ptr()) ? found.resize(1),
             nb::try_cast(object, found[0])  : nb::try_cast(object, found);
  if (!ok) throw nb::type_error(fmt::format("{} must be an int or a tuple of ints", name).c_str());
  return found;
}

// One number for both axes, or [h, w].
Pair pair_from(nb::handle object, const char* name) {
  const std::vector<std::int64_t> found = integers(object, name);
  if (found.size() == 1) return {found[0], found[0]};
  if (found.size() == 2) return {found[0], found[1]};
  throw nb::value_error(fmt::format("{} must be one number or two, not {}", name, found.size()).c_str());
}

// One number for all sides, two for height and width, or top, bottom, left, right.
Pads pads_from(nb::handle object) {
  const std::vector<std::int64_t> found = integers(object, "padding");
  if (found.size() == 1) return {found[0], found[0], found[0], found[0]};
  if (found.size() == 2) return {found[0], found[0], found[1], found[1]};
  if (found.size() == 4) return {found[0], found[1], found[2], found[3]};
  throw nb::value_error(fmt::format("padding must be 1, 2 or 4 numbers, not {}", found.size()).c_str());
}

Pads pads_for(const std::string& mode, nb::handle padding, const Value& x,
              const nn::ops::WindowOptions& window) {
  const Pads given = pads_from(padding);
  if (mode == "pad") return given;
  if (mode != "valid" && mode != "same")
    throw nb::value_error(fmt::format("pad_mode must be 'valid', 'same' or 'pad', not '{}'", mode).c_str());
  if (given != Pads{})
    throw nb::value_error(fmt::format("padding is for pad_mode='pad'; with '{}' it must be 0", mode).c_str());
  return mode == "same" && x.defined() ? nn::ops::same_pads(x.shape(), window) : Pads{};
}

Value tensor_or_nothing(nb::handle object) { return object.is_none() ? Value() : value_from(object); }

TensorObject conv2d(const Value& x, const Value& weight, nb::handle bias, nb::handle stride,
                    const std::string& pad_mode, nb::handle padding, nb::handle dilation,
                    std::int64_t groups) {
  nn::ops::Conv2dOptions options{
      .strides = pair_from(stride, "stride"), .dilations = pair_from(dilation, "dilation"), .group = groups};
  nn::ops::WindowOptions window{.strides = options.strides, .dilations = options.dilations};
  if (weight.defined() && weight.shape().rank() == 4) window.kernel = {weight.shape()[2], weight.shape()[3]};
  options.pads = pads_for(pad_mode, padding, x, window);
  return tensor_result(nn::ops::conv2d(x, weight, tensor_or_nothing(bias), options));
}

nn::ops::PoolOptions pooling(nb::handle kernel_size, nb::handle stride, nb::handle padding, bool ceil_mode) {
  const Pair kernel = pair_from(kernel_size, "kernel_size");
  return {.kernel = kernel,
          .strides = stride.is_none() ? kernel : pair_from(stride, "stride"),
          .pads = pads_from(padding),
          .ceil_mode = ceil_mode};
}

// What MindSpore's signature has and Muster has not: only the default is taken.
void require_default(bool is_default, const char* what) {
  if (!is_default) raise({Code::not_provided, fmt::format("{} is not provided by Muster yet", what)});
}

TensorObject max_pool2d(const Value& x, nb::handle kernel_size, nb::handle stride, nb::handle padding,
                        nb::handle dilation, bool return_indices, bool ceil_mode) {
  require_default(pair_from(dilation, "dilation") == Pair{1, 1}, "max_pool2d with a dilation");
  require_default(!return_indices, "max_pool2d with return_indices");
  return tensor_result(nn::ops::max_pool2d(x, pooling(kernel_size, stride, padding, ceil_mode)));
}

TensorObject avg_pool2d(const Value& x, nb::handle kernel_size, nb::handle stride, nb::handle padding,
                        bool ceil_mode, bool count_include_pad, std::int64_t divisor_override) {
  require_default(divisor_override == 0, "avg_pool2d with divisor_override");
  nn::ops::PoolOptions options = pooling(kernel_size, stride, padding, ceil_mode);
  options.count_include_pad = count_include_pad;
  return tensor_result(nn::ops::avg_pool2d(x, options));
}

// A size that is None stays what it is.
TensorObject adaptive_avg_pool2d(const Value& x, nb::handle output_size) {
  const bool both = !nb::isinstance<nb::tuple>(output_size) && !nb::isinstance<nb::list>(output_size);
  if (!both && nb::len(output_size) != 2) throw nb::value_error("output_size must be one number or two");
  Pair sizes{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const nb::object size = both ? nb::borrow(output_size) : nb::object(output_size[axis]);
    if (size.is_none())
      sizes[axis] = x.defined() && x.shape().rank() == 4 ? x.shape()[2 + axis] : 1;
    else
      sizes[axis] = pair_from(size, "output_size")[0];
  }
  return tensor_result(nn::ops::adaptive_avg_pool2d(x, sizes));
}

TensorObject batch_norm(const Value& x, const Value& running_mean, const Value& running_var,
                        const Value& weight, const Value& bias, bool training, double momentum, double eps) {
  return tensor_result(nn::ops::batch_norm(x, weight, bias, {.mean = running_mean, .variance = running_var},
                                           {.eps = eps, .momentum = 1 - momentum, .training = training}));
}

}  // namespace

void bind_image(nb::module_& core) {
  core.def(
      "conv2d", &conv2d, nb::arg("input"), nb::arg("weight"), nb::arg("bias") = nb::none(),
      nb::arg("stride") = 1, nb::arg("pad_mode") = "valid", nb::arg("padding") = 0, nb::arg("dilation") = 1,
      nb::arg("groups") = 1,
      nb::sig("def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, "
              "stride: int | tuple[int, ...] = 1, pad_mode: str = 'valid', "
              "padding: int | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, "
              "groups: int = 1) -> Tensor"),
      "Images (N, C, H, W) convolved with a weight (O, C / groups, kernel height, kernel width), plus a "
      "bias (O,): (N, O, H', W'). `stride` and `dilation` are one number or [h, w]. `pad_mode` is 'valid' "
      "(no padding), 'same' (H' is H / stride rounded up) or 'pad': `padding` pixels of zeros, one number, "
      "[h, w] or [top, bottom, left, right]. Raises ValueError when shapes do not fit.");
  core.def("max_pool2d", &max_pool2d, nb::arg("x"), nb::arg("kernel_size"), nb::arg("stride") = nb::none(),
           nb::arg("padding") = 0, nb::arg("dilation") = 1, nb::arg("return_indices") = false,
           nb::arg("ceil_mode") = false,
           nb::sig("def max_pool2d(x: Tensor, kernel_size: int | tuple[int, ...], "
                   "stride: int | tuple[int, ...] | None = None, padding: int | tuple[int, ...] = 0, "
                   "dilation: int | tuple[int, ...] = 1, return_indices: bool = False, "
                   "ceil_mode: bool = False) -> Tensor"),
           "The greatest pixel of each window of images (N, C, H, W). `stride` is the window's size unless "
           "given; `padding` pixels around the image are never the greatest; with `ceil_mode` windows may "
           "reach over the end.");
  core.def(
      "avg_pool2d", &avg_pool2d, nb::arg("x"), nb::arg("kernel_size") = 1, nb::arg("stride") = 1,
      nb::arg("padding") = 0, nb::arg("ceil_mode") = false, nb::arg("count_include_pad") = true,
      nb::arg("divisor_override") = 0,
      nb::sig(
          "def avg_pool2d(x: Tensor, kernel_size: int | tuple[int, ...] = 1, "
          "stride: int | tuple[int, ...] | None = 1, padding: int | tuple[int, ...] = 0, "
          "ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int = 0) -> Tensor"),
      "The average of each window of images (N, C, H, W), padding counted as zeros or, without "
      "`count_include_pad`, not at all. `stride` None is the window's size.");
  core.def(
      "adaptive_avg_pool2d", &adaptive_avg_pool2d, nb::arg("input"), nb::arg("output_size").none(),
      nb::sig("def adaptive_avg_pool2d(input: Tensor, output_size: int | tuple[int | None, int | None] | "
              "None) -> Tensor"),
      "Images (N, C, H, W) averaged down to `output_size`, one number or (h, w), None for the size that it "
      "has: output i of an axis averages the pixels from floor(i in / out) to ceil((i + 1) in / out).");
  core.def(
      "batch_norm", &batch_norm, nb::arg("input_x"), nb::arg("running_mean"), nb::arg("running_var"),
      nb::arg("weight"), nb::arg("bias"), nb::arg("training") = false, nb::arg("momentum") = 0.1,
      nb::arg("eps") = 1e-5,
      "(x - mean) / sqrt(variance + eps) * weight + bias by channel of x (N, C, ...). With `training`, mean "
      "and variance are the batch's, and running = (1 - momentum) running + momentum batch is written in "
      "place (the variance unbiased); else they are the running ones.");
}

}  // namespace muster::python
