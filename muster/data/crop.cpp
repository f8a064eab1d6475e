// Pad, CenterCrop, RandomCrop and the flips: pixels move and none is computed.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "muster/data/image.h"

namespace muster::data {
namespace {

Result<> check_padding(const std::string& operation, const Padding& padding) {
  for (const std::int64_t side : {padding.left, padding.top, padding.right, padding.bottom})
    if (side < 0 || side > 1 << 16)
      return fail(Code::invalid_argument,
                  fmt::format("{}: the padding of one side is {}, it must be 0 to 65536", operation, side));
  return {};
}

// A side that grows; -1 stays unknown.
std::int64_t grown(std::int64_t side, std::int64_t by) { return side < 0 ? side : side + by; }

class Pad final : public ImageTransform {
 public:
  Pad(Padding padding, BorderOptions border) : padding_(padding), border_(border) {}
  std::string name() const override { return "Pad"; }

 protected:
  Result<> check_options() const override { return check_padding(name(), padding_); }
  Result<Size> output_size(const ValueType& input) const override {
    return Size{grown(input.shape[0], padding_.top + padding_.bottom),
                grown(input.shape[1], padding_.left + padding_.right)};
  }
  void run_image(const ValueType& input, const RandomStream&, const std::byte* in,
                 std::byte* out) const override {
    copy_window(input, {.top = -padding_.top, .left = -padding_.left, .size = *output_size(input)}, border_,
                in, out);
  }

 private:
  const Padding padding_;
  const BorderOptions border_;
};

class CenterCrop final : public ImageTransform {
 public:
  explicit CenterCrop(Size size) : size_(size) {}
  std::string name() const override { return "CenterCrop"; }

 protected:
  Result<> check_options() const override { return check_size(name(), size_); }
  Result<Size> output_size(const ValueType&) const override { return size_; }
  void run_image(const ValueType& input, const RandomStream&, const std::byte* in,
                 std::byte* out) const override {
    const Window middle{.top = begin(input.shape[0], size_.height),
                        .left = begin(input.shape[1], size_.width),
                        .size = size_};
    copy_window(input, middle, {}, in, out);
  }

 private:
  // Where `part` pixels in the middle of `all` begin. Where the image is smaller, more of the black is before
  // it.
  static std::int64_t begin(std::int64_t all, std::int64_t part) {
    return all >= part ? (all - part) / 2 : -((part - all + 1) / 2);
  }

  const Size size_;
};

class RandomCrop final : public ImageTransform {
 public:
  explicit RandomCrop(RandomCropOptions options) : options_(options) {}
  std::string name() const override { return "RandomCrop"; }

 protected:
  Result<> check_options() const override {
    MUSTER_TRY_VOID(check_size(name(), options_.size));
    return check_padding(name(), options_.padding);
  }
  Result<Size> output_size(const ValueType& input) const override {
    const Padding& padding = options_.padding;
    const Size padded{grown(input.shape[0], padding.top + padding.bottom),
                      grown(input.shape[1], padding.left + padding.right)};
    const bool too_small = (padded.height >= 0 && padded.height < options_.size.height) ||
                           (padded.width >= 0 && padded.width < options_.size.width);
    if (too_small && !options_.pad_if_needed)
      return fail(
          Code::invalid_argument,
          fmt::format("RandomCrop: {} x {} pixels cannot be cut from an image of {} x {} (its padding "
                      "included); pad more, or set pad_if_needed",
                      options_.size.height, options_.size.width, padded.height, padded.width));
    return options_.size;
  }
  void run_image(const ValueType& input, const RandomStream& random, const std::byte* in,
                 std::byte* out) const override {
    const Padding& padding = options_.padding;
    const Window window{
        .top = place(random, 0, input.shape[0], padding.top, padding.bottom, options_.size.height),
        .left = place(random, 1, input.shape[1], padding.left, padding.right, options_.size.width),
        .size = options_.size};
    copy_window(input, window, options_.border, in, out);
  }

 private:
  // Where the part begins, on one axis, counted from the image's own first pixel.
  static std::int64_t place(const RandomStream& random, std::uint64_t index, std::int64_t side,
                            std::int64_t before, std::int64_t behind, std::int64_t part) {
    const std::int64_t missing = std::max<std::int64_t>(part - (side + before + behind), 0);
    before += missing;  // on both sides, so that the image is not always at the same one
    behind += missing;
    const auto places = static_cast<std::uint64_t>(side + before + behind - part + 1);
    return static_cast<std::int64_t>(random.below(index, places)) - before;
  }

