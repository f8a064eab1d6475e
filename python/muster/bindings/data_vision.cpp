// Operations on the geometry of images.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <utility>

#include "python/muster/bindings/data_operation.h"
#include "python/muster/bindings/dataset.h"

namespace muster::python {
namespace {

struct Decode : Transform {};
struct Pad : Transform {};
struct CenterCrop : Transform {};
struct RandomCrop : Transform {};
struct RandomHorizontalFlip : Transform {};
struct RandomVerticalFlip : Transform {};
struct Resize : Transform {};
struct RandomResizedCrop : Transform {};

std::vector<std::int64_t> numbers_from(nb::handle object, const char* what) {
  std::vector<std::int64_t> numbers;
  std::int64_t number = 0;
  if (nb::try_cast(object, number)) return {number};
  if (nb::try_cast(object, numbers)) return numbers;
  throw nb::type_error(
      (std::string(what) + " is a whole number or several, not " + class_name(object)).c_str());
}

// A number for a square, or (height, width).
data::Size size_from(nb::handle object) {
  const auto sides = numbers_from(object, "size");
  if (sides.size() == 1) return {sides[0], sides[0]};
  if (sides.size() == 2) return {sides[0], sides[1]};
  throw nb::value_error("size is a number or (height, width)");
}

// A number for all sides, (left and right, top and bottom), or (left, top, right, bottom).
data::Padding padding_from(nb::handle object) {
  if (object.is_none()) return {};
  const auto sides = numbers_from(object, "padding");
  if (sides.size() == 1) return {sides[0], sides[0], sides[0], sides[0]};
  if (sides.size() == 2) return {sides[0], sides[1], sides[0], sides[1]};
  if (sides.size() == 4) return {sides[0], sides[1], sides[2], sides[3]};
  throw nb::value_error(
      "padding is a number, (left and right, top and bottom) or (left, top, right, bottom)");
}

std::uint8_t byte_from(std::int64_t number) {
  if (number < 0 || number > 255)
    throw nb::value_error("fill_value is 0 to 255, or one for each of three channels");
  return static_cast<std::uint8_t>(number);
}

data::BorderOptions border_from(nb::handle fill_value, data::Border mode) {
  const auto fill = numbers_from(fill_value, "fill_value");
  if (fill.size() != 1 && fill.size() != 3)
    throw nb::value_error("fill_value is 0 to 255, or one for each of three channels");
  data::BorderOptions border{.mode = mode, .fill = {}};
  for (std::size_t c = 0; c < 3; ++c) border.fill[c] = byte_from(fill[fill.size() == 3 ? c : 0]);
  return border;
}

void bind_crops(nb::module_& core) {
  nb::class_<Decode, Transform>(core, "Decode", "The bytes of a JPEG or PNG file as an image (H, W, 3).")
      .def(
          "__init__",
          [](Decode* self, bool to_pil) {
            if (to_pil) throw nb::value_error("Decode makes arrays, no PIL images: leave to_pil out");
            new (self) Decode{data::decode()};
          },
          nb::arg("to_pil") = false);
  nb::class_<Pad, Transform>(core, "Pad", "An image with pixels added at its sides.")
      .def(
          "__init__",
          [](Pad* self, nb::handle padding, nb::handle fill_value, data::Border padding_mode) {
            new (self) Pad{data::pad(padding_from(padding), border_from(fill_value, padding_mode))};
          },
          nb::arg("padding"), nb::arg("fill_value") = 0, nb::arg("padding_mode") = data::Border::constant,
          "`padding` is a number, (left and right, top and bottom) or (left, top, right, bottom).");
  nb::class_<CenterCrop, Transform>(core, "CenterCrop",
                                    "The middle of an image; black around it where it is smaller.")
      .def(
          "__init__",
          [](CenterCrop* self, nb::handle size) {
            new (self) CenterCrop{data::center_crop(size_from(size))};
          },
          nb::arg("size"));
  nb::class_<RandomCrop, Transform>(core, "RandomCrop", "A part of an image, from anywhere in it.")
      .def(
          "__init__",
          [](RandomCrop* self, nb::handle size, nb::handle padding, bool pad_if_needed, nb::handle fill_value,
             data::Border padding_mode) {
            new (self) RandomCrop{data::random_crop({.size = size_from(size),
                                                     .padding = padding_from(padding),
                                                     .pad_if_needed = pad_if_needed,
                                                     .border = border_from(fill_value, padding_mode)})};
          },
          nb::arg("size"), nb::arg("padding") = nb::none(), nb::arg("pad_if_needed") = false,
          nb::arg("fill_value") = 0, nb::arg("padding_mode") = data::Border::constant,
          "`size` is a number or (height, width); `padding` (see Pad) is added first. An image that is too "
          "small "
          "is an error unless `pad_if_needed`.");
  nb::class_<RandomHorizontalFlip, Transform>(core, "RandomHorizontalFlip",
                                              "Left and right exchanged, or not.")
      .def(
          "__init__",
          [](RandomHorizontalFlip* self, double prob) {
            new (self) RandomHorizontalFlip{data::random_horizontal_flip(prob)};
          },
          nb::arg("prob") = 0.5);
  nb::class_<RandomVerticalFlip, Transform>(core, "RandomVerticalFlip", "Top and bottom exchanged, or not.")
      .def(
          "__init__",
          [](RandomVerticalFlip* self, double prob) {
            new (self) RandomVerticalFlip{data::random_vertical_flip(prob)};
          },
          nb::arg("prob") = 0.5);
}

void bind_sizes(nb::module_& core) {
  nb::class_<Resize, Transform>(core, "Resize", "An image at another size, as OpenCV makes it.")
      .def(
          "__init__",
          [](Resize* self, nb::handle size, data::Interpolation interpolation) {
            const auto sides = numbers_from(size, "size");
            new (self) Resize{sides.size() == 1 ? data::resize_shorter(sides[0], interpolation)
                                                : data::resize(size_from(size), interpolation)};
          },
          nb::arg("size"), nb::arg("interpolation") = data::Interpolation::linear,
          "`size` is (height, width), or a number for the shorter side.");
  nb::class_<RandomResizedCrop, Transform>(core, "RandomResizedCrop",
                                           "A part of random area and shape, resized.")
      .def(
          "__init__",
          [](RandomResizedCrop* self, nb::handle size, std::array<double, 2> scale,
             std::array<double, 2> ratio, data::Interpolation interpolation, std::int64_t max_attempts) {
            new (self) RandomResizedCrop{data::random_resized_crop({.size = size_from(size),
                                                                    .scale = scale,
                                                                    .ratio = ratio,
                                                                    .interpolation = interpolation,
                                                                    .max_attempts = max_attempts})};
          },
          nb::arg("size"), nb::arg("scale") = std::array<double, 2>{0.08, 1.0},
          nb::arg("ratio") = std::array<double, 2>{3.0 / 4.0, 4.0 / 3.0},
          nb::arg("interpolation") = data::Interpolation::linear, nb::arg("max_attempts") = 10,
          "`scale` is the least and most of the area, `ratio` of width over height; after `max_attempts` the "
          "middle is taken.");
}

}  // namespace

void bind_vision(nb::module_& core) {
  nb::enum_<data::Interpolation>(core, "Inter", "How pixels are made where there were none.")
      .value("NEAREST", data::Interpolation::nearest)
      .value("LINEAR", data::Interpolation::linear)
      .value("BILINEAR", data::Interpolation::linear)
      .value("CUBIC", data::Interpolation::cubic)
      .value("BICUBIC", data::Interpolation::cubic)
      .value("AREA", data::Interpolation::area);
  nb::enum_<data::Border>(core, "Border", "What lies outside of an image.")
      .value("CONSTANT", data::Border::constant)
      .value("EDGE", data::Border::edge)
      .value("REFLECT", data::Border::reflect)
      .value("SYMMETRIC", data::Border::symmetric);
  bind_crops(core);
  bind_sizes(core);
}

}  // namespace muster::python
