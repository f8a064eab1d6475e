// A point on its way from one worker to another: a label, which is a manifest as it lies beside a point's
// files but without hashes, and then the content that it speaks of. Hashes are made while the content passes,
// so they come last: the two sides compare them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/checkpoint/manifest.h"
#include "muster/checkpoint/point.h"

namespace muster::checkpoint {

// Equal for points whose tensors have the same names, dtypes and shapes in the same order.
std::uint64_t signature_of(const Point& point);

// Names and sizes of everything in the point.
Result<std::string> label_of(const Point& point);
// Its sections, then its tensors, in the order of the label. They are borrowed from the point.
std::vector<std::span<const std::byte>> content_of(const Point& point);

// The side that receives. Every limit of a manifest holds before memory is taken.
class SerializedPoint {
 public:
  // New tensors, uninitialised, of these dtypes and shapes.
  using MakeTensors = std::function<std::vector<Tensor>(std::span<const TensorRecord>)>;
  static Result<SerializedPoint> from_label(std::string_view label, const MakeTensors& make);
  // Where the content goes: as many pieces as content_of() gives, of the same sizes.
  std::vector<std::span<std::byte>> content();
  // The point, once the content is there.
  Point open() && { return std::move(point_); }

 private:
  Point point_;
};

}  // namespace muster::checkpoint
