#include "muster/data/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "muster/data/with_type.h"

namespace muster::data {
namespace {

constexpr std::int64_t side_max = 1 << 16;
constexpr std::int64_t outside = -1;

// The pixel that stands at place `i` of a line of `size` pixels; `outside` for the fill colour.
std::int64_t border_place(std::int64_t i, std::int64_t size, Border mode) {
  if (i >= 0 && i < size) return i;
  switch (mode) {
    case Border::constant:
      return outside;
    case Border::edge:
      return std::clamp<std::int64_t>(i, 0, size - 1);
    case Border::reflect: {
      if (size == 1) return 0;
      const std::int64_t period = 2 * (size - 1);
      const std::int64_t place = (i % period + period) % period;
      return std::min(place, period - place);
    }
    case Border::symmetric: {
      const std::int64_t period = 2 * size;
      const std::int64_t place = (i % period + period) % period;
      return std::min(place, period - 1 - place);
    }
  }
  return outside;
}

std::vector<std::byte> fill_pixel(const ValueType& input, const BorderOptions& border) {
  const ImageType image = image_type(input);
  std::vector<std::byte> pixel(image.pixel_bytes);
  with_type(input.dtype, [&](auto* type) {
    auto* values = reinterpret_cast<decltype(type)>(pixel.data());
    using Value = std::remove_pointer_t<decltype(type)>;
    for (std::int64_t c = 0; c < image.channels; ++c)
      values[c] = convert<Value>(border.fill[static_cast<std::size_t>(std::min<std::int64_t>(c, 2))]);
  });
  return pixel;
}

}  // namespace

ImageType image_type(const ValueType& value) {
  ImageType image{value.shape[0], value.shape[1]};
  if (value.shape.rank() == 3) image.channels = value.shape[2];
  if (image.channels > 0)
    image.pixel_bytes = static_cast<std::size_t>(image.channels) * size_bytes(value.dtype);
  return image;
}

Result<> check_image(const std::string& operation, const ValueType& value) {
  const std::size_t rank = value.shape.rank();
  if (rank == 2 || rank == 3) return {};
  return fail(Code::invalid_argument,
              fmt::format("{} takes an image of 2 or 3 axes, not {}", operation, to_string(value.shape)));
}

Result<> check_size(const std::string& operation, Size size) {
  for (const std::int64_t side : {size.height, size.width})
    if (side < 1 || side > side_max)
      return fail(Code::invalid_argument,
                  fmt::format("{}: a side of {} pixels was asked for, it must be 1 to {}", operation, side,
                              side_max));
  return {};
}

ValueType resized(const ValueType& value, Size size) {
  std::vector<std::int64_t> sizes(value.shape.begin(), value.shape.end());
  sizes[0] = size.height;
  sizes[1] = size.width;
  return {value.dtype, Shape(std::move(sizes))};
}

OperationArgument size_argument() {
  return {.name = "size",
          .otherwise = WholeNumbers{},
          .required = true,
          .counts = {1, 2},
          .meaning = "a number or (height, width)"};
}

Size size_from(const Settings& all) {
  const auto& sides = all.get<WholeNumbers>("size");
  return {sides.front(), sides.back()};
}

OperationArgument padding_argument(bool required) {
  return {.name = "padding",
          .otherwise = WholeNumbers{0},
          .required = required,
          .optional = !required,
          .counts = {1, 2, 4},
          .meaning = "a number, (left and right, top and bottom) or (left, top, right, bottom)"};
}

Padding padding_from(const Settings& all) {
  const auto& sides = all.get<WholeNumbers>("padding");
  if (sides.size() == 4) return {sides[0], sides[1], sides[2], sides[3]};
  return {sides.front(), sides.back(), sides.front(), sides.back()};
}

OperationArgument fill_argument() {
  return {.name = "fill_value",
          .otherwise = WholeNumbers{0},
          .range = {.min = 0, .max = 255},
          .counts = {1, 3},
          .meaning = "0 to 255, or one for each of three channels"};
}

OperationArgument padding_mode_argument() { return {.name = "padding_mode", .otherwise = Border::constant}; }

BorderOptions border_from(const Settings& all) {
  const auto& fill = all.get<WholeNumbers>("fill_value");
  BorderOptions border{.mode = all.get<Border>("padding_mode"), .fill = {}};
  for (std::size_t c = 0; c < border.fill.size(); ++c)
    border.fill[c] = static_cast<std::uint8_t>(fill[fill.size() == border.fill.size() ? c : 0]);
  return border;
}

OperationArgument range_argument(std::string_view name, std::array<double, 2> otherwise) {
  return {.name = name,
          .otherwise = Numbers(otherwise.begin(), otherwise.end()),
          .counts = {2},
          .meaning = "(least, most)"};
}

std::array<double, 2> range_from(const Settings& all, std::string_view name) {
  const auto& range = all.get<Numbers>(name);
  return {range[0], range[1]};
}

Result<ValueType> ImageTransform::infer(const ValueType& input) const {
  MUSTER_TRY_VOID(check_options());
  MUSTER_TRY_VOID(check_image(name(), input));
  MUSTER_TRY(const Size size, output_size(input));
  return resized(input, size);
}

void ImageTransform::run(const ValueType& input, const Rows& rows, const std::byte* in,
                         std::byte* out) const {
  const std::size_t bytes_in = value_bytes(input);
  const std::size_t bytes_out = value_bytes(*infer(input));
  for (std::size_t row = 0; row < rows.count; ++row)
    run_image(input, rows.random(row), in + row * bytes_in, out + row * bytes_out);
}

void copy_window(const ValueType& input, const Window& window, const BorderOptions& border,
                 const std::byte* in, std::byte* out) {
  const ImageType image = image_type(input);
  const std::size_t pixel = image.pixel_bytes;
  const std::int64_t width = window.size.width;
  const std::vector<std::byte> fill = fill_pixel(input, border);
  // Pixels before, inside and behind the image's own columns.
  const std::int64_t inside_begin = std::clamp<std::int64_t>(-window.left, 0, width);
  const std::int64_t inside_end = std::clamp<std::int64_t>(image.width - window.left, inside_begin, width);
  for (std::int64_t y = 0; y < window.size.height; ++y) {
    const std::int64_t from_row = border_place(window.top + y, image.height, border.mode);
    const std::byte* line =
        from_row == outside ? nullptr : in + static_cast<std::size_t>(from_row) * image.row_bytes();
    const auto copy_pixel = [&](std::int64_t x) {
      const std::int64_t from = border_place(window.left + x, image.width, border.mode);
      const bool filled = line == nullptr || from == outside;
      std::memcpy(out + static_cast<std::size_t>(x) * pixel,
                  filled ? fill.data() : line + static_cast<std::size_t>(from) * pixel, pixel);
    };
    for (std::int64_t x = 0; x < inside_begin; ++x) copy_pixel(x);
    if (line == nullptr)
      for (std::int64_t x = inside_begin; x < inside_end; ++x) copy_pixel(x);
    else if (inside_end > inside_begin)
      std::memcpy(out + static_cast<std::size_t>(inside_begin) * pixel,
                  line + static_cast<std::size_t>(window.left + inside_begin) * pixel,
                  static_cast<std::size_t>(inside_end - inside_begin) * pixel);
    for (std::int64_t x = inside_end; x < width; ++x) copy_pixel(x);
    out += static_cast<std::size_t>(width) * pixel;
  }
}

}  // namespace muster::data
