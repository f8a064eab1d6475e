// A point on its way from one worker to another: a label, which is a manifest as it lies beside a point's
// files, and then the content that it speaks of.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/checkpoint/point.h"

namespace muster::checkpoint {

// Names, sizes and hashes of everything in the point.
Result<std::string> label_of(const Point& point);
// Its sections, then its tensors, in the order of the label. They are borrowed from the point.
std::vector<std::span<const std::byte>> content_of(const Point& point);

// The side that receives. Every limit of a manifest holds before memory is taken.
class Parcel {
 public:
  static Result<Parcel> from_label(std::string_view label);
  // Where the content goes: as many pieces as content_of() gives, of the same sizes.
  std::vector<std::span<std::byte>> content();
  // The point, once the content is there. An error (corrupt) names what does not fit its hash.
  Result<Point> open() &&;

 private:
  Point point_;
  std::string label_;
};

}  // namespace muster::checkpoint
