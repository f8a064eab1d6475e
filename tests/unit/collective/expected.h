// What collective calls must give, written down once more without any of the module's code.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "muster/base/base.h"

namespace muster::collective {

template <class T>
std::vector<T> drawn_values(std::uint64_t seed, std::uint32_t rank, std::size_t count) {
  const RandomStream random(seed, rank);
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    if constexpr (is_floating_v<T>)  // of very different sizes, so that the order of adding shows
      values[i] = static_cast<T>(std::ldexp(static_cast<Computed<T>>(random.uniform(i) - 0.5),
                                            static_cast<int>(i % (sizeof(T) == 2 ? 12 : 40)) - 6));
    else
      values[i] = static_cast<T>(random.bits(i));
  return values;
}

template <class T>
T combined(T a, T b, Reduction reduction) {
  if (reduction == Reduction::max) return a < b ? b : a;
  if (reduction == Reduction::min) return b < a ? b : a;
  if constexpr (std::is_integral_v<T>) {
    const auto left = static_cast<std::uint64_t>(a), right = static_cast<std::uint64_t>(b);
    switch (reduction) {
      case Reduction::product:
        return static_cast<T>(left * right);
      case Reduction::band:
        return static_cast<T>(left & right);
      case Reduction::bor:
        return static_cast<T>(left | right);
      case Reduction::bxor:
        return static_cast<T>(left ^ right);
      default:
        return static_cast<T>(left + right);
    }
  } else {
    return reduction == Reduction::product ? a * b : a + b;
  }
}

// By rank in, element by element in the order of the ranks; 16 bits are widened, and rounded once.
template <class T>
std::vector<T> expected_of(const std::vector<std::vector<T>>& inputs, Reduction reduction) {
  std::vector<T> expected;
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    auto value = static_cast<Computed<T>>(inputs[0][i]);
    for (std::size_t r = 1; r < inputs.size(); ++r)
      value = combined<Computed<T>>(value, static_cast<Computed<T>>(inputs[r][i]), reduction);
    if (reduction == Reduction::mean) {
      if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
        value = static_cast<T>(static_cast<std::int64_t>(value) / static_cast<std::int64_t>(inputs.size()));
      else
        value = static_cast<Computed<T>>(value / static_cast<Computed<T>>(inputs.size()));
    }
    expected.push_back(static_cast<T>(value));
  }
  return expected;
}

}  // namespace muster::collective
