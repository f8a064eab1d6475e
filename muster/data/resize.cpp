// Resize and RandomResizedCrop.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "muster/data/image.h"
#include "muster/data/resample.h"

namespace muster::data {
namespace {

// The part of `input` that `window` shows.
template <class Value>
ImageView<Value> view_of(const ValueType& input, const Window& window, const std::byte* in) {
  const ImageType image = image_type(input);
  const std::int64_t row_values = image.width * image.channels;
  return {
      .values = reinterpret_cast<const Value*>(in) + window.top * row_values + window.left * image.channels,
      .size = window.size,
      .channels = image.channels,
      .row_values = row_values};
}

struct Target {
  Size size;
  Interpolation interpolation;
  Channels layout = Channels::last;
};

template <class Value>
void resample_as(const ValueType& input, const Window& window, const Target& target, const std::byte* in,
                 std::byte* out) {
  resample(view_of<Value>(input, window, in), target.size, target.interpolation, target.layout,
           reinterpret_cast<Value*>(out));
}

// `nearest` moves values, so it takes those of any type by their sizes.
void resample_window(const ValueType& input, const Window& window, const Target& target, const std::byte* in,
                     std::byte* out) {
  switch (input.dtype) {
    case DType::uint8:
    case DType::bool_:
    case DType::int8:
      return resample_as<std::uint8_t>(input, window, target, in, out);
    case DType::int16:
      return resample_as<std::int16_t>(input, window, target, in, out);
    case DType::uint16:
    case DType::float16:
      return resample_as<std::uint16_t>(input, window, target, in, out);
    case DType::float64:
      return resample_as<double>(input, window, target, in, out);
    default:
      return resample_as<float>(input, window, target, in, out);
  }
}

bool is_resizable(DType dtype, Interpolation interpolation) {
  constexpr std::array any = {DType::uint8,  DType::bool_,   DType::int16,
                              DType::uint16, DType::float32, DType::float64};
  constexpr std::array moved = {DType::int8, DType::float16, DType::int32};
  if (std::ranges::find(any, dtype) != any.end()) return true;
  return interpolation == Interpolation::nearest && std::ranges::find(moved, dtype) != moved.end();
}

Result<> check_resizable(const std::string& operation, const ValueType& input, Interpolation interpolation) {
  if (!is_resizable(input.dtype, interpolation))
    return fail(Code::invalid_argument,
                fmt::format("{} takes images of uint8, int16, uint16, float32, float64 or bool, not {}",
                            operation, to_string(input.dtype)));
  if (input.shape[0] == 0 || input.shape[1] == 0)
    return fail(Code::invalid_argument,
                fmt::format("{}: the image {} has no pixels", operation, to_string(input.shape)));
  return {};
}

class Resize final : public ImageTransform {
 public:
  // A width of 0: the height is that of the shorter side.
  Resize(Size size, Interpolation interpolation) : size_(size), interpolation_(interpolation) {}
  std::string name() const override { return "Resize"; }
  bool has_planes(const ValueType& input) const override {
    return input.dtype == DType::uint8 && input.shape.rank() == 3;
  }
  void run_planes(const ValueType& input, const Rows&, const std::byte* in, std::byte* out) const override {
    run_layout(input, Channels::first, in, out);
  }

 protected:
  Result<> check_options() const override {
    return check_size(name(), {size_.height, size_.width == 0 ? size_.height : size_.width});
  }
  Result<Size> output_size(const ValueType& input) const override {
    MUSTER_TRY_VOID(check_resizable(name(), input, interpolation_));
    if (size_.width != 0) return size_;
    const std::int64_t height = input.shape[0], width = input.shape[1], side = size_.height;
    if (height < 0 || width < 0) return Size{-1, -1};
    const Size made = height < width ? Size{side, side * width / height} : Size{side * height / width, side};
    MUSTER_TRY_VOID(check_size(name(), made));
    return made;
  }
  void run_image(const ValueType& input, const RandomStream&, const std::byte* in,
                 std::byte* out) const override {
    run_layout(input, Channels::last, in, out);
  }

 private:
  void run_layout(const ValueType& input, Channels layout, const std::byte* in, std::byte* out) const {
    const Window whole{.size = {input.shape[0], input.shape[1]}};
    resample_window(input, whole, {*output_size(input), interpolation_, layout}, in, out);
  }

  const Size size_;
  const Interpolation interpolation_;
};

class RandomResizedCrop final : public ImageTransform {
 public:
  explicit RandomResizedCrop(RandomResizedCropOptions options) : options_(options) {}
  std::string name() const override { return "RandomResizedCrop"; }
  bool has_planes(const ValueType& input) const override {
    return input.dtype == DType::uint8 && input.shape.rank() == 3;
  }
  void run_planes(const ValueType& input, const Rows& rows, const std::byte* in,
                  std::byte* out) const override {
    run_layout(input, Channels::first, rows.random(0), in, out);
  }

