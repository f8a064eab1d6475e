#include "muster/tensor/kernels/dropout.h"

#include <algorithm>
#include <array>

#include "muster/tensor/kernels/elementwise_loops.h"
#include "muster/tensor/kernels/types.h"

namespace muster::kernels {
namespace {

constexpr std::int64_t words = 4;  // elements that one draw of Philox decides

template <class T>
auto scaled(T factor) {
  return [factor](T value, bool keep) { return keep ? value * factor : T{0}; };
}

}  // namespace

// Four decisions at a time.
void draw_dropout_mask(const DropoutDraw& draw, std::uint64_t sample, double keep_prob, std::int64_t begin,
                       std::int64_t end, bool* mask) {
  const auto threshold = static_cast<std::uint64_t>(keep_prob * 0x1.0p32);  // all words are below 2^32
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(draw.seed),
                                            static_cast<std::uint32_t>(draw.seed >> 32)};
  for (std::int64_t i = begin; i < end;) {
    const auto word = philox({static_cast<std::uint32_t>(i / words), static_cast<std::uint32_t>(sample),
                              static_cast<std::uint32_t>(draw.stream), static_cast<std::uint32_t>(draw.step)},
                             key);
    for (auto k = static_cast<std::size_t>(i % words); k < words && i < end; ++k, ++i)
      mask[i - begin] = word[k] < threshold;
  }
}

void dropout(const DropoutSize& size, const DropoutDraw& draw, DType dtype, const void* x, void* y,
             bool* mask, int threads) {
  const std::int64_t count = size.samples * size.elements;
  parallel_for(count, elementwise_grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t row = at / size.elements;
      const std::int64_t stop = std::min(end, (row + 1) * size.elements);
      draw_dropout_mask(draw, draw.first_sample + static_cast<std::uint64_t>(row) * draw.sample_stride,
                        size.keep_prob, at - row * size.elements, stop - row * size.elements, mask + at);
      at = stop;
    }
  });
  with_floating(dtype, [&](auto zero) {
    using T = decltype(zero);
    each(scaled(dropout_growth<T>(size.keep_prob)), count, threads, static_cast<T*>(y),
         static_cast<const T*>(x), static_cast<const bool*>(mask));
  });
}

void dropout_grad(double keep_prob, DType dtype, const void* dy, const bool* mask, void* dx,
                  std::int64_t count, int threads) {
  with_floating(dtype, [&](auto zero) {
    using T = decltype(zero);
    each(scaled(dropout_growth<T>(keep_prob)), count, threads, static_cast<T*>(dx), static_cast<const T*>(dy),
         mask);
  });
}

}  // namespace muster::kernels
