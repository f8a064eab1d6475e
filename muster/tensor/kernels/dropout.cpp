#include "muster/tensor/kernels/dropout.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "muster/tensor/cpu.h"
#include "muster/tensor/kernels/elementwise_loops.h"
#include "muster/tensor/kernels/types.h"

namespace muster::kernels {
namespace {

constexpr std::int64_t words = 4;  // elements that one draw of Philox decides

constexpr std::int64_t elements_max = 32;  // of a kernel

#if defined(__x86_64__)
namespace avx512 {
#define MUSTER_TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#define MUSTER_LANES 16
#define MUSTER_MULTIPLY(a, b) ((Longs)_mm512_maskz_mul_epu32(0xFF, (__m512i)(a), (__m512i)(b)))
#include "muster/tensor/kernels/dropout_simd.inc"
}  // namespace avx512

namespace avx2 {
#define MUSTER_TARGET __attribute__((target("avx2,fma")))
#define MUSTER_LANES 8
#define MUSTER_MULTIPLY(a, b) ((Longs)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#include "muster/tensor/kernels/dropout_simd.inc"
}  // namespace avx2
#endif

// The definition.
void draw_one(const DropoutDraw& draw, std::uint64_t sample, std::uint32_t threshold, std::int64_t first,
              bool* mask) {
  const auto word =
      philox({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(sample),
              static_cast<std::uint32_t>(draw.stream), static_cast<std::uint32_t>(draw.step)},
             {static_cast<std::uint32_t>(draw.seed), static_cast<std::uint32_t>(draw.seed >> 32)});
  for (std::size_t k = 0; k < words; ++k) mask[k] = word[k] < threshold;
}

#if defined(__x86_64__)
constexpr std::array<MaskKernel, 3> list{{{Isa::avx512, "avx512", 32, avx512::draw_group},
                                          {Isa::avx2, "avx2", 16, avx2::draw_group},
                                          {Isa::none, "reference", words, draw_one}}};
#else
constexpr std::array<MaskKernel, 1> list{{{Isa::none, "reference", words, draw_one}}};
#endif

template <class T>
auto scaled(T factor) {
  return [factor](T value, bool keep) { return keep ? value * factor : T{0}; };
}

}  // namespace

std::span<const MaskKernel> mask_kernels() { return usable_here(std::span<const MaskKernel>(list)); }

void draw_dropout_mask(const DropoutDraw& draw, std::uint64_t sample, double keep_prob, std::int64_t begin,
                       std::int64_t end, bool* mask) {
  if (keep_prob >= 1) {  // all words are below 2^32
    std::fill_n(mask, end - begin, true);
    return;
  }
  const auto threshold = static_cast<std::uint32_t>(keep_prob * 0x1.0p32);
  const MaskKernel& kernel = mask_kernels().front();
  for (std::int64_t at = begin / words * words; at < end; at += kernel.elements) {
    if (at >= begin && at + kernel.elements <= end) {
      kernel.draw(draw, sample, threshold, at / words, mask + (at - begin));
      continue;
    }
    bool whole[elements_max];
    kernel.draw(draw, sample, threshold, at / words, whole);
    const std::int64_t first = std::max(at, begin), stop = std::min(at + kernel.elements, end);
    std::copy_n(whole + (first - at), stop - first, mask + (first - begin));
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
