// Cells over images: convolutions and pools.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/cell_arguments.h"
#include "python/muster/bindings/initializer.h"

namespace muster::python {
namespace {

void init_conv2d(nb::pointer_and_handle<nn::Conv2d> self, std::int64_t in_channels, std::int64_t out_channels,
                 nb::handle kernel_size, nb::handle stride, nb::handle pad_mode, nb::handle padding,
                 nb::handle dilation, std::int64_t group, bool has_bias, nb::handle weight_init,
                 nb::handle bias_init, const std::string& data_format, nb::handle dtype) {
  require_nchw(data_format, "Conv2d");
  require_float32(dtype, "Conv2d");
  const nn::Size2d kernel = size_from(kernel_size, "Conv2d(kernel_size)");
  nn::Conv2dOptions options{.stride = size_from(stride, "Conv2d(stride)"),
                            .pad_mode = pad_mode_from(pad_mode, "Conv2d"),
                            .padding = padding_from(padding, "Conv2d(padding)"),
                            .dilation = size_from(dilation, "Conv2d(dilation)"),
                            .group = group,
                            .has_bias = has_bias};
  const bool fits =
      group > 0 && in_channels >= group && out_channels > 0 && kernel.height > 0 && kernel.width > 0;
  if (fits) {  // else the cell refuses them
    const Shape shape{out_channels, in_channels / group, kernel.height, kernel.width};
    options.weight_init = optional_initializer_from(weight_init, shape, "weight_init");
    options.bias_init = optional_initializer_from(bias_init, {out_channels}, "bias_init");
  }
  make_cell(self, in_channels, out_channels, kernel, std::move(options));
}

void init_conv1d(nb::pointer_and_handle<nn::Conv1d> self, std::int64_t in_channels, std::int64_t out_channels,
                 std::int64_t kernel_size, std::int64_t stride, nb::handle pad_mode, std::int64_t padding,
                 std::int64_t dilation, std::int64_t group, bool has_bias, nb::handle weight_init,
                 nb::handle bias_init) {
  nn::Conv1dOptions options{.stride = stride,
                            .pad_mode = pad_mode_from(pad_mode, "Conv1d"),
                            .padding = padding,
                            .dilation = dilation,
                            .group = group,
                            .has_bias = has_bias};
  if (group > 0 && in_channels >= group && out_channels > 0 &&
      kernel_size > 0) {  // else the cell refuses them
    options.weight_init = optional_initializer_from(
        weight_init, {out_channels, in_channels / group, 1, kernel_size}, "weight_init");
    options.bias_init = optional_initializer_from(bias_init, {out_channels}, "bias_init");
  }
  make_cell(self, in_channels, out_channels, kernel_size, options);
}

void init_conv2d_transpose(nb::pointer_and_handle<nn::Conv2dTranspose> self, std::int64_t in_channels,
                           std::int64_t out_channels, nb::handle kernel_size, nb::handle stride,
                           nb::handle pad_mode, nb::handle padding, nb::handle output_padding,
                           nb::handle dilation, std::int64_t group, bool has_bias, nb::handle weight_init,
                           nb::handle bias_init) {
  const nn::Size2d kernel = size_from(kernel_size, "Conv2dTranspose(kernel_size)");
  nn::Conv2dTransposeOptions options{
      .stride = size_from(stride, "Conv2dTranspose(stride)"),
      .pad_mode = pad_mode_from(pad_mode, "Conv2dTranspose"),
      .padding = padding_from(padding, "Conv2dTranspose(padding)"),
      .output_padding = size_from(output_padding, "Conv2dTranspose(output_padding)"),
      .dilation = size_from(dilation, "Conv2dTranspose(dilation)"),
      .group = group,
      .has_bias = has_bias};
  if (group > 0 && in_channels > 0 && out_channels >= group && kernel.height > 0 && kernel.width > 0) {
    options.weight_init = optional_initializer_from(
        weight_init, {in_channels, out_channels / group, kernel.height, kernel.width}, "weight_init");
    options.bias_init = optional_initializer_from(bias_init, {out_channels}, "bias_init");
  }
  make_cell(self, in_channels, out_channels, kernel, options);
}

void init_max_pool(nb::pointer_and_handle<nn::MaxPool2d> self, nb::handle kernel_size, nb::handle stride,
                   nb::handle pad_mode, nb::handle padding, nb::handle dilation, bool return_indices,
                   bool ceil_mode, const std::string& data_format) {
  require_nchw(data_format, "MaxPool2d");
  const nn::Size2d apart = size_from(dilation, "MaxPool2d(dilation)");
  if (apart.height != 1 || apart.width != 1)
    raise(Error{Code::not_provided, "MaxPool2d: dilation other than 1 is not provided"});
  if (return_indices) raise(Error{Code::not_provided, "MaxPool2d: return_indices is not provided"});
  make_cell(self, nn::MaxPool2dOptions{.kernel_size = size_from(kernel_size, "MaxPool2d(kernel_size)"),
                                       .stride = size_from(stride, "MaxPool2d(stride)"),
                                       .pad_mode = pad_mode_from(pad_mode, "MaxPool2d"),
                                       .padding = padding_from(padding, "MaxPool2d(padding)"),
                                       .ceil_mode = ceil_mode});
}

void init_avg_pool(nb::pointer_and_handle<nn::AvgPool2d> self, nb::handle kernel_size, nb::handle stride,
                   nb::handle pad_mode, nb::handle padding, bool ceil_mode, bool count_include_pad,
                   std::optional<std::int64_t> divisor_override, const std::string& data_format) {
  require_nchw(data_format, "AvgPool2d");
  make_cell(self, nn::AvgPool2dOptions{.kernel_size = size_from(kernel_size, "AvgPool2d(kernel_size)"),
                                       .stride = size_from(stride, "AvgPool2d(stride)"),
                                       .pad_mode = pad_mode_from(pad_mode, "AvgPool2d"),
                                       .padding = padding_from(padding, "AvgPool2d(padding)"),
                                       .ceil_mode = ceil_mode,
                                       .count_include_pad = count_include_pad,
                                       .divisor_override = divisor_override});
}

std::optional<std::int64_t> optional_size(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  return nb::cast<std::int64_t>(object);
}

void init_adaptive(nb::pointer_and_handle<nn::AdaptiveAvgPool2d> self, nb::handle output_size) {
  if (nb::isinstance<nb::tuple>(output_size) || nb::isinstance<nb::list>(output_size)) {
    if (nb::len(output_size) != 2)
      throw nb::value_error("AdaptiveAvgPool2d: output_size is a number or a pair of them");
    make_cell(self, optional_size(output_size[0]), optional_size(output_size[1]));
    return;
  }
  make_cell(self, optional_size(output_size), optional_size(output_size));
}

void bind_conv(nb::module_& core) {
  bind_cell_class<nn::Conv2d>(core, "Conv2d",
                              "(N, in_channels, H, W) to (N, out_channels, H', W'): sums of x weight over "
                              "channels and kernel, plus bias. Its parameters are `weight` (out_channels, "
                              "in_channels / group, kernel height, kernel width) and, with has_bias, `bias` "
                              "(out_channels,). H' is ceil(H / stride) for pad_mode 'same', else floor((H + "
                              "top + bottom - dilation (kernel - 1) - 1) / stride) + 1.")
      .def("__init__", &init_conv2d, keeps_arguments, nb::arg("in_channels"), nb::arg("out_channels"),
           nb::arg("kernel_size"), nb::arg("stride") = 1, nb::arg("pad_mode") = "same",
           nb::arg("padding") = 0, nb::arg("dilation") = 1, nb::arg("group") = 1, nb::arg("has_bias") = false,
           nb::arg("weight_init") = nb::none(), nb::arg("bias_init") = nb::none(),
           nb::arg("data_format") = "NCHW", nb::arg("dtype") = nb::none(),
           "`kernel_size`, `stride` and `dilation` are a number or a pair (height, width). `pad_mode` is "
           "'same', 'valid' or 'pad'; with 'pad', `padding` is a number, or (top, bottom, left, right). "
           "`group` divides both numbers of channels. `weight_init` and `bias_init` are as Dense's; without, "
           "HeUniform(sqrt(5)) and Uniform(1 / sqrt(fan_in)).");
  bind_cell_class<nn::Conv1d>(
      core, "Conv1d",
      "Conv2d along one axis: (N, in_channels, L) to (N, out_channels, L'). Its parameters "
      "are `weight` (out_channels, in_channels / group, 1, kernel_size) and, with has_bias, "
      "`bias` (out_channels,).")
      .def("__init__", &init_conv1d, keeps_arguments, nb::arg("in_channels"), nb::arg("out_channels"),
           nb::arg("kernel_size"), nb::arg("stride") = 1, nb::arg("pad_mode") = "same",
           nb::arg("padding") = 0, nb::arg("dilation") = 1, nb::arg("group") = 1, nb::arg("has_bias") = false,
           nb::arg("weight_init") = nb::none(), nb::arg("bias_init") = nb::none(),
           "`pad_mode` is 'same', 'valid' or 'pad'; with 'pad', `padding` places are added at both ends.");
  bind_cell_class<nn::Conv2dTranspose>(core, "Conv2dTranspose",
                                       "The gradient of Conv2d for its images, plus bias: (N, in_channels, "
                                       "H, W) to (N, out_channels, H', W'). Its "
                                       "parameters are `weight` (in_channels, out_channels / group, kernel "
                                       "height, kernel width) and, with has_bias, "
                                       "`bias` (out_channels,). H' is H stride for pad_mode 'same', H stride "
                                       "+ max(reach - stride, 0) for 'valid' and "
                                       "(H - 1) stride + reach - top - bottom + output_padding for 'pad', "
                                       "where reach is dilation (kernel - 1) + 1.")
      .def("__init__", &init_conv2d_transpose, keeps_arguments, nb::arg("in_channels"),
           nb::arg("out_channels"), nb::arg("kernel_size"), nb::arg("stride") = 1,
           nb::arg("pad_mode") = "same", nb::arg("padding") = 0, nb::arg("output_padding") = 0,
           nb::arg("dilation") = 1, nb::arg("group") = 1, nb::arg("has_bias") = false,
           nb::arg("weight_init") = nb::none(), nb::arg("bias_init") = nb::none(),
           "Sizes as Conv2d's. `output_padding`, with pad_mode 'pad', is below the stride or the dilation: "
           "so many rows and columns more at the end.");
}

void bind_pools(nb::module_& core) {
  bind_cell_class<nn::MaxPool2d>(
      core, "MaxPool2d", "The greatest of each window of (N, C, H, W) or (C, H, W). Sizes as Conv2d's.")
      .def(
          "__init__", &init_max_pool, keeps_arguments, nb::arg("kernel_size") = 1, nb::arg("stride") = 1,
          nb::arg("pad_mode") = "valid", nb::arg("padding") = 0, nb::arg("dilation") = 1,
          nb::arg("return_indices") = false, nb::arg("ceil_mode") = false, nb::arg("data_format") = "NCHW",
          "`padding` (at most half the kernel) and `ceil_mode` (the last window may lie partly outside) need "
          "pad_mode 'pad'.");
  bind_cell_class<nn::AvgPool2d>(core, "AvgPool2d",
                                 "The mean of each window of (N, C, H, W) or (C, H, W). Sizes as Conv2d's.")
      .def("__init__", &init_avg_pool, keeps_arguments, nb::arg("kernel_size") = 1, nb::arg("stride") = 1,
           nb::arg("pad_mode") = "valid", nb::arg("padding") = 0, nb::arg("ceil_mode") = false,
           nb::arg("count_include_pad") = true, nb::arg("divisor_override") = nb::none(),
           nb::arg("data_format") = "NCHW",
           "`padding` (at most half the kernel) and `ceil_mode` need pad_mode 'pad'; what pad_mode 'same' "
           "adds is never counted. Sums are divided by `divisor_override`, if it is given.");
  bind_cell_class<nn::AdaptiveAvgPool2d>(core, "AdaptiveAvgPool2d",
                                         "(N, C, H, W) or (C, H, W) to output_size: means over windows that "
                                         "cover the image evenly, from floor(i H / "
                                         "H') to ceil((i + 1) H / H').")
      .def("__init__", &init_adaptive, keeps_arguments, nb::arg("output_size"),
           "`output_size` is a number or a pair (height, width); None keeps the input's.");
}

}  // namespace

void bind_images(nb::module_& core) {
  bind_conv(core);
  bind_pools(core);
}

}  // namespace muster::python
