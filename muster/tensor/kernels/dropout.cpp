#include "muster/tensor/kernels/dropout.h"

#include <algorithm>
#include <array>

#include "muster/tensor/kernels/elementwise_loops.h"
#include "muster/tensor/kernels/types.h"

namespace muster::kernels {
namespace {

constexpr std::int64_t words = 4;  // elements that one draw of Philox decides

// Four decisions at a time for the elements [begin, end) of one row.
void draw_mask(const DropoutDraw& draw, std::uint64_t sample, std::uint64_t threshold, std::int64_t begin,
               std::int64_t end, bool* mask) {
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(draw.seed),
                                            static_cast<std::uint32_t>(draw.seed >> 32)};
  for (std::int64_t i = begin; i < end;) {
    const auto word = philox({static_cast<std::uint32_t>(i / words), static_cast<std::uint32_t>(sample),
                              static_cast<std::uint32_t>(draw.stream), static_cast<std::uint32_t>(draw.step)},
                             key);
    for (auto k = static_cast<std::size_t>(i % words); k < words && i < end; ++k, ++i)
      mask[i] = word[k] < threshold;
  }
}

template <class T>
auto scaled(T factor) {
  return [factor](T value, bool keep) { return keep ? value * factor : T{0}; };
}

template <class T>
T growth(double keep_prob) {
  return keep_prob > 0 ? static_cast<T>(1 / keep_prob) : T{0};
}

}  // namespace

void dropout(const DropoutSize& size, const DropoutDraw& draw, DType dtype, const void* x, void* y,
             bool* mask, int threads) {
  const auto threshold = static_cast<std::uint64_t>(size.keep_prob * 0x1.0p32);  // all words are below 2^32
  const std::int64_t count = size.samples * size.elements;
  parallel_for(count, elementwise_grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t row = at / size.elements;
      const std::int64_t stop = std::min(end, (row + 1) * size.elements);
      draw_mask(draw, draw.first_sample + static_cast<std::uint64_t>(row) * draw.sample_stride, threshold,
                at - row * size.elements, stop - row * size.elements, mask + row * size.elements);
      at = stop;
    }
  });
  with_floating(dtype, [&](auto zero) {
    using T = decltype(zero);
    each(scaled(growth<T>(size.keep_prob)), count, threads, static_cast<T*>(y), static_cast<const T*>(x),
         static_cast<const bool*>(mask));
  });
}

void dropout_grad(double keep_prob, DType dtype, const void* dy, const bool* mask, void* dx,
                  std::int64_t count, int threads) {
  with_floating(dtype, [&](auto zero) {
    using T = decltype(zero);
    each(scaled(growth<T>(keep_prob)), count, threads, static_cast<T*>(dx), static_cast<const T*>(dy), mask);
  });
}

}  // namespace muster::kernels
