// Private: parts that the operations on images share.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "muster/data/operation_row.h"
#include "muster/data/transform.h"
#include "muster/data/vision.h"

namespace muster::data {

// The sizes of an image of rank 2 or 3 whose channels come last.
struct ImageType {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;
  std::size_t pixel_bytes = 1;

  std::size_t row_bytes() const { return static_cast<std::size_t>(width) * pixel_bytes; }
  std::size_t image_bytes() const { return static_cast<std::size_t>(height) * row_bytes(); }
};

ImageType image_type(const ValueType& value);
// Whether `value` is an image; `operation` begins the message.
Result<> check_image(const std::string& operation, const ValueType& value);
// Whether both sides of `size` are 1 to 2^16.
Result<> check_size(const std::string& operation, Size size);
// The type of an image of another size.
ValueType resized(const ValueType& value, Size size);

// Arguments that several rows have, and what they say. A number for a square, or (height, width).
OperationArgument size_argument();
Size size_from(const Settings& all);
// A number for all sides, (left and right, top and bottom), or (left, top, right, bottom).
OperationArgument padding_argument(bool required);
Padding padding_from(const Settings& all);
OperationArgument fill_argument();
OperationArgument padding_mode_argument();
BorderOptions border_from(const Settings& all);
// (least, most)
OperationArgument range_argument(std::string_view name, std::array<double, 2> otherwise);
std::array<double, 2> range_from(const Settings& all, std::string_view name);

// A transform of one image at a time that keeps channels where they are.
class ImageTransform : public Transform {
 public:
  Result<ValueType> infer(const ValueType& input) const final;
  void run(const ValueType& input, const Rows& rows, const std::byte* in, std::byte* out) const final;
  bool follow(Channels&) const final { return false; }

 protected:
  virtual Result<> check_options() const { return {}; }
  // The size that comes out; a side of -1 is not known before the images come.
  virtual Result<Size> output_size(const ValueType& input) const = 0;
  virtual void run_image(const ValueType& input, const RandomStream& random, const std::byte* in,
                         std::byte* out) const = 0;
};

// The part of an image of `size` that begins at (top, left), either of which may lie outside.
struct Window {
  std::int64_t top = 0;
  std::int64_t left = 0;
  Size size;
};
void copy_window(const ValueType& input, const Window& window, const BorderOptions& border,
                 const std::byte* in, std::byte* out);

}  // namespace muster::data
