// Range: the numbers that an argument may be, checked and told in the same way everywhere.
#pragma once

#include <optional>
#include <string>

namespace muster {

// Bounds that are not given bound nothing: a Range without any contains every number.
struct Range {
  std::optional<double> min = {};
  std::optional<double> max = {};
  std::optional<double> above = {};  // like `min`, without the bound itself
  std::optional<double> below = {};  // like `max`, without the bound itself

  bool is_bounded() const { return min || max || above || below; }
  // A bounded range does not contain NaN.
  bool contains(double number) const;
};

// "at least 0", "from 0 to 1", "in (0, 1)"; "" for a range without bounds.
std::string to_string(const Range& range);

}  // namespace muster