  const RandomCropOptions options_;
};

class RandomFlip final : public ImageTransform {
 public:
  enum class Axis { horizontal, vertical };
  RandomFlip(Axis axis, double probability) : axis_(axis), probability_(probability) {}
  std::string name() const override {
    return axis_ == Axis::horizontal ? "RandomHorizontalFlip" : "RandomVerticalFlip";
  }

 protected:
  Result<> check_options() const override {
    if (probability_ >= 0 && probability_ <= 1) return {};
    return fail(Code::invalid_argument,
                fmt::format("{}: the probability is {}, it must be 0 to 1", name(), probability_));
  }
  Result<Size> output_size(const ValueType& input) const override {
    return Size{input.shape[0], input.shape[1]};
  }
  void run_image(const ValueType& input, const RandomStream& random, const std::byte* in,
                 std::byte* out) const override {
    const ImageType image = image_type(input);
    if (random.uniform(0) >= probability_)
      std::memcpy(out, in, image.image_bytes());
    else if (axis_ == Axis::horizontal)
      flip_lines(image, in, out);
    else
      for (std::size_t y = 0, rows = static_cast<std::size_t>(image.height); y < rows; ++y)
        std::memcpy(out + y * image.row_bytes(), in + (rows - 1 - y) * image.row_bytes(), image.row_bytes());
  }

 private:
  static void flip_lines(const ImageType& image, const std::byte* in, std::byte* out) {
    const std::size_t pixel = image.pixel_bytes;
    for (std::int64_t y = 0; y < image.height; ++y, in += image.row_bytes(), out += image.row_bytes())
      if (pixel == 3)
        for (std::size_t to = 0, from = image.row_bytes(); to < image.row_bytes(); to += 3) {
          from -= 3;
          out[to] = in[from];
          out[to + 1] = in[from + 1];
          out[to + 2] = in[from + 2];
        }
      else
        for (std::size_t to = 0, from = image.row_bytes(); to < image.row_bytes(); to += pixel)
          std::memcpy(out + to, in + (from -= pixel), pixel);
  }

  const Axis axis_;
  const double probability_;
};

}  // namespace

OperationPtr pad(Padding padding, BorderOptions border) { return std::make_shared<Pad>(padding, border); }
OperationPtr center_crop(Size size) { return std::make_shared<CenterCrop>(size); }
OperationPtr random_crop(RandomCropOptions options) { return std::make_shared<RandomCrop>(options); }
OperationPtr random_horizontal_flip(double probability) {
  return std::make_shared<RandomFlip>(RandomFlip::Axis::horizontal, probability);
}
OperationPtr random_vertical_flip(double probability) {
  return std::make_shared<RandomFlip>(RandomFlip::Axis::vertical, probability);
}

std::vector<const OperationRow*> rows_of_crop() {
  const OperationArgument probability{.name = "prob", .otherwise = 0.5};
  static const OperationRow rows[] = {
      {.name = "Pad",
       .documentation = "An image with pixels added at its sides.",
       .usage = "`padding` is a number, (left and right, top and bottom) or (left, top, right, bottom).",
       .arguments = {padding_argument(true), fill_argument(), padding_mode_argument()},
       .make = [](const Settings& all) { return pad(padding_from(all), border_from(all)); }},
      {.name = "CenterCrop",
       .documentation = "The middle of an image; black around it where it is smaller.",
       .arguments = {size_argument()},
       .make = [](const Settings& all) { return center_crop(size_from(all)); }},
      {.name = "RandomCrop",
       .documentation = "A part of an image, from anywhere in it.",
       .usage = "`size` is a number or (height, width); `padding` (see Pad) is added first. An image that is "
                "too small is an error unless `pad_if_needed`.",
       .arguments = {size_argument(),
                     padding_argument(false),
                     {.name = "pad_if_needed", .otherwise = false},
                     fill_argument(),
                     padding_mode_argument()},
       .make =
           [](const Settings& all) {
             return random_crop({.size = size_from(all),
                                 .padding = padding_from(all),
                                 .pad_if_needed = all.get<bool>("pad_if_needed"),
                                 .border = border_from(all)});
           }},
      {.name = "RandomHorizontalFlip",
       .documentation = "Left and right exchanged, or not.",
       .arguments = {probability},
       .make = [](const Settings& all) { return random_horizontal_flip(all.get<double>("prob")); }},
      {.name = "RandomVerticalFlip",
       .documentation = "Top and bottom exchanged, or not.",
       .arguments = {probability},
       .make = [](const Settings& all) { return random_vertical_flip(all.get<double>("prob")); }}};
  return addresses(rows);
}

}  // namespace muster::data