 protected:
  Result<> check_options() const override {
    MUSTER_TRY_VOID(check_size(name(), options_.size));
    for (const auto& [what, range] : {std::pair("scale", options_.scale), std::pair("ratio", options_.ratio)})
      if (!(range[0] > 0 && range[0] <= range[1] && std::isfinite(range[1])))
        return fail(Code::invalid_argument,
                    fmt::format("RandomResizedCrop: {} is {} to {}, it must rise and lie above 0", what,
                                range[0], range[1]));
    if (options_.max_attempts < 1)
      return fail(
          Code::invalid_argument,
          fmt::format("RandomResizedCrop: max_attempts is {}, it must be at least 1", options_.max_attempts));
    return {};
  }
  Result<Size> output_size(const ValueType& input) const override {
    MUSTER_TRY_VOID(check_resizable(name(), input, options_.interpolation));
    return options_.size;
  }
  void run_image(const ValueType& input, const RandomStream& random, const std::byte* in,
                 std::byte* out) const override {
    run_layout(input, Channels::last, random, in, out);
  }

 private:
  void run_layout(const ValueType& input, Channels layout, const RandomStream& random, const std::byte* in,
                  std::byte* out) const {
    resample_window(input, choose({input.shape[0], input.shape[1]}, random),
                    {options_.size, options_.interpolation, layout}, in, out);
  }

  static double between(const std::array<double, 2>& range, double share) {
    return range[0] + share * (range[1] - range[0]);
  }

  Window choose(Size image, const RandomStream& random) const {
    const auto area = static_cast<double>(image.height * image.width);
    const std::array<double, 2> log_ratio = {std::log(options_.ratio[0]), std::log(options_.ratio[1])};
    for (std::int64_t attempt = 0; attempt < options_.max_attempts; ++attempt) {
      const auto first = static_cast<std::uint64_t>(4 * attempt);
      const double part = area * between(options_.scale, random.uniform(first));
      const double ratio = std::exp(between(log_ratio, random.uniform(first + 1)));
      const Size size{std::llround(std::sqrt(part / ratio)), std::llround(std::sqrt(part * ratio))};
      if (size.height < 1 || size.width < 1 || size.height > image.height || size.width > image.width)
        continue;
      const auto places_down = static_cast<std::uint64_t>(image.height - size.height + 1);
      const auto places_right = static_cast<std::uint64_t>(image.width - size.width + 1);
      return {.top = static_cast<std::int64_t>(random.below(first + 2, places_down)),
              .left = static_cast<std::int64_t>(random.below(first + 3, places_right)),
              .size = size};
    }
    return middle(image);
  }

  // The largest part in the middle whose ratio is allowed.
  Window middle(Size image) const {
    const double ratio = static_cast<double>(image.width) / static_cast<double>(image.height);
    Size size = image;
    if (ratio < options_.ratio[0])
      size.height = std::llround(static_cast<double>(image.width) / options_.ratio[0]);
    else if (ratio > options_.ratio[1])
      size.width = std::llround(static_cast<double>(image.height) * options_.ratio[1]);
    size.height = std::clamp<std::int64_t>(size.height, 1, image.height);
    size.width = std::clamp<std::int64_t>(size.width, 1, image.width);
    return {.top = (image.height - size.height) / 2, .left = (image.width - size.width) / 2, .size = size};
  }

  const RandomResizedCropOptions options_;
};

}  // namespace

OperationPtr resize(Size size, Interpolation interpolation) {
  if (size.width == 0) size.width = -1;  // a mistake, and not the mark of resize_shorter
  return std::make_shared<Resize>(size, interpolation);
}

OperationPtr resize_shorter(std::int64_t side, Interpolation interpolation) {
  return std::make_shared<Resize>(Size{side, 0}, interpolation);
}

OperationPtr random_resized_crop(RandomResizedCropOptions options) {
  return std::make_shared<RandomResizedCrop>(options);
}

std::vector<const OperationRow*> rows_of_resize() {
  const OperationArgument interpolation{.name = "interpolation", .otherwise = Interpolation::linear};
  static const OperationRow rows[] = {
      {.name = "Resize",
       .documentation = "An image at another size, as OpenCV makes it.",
       .usage = "`size` is (height, width), or a number for the shorter side.",
       .arguments = {size_argument(), interpolation},
       .make =
           [](const Settings& all) {
             const bool is_side = all.get<WholeNumbers>("size").size() == 1;
             const auto mode = all.get<Interpolation>("interpolation");
             return is_side ? resize_shorter(size_from(all).height, mode) : resize(size_from(all), mode);
           }},
      {.name = "RandomResizedCrop",
       .documentation = "A part of random area and shape, resized.",
       .usage = "`scale` is the least and most of the area, `ratio` of width over height; after "
                "`max_attempts` the middle is taken.",
       .arguments = {size_argument(),
                     range_argument("scale", {0.08, 1.0}),
                     range_argument("ratio", {3.0 / 4.0, 4.0 / 3.0}),
                     interpolation,
                     {.name = "max_attempts", .otherwise = std::int64_t{10}}},
       .make = [](const Settings& all) {
         return random_resized_crop({.size = size_from(all),
                                     .scale = range_from(all, "scale"),
                                     .ratio = range_from(all, "ratio"),
                                     .interpolation = all.get<Interpolation>("interpolation"),
                                     .max_attempts = all.get<std::int64_t>("max_attempts")});
       }}};
  return addresses(rows);
}

}  // namespace muster::data
