#include "muster/nn/pooling.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "muster/nn/arguments.h"
#include "muster/nn/cell_text.h"
#include "muster/nn/ops.h"
#include "muster/nn/values.h"

namespace muster::nn {
namespace {

// pool(x) for (N, C, H, W), and for (C, H, W) as a batch of one.
template <class Pool>
Value over_images(const Cell& cell, std::span<const Value> inputs, const Pool& pool) {
  require_inputs(cell, inputs, 1, "one tensor");
  const Value& x = inputs[0];
  const Shape& shape = x.shape();
  if (shape.rank() == 4) return pool(x);
  if (shape.rank() != 3)
    throw Exception(Code::invalid_argument, fmt::format("{}: (N, C, H, W) or (C, H, W) is needed, not {}",
                                                        cell.description(), muster::to_string(shape)));
  const Value y = pool(ops::reshape(x, {1, shape[0], shape[1], shape[2]}));
  return ops::reshape(y, {y.shape()[1], y.shape()[2], y.shape()[3]});
}

Result<> check_half(std::string_view owner, const Window& window) {
  const std::int64_t rows = std::max(window.padding.top, window.padding.bottom);
  const std::int64_t columns = std::max(window.padding.left, window.padding.right);
  if (2 * rows <= window.kernel.height && 2 * columns <= window.kernel.width) return {};
  return fail(Code::invalid_argument,
              fmt::format("{}: padding must be at most half the kernel size ({}, {}), not ({}, {})", owner,
                          window.kernel.height, window.kernel.width, rows, columns));
}

}  // namespace

Pool2d::Pool2d(std::string class_name, Window window, bool ceil_mode)
    : Cell(std::move(class_name)), window_(window), ceil_mode_(ceil_mode) {
  window_.check(this->class_name()).value();
  check_half(this->class_name(), window_).value();
  if (ceil_mode && window_.pad_mode != PadMode::pad)
    throw Exception(Code::invalid_argument, this->class_name() + ": ceil_mode needs pad_mode 'pad'");
}

Values Pool2d::construct(std::span<const Value> inputs) {
  return over_images(*this, inputs, [&](const Value& x) {
    return pooled(x, {{"kernel", window_.kernel.list()},
                      {"strides", window_.stride.list()},
                      {"pads", window_.pads(x.shape()[2], x.shape()[3])},
                      {"ceil_mode", ceil_mode_}});
  });
}

MaxPool2d::MaxPool2d(MaxPool2dOptions options)
    : Pool2d("MaxPool2d",
             {.kernel = options.kernel_size,
              .stride = options.stride,
              .pad_mode = options.pad_mode,
              .padding = options.padding},
             options.ceil_mode) {}

Value MaxPool2d::pooled(const Value& x, graph::Attributes attributes) const {
  return apply_to("max_pool2d", x, attributes);
}

AvgPool2d::AvgPool2d(AvgPool2dOptions options)
    : Pool2d("AvgPool2d",
             {.kernel = options.kernel_size,
              .stride = options.stride,
              .pad_mode = options.pad_mode,
              .padding = options.padding},
             options.ceil_mode),
      counts_padding_(options.count_include_pad && options.pad_mode == PadMode::pad),
      divisor_(options.divisor_override) {
  if (divisor_) require_count("AvgPool2d", "divisor_override", *divisor_).value();
  if (divisor_ && options.ceil_mode)
    throw Exception(Code::not_provided, "AvgPool2d: divisor_override with ceil_mode is not provided");
}

Value AvgPool2d::pooled(const Value& x, graph::Attributes attributes) const {
  attributes.set("count_include_pad", counts_padding_ || divisor_.has_value());
  const Value mean = apply_to("avg_pool2d", x, attributes);
  if (!divisor_) return mean;
  const auto places = static_cast<double>(window().kernel.height * window().kernel.width);
  return ops::mul(mean, number_like(mean, places / static_cast<double>(*divisor_)));
}

AdaptiveAvgPool2d::AdaptiveAvgPool2d(std::optional<std::int64_t> height, std::optional<std::int64_t> width)
    : Cell("AdaptiveAvgPool2d"), height_(height), width_(width) {
  if (height_) require_count("AdaptiveAvgPool2d", "output_size", *height_).value();
  if (width_) require_count("AdaptiveAvgPool2d", "output_size", *width_).value();
}

Values AdaptiveAvgPool2d::construct(std::span<const Value> inputs) {
  return over_images(*this, inputs, [&](const Value& x) {
    return apply_to("adaptive_avg_pool2d", x,
                    {{"output_size", std::vector<std::int64_t>{height_.value_or(x.shape()[2]),
                                                               width_.value_or(x.shape()[3])}}});
  });
}

std::string Pool2d::settings() const {
  return CellText()
      .add("kernel_size", window_.kernel)
      .add("stride", window_.stride)
      .add("pad_mode", window_.pad_mode)
      .add_unless("padding", window_.padding, 0)
      .add_unless("ceil_mode", ceil_mode_, false)
      .take();
}

std::string AdaptiveAvgPool2d::settings() const {
  if (height_ == width_) return CellText().add("output_size", height_).take();
  return fmt::format("output_size=({}, {})", CellText::text_of(height_), CellText::text_of(width_));
}

}  // namespace muster::nn
