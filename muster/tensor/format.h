// Memory formats of elements that are not in row-major order.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "muster/base/base.h"

namespace muster {

// Opaque outside of the kernels that made it: it knows its size, and reorder() turns it into another.
// Immutable.
class Format {
 public:
  Format() = default;
  Format(const Format&) = delete;
  Format& operator=(const Format&) = delete;
  virtual ~Format() = default;

  // With padding; the padding holds zeros.
  virtual std::size_t size_bytes() const = 0;
  // For people: "aBcd16b".
  virtual std::string name() const = 0;
  virtual bool equals(const Format& other) const = 0;
  // The same order of elements of another dtype; null where there is none.
  virtual std::shared_ptr<const Format> with_dtype(DType) const { return nullptr; }
};

// Null: row-major order without padding.
using FormatPtr = std::shared_ptr<const Format>;

inline bool same_format(const FormatPtr& a, const FormatPtr& b) {
  return a == b || (a != nullptr && b != nullptr && a->equals(*b));
}

}  // namespace muster
