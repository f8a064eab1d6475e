#include "muster/base/range.h"

#include <fmt/format.h>

namespace muster {

bool Range::contains(double number) const {
  return (!min || number >= *min) && (!max || number <= *max) && (!above || number > *above) &&
         (!below || number < *below);
}

std::string to_string(const Range& range) {
  if (range.above && range.below) return fmt::format("in ({}, {})", *range.above, *range.below);
  if (range.min && range.max) return fmt::format("from {} to {}", *range.min, *range.max);
  std::string text;
  const auto add = [&text](std::string_view words, const std::optional<double>& bound) {
    if (bound) text += fmt::format("{}{} {}", text.empty() ? "" : " and ", words, *bound);
  };
  add("above", range.above);
  add("at least", range.min);
  add("below", range.below);
  add("at most", range.max);
  return text;
}

}  // namespace muster
