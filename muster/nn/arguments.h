// Private to nn: errors of constructors and functions about arguments that they cannot use.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "muster/base/base.h"

namespace muster::nn {

// "ExponentialDecayLR: learning_rate must be above 0, not -1"
template <class T>
Result<> refuse_argument(std::string_view owner, std::string_view name, std::string_view allowed, T given) {
  return fail(Code::invalid_argument, fmt::format("{}: {} must be {}, not {}", owner, name, allowed, given));
}

inline Result<> require_positive(std::string_view owner, std::string_view name, double given) {
  if (given > 0 && std::isfinite(given)) return {};
  return refuse_argument(owner, name, "above 0", given);
}

inline Result<> require_not_negative(std::string_view owner, std::string_view name, double given) {
  if (given >= 0 && std::isfinite(given)) return {};
  return refuse_argument(owner, name, "at least 0", given);
}

inline Result<> require_count(std::string_view owner, std::string_view name, std::int64_t given) {
  if (given >= 1) return {};
  return refuse_argument(owner, name, "at least 1", given);
}

}  // namespace muster::nn
