// Dropout: elements are dropped at random, the others grow so that the mean stays.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "muster/base/base.h"
#include "muster/tensor/cpu.h"

namespace muster::kernels {

// Which numbers of the job's seed decide: each (step, stream, sample, element) has its own, on whichever
// worker it is computed.
struct DropoutDraw {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint64_t stream = 0;         // tells the dropouts of one step apart
  std::uint64_t first_sample = 0;   // global number of the first row
  std::uint64_t sample_stride = 1;  // from row to row
};

struct DropoutSize {
  std::int64_t samples = 1;   // rows
  std::int64_t elements = 1;  // of a row
  double keep_prob = 1;
};

// y = x / keep_prob where mask, else 0. float32 or float64; y may be x.
void dropout(const DropoutSize& size, const DropoutDraw& draw, DType dtype, const void* x, void* y,
             bool* mask, int threads);
// Draws for some elements at a time, with the instructions of its name: an element stays where its word is
// below `threshold`. Four elements share a counter, and those from `first` on are drawn.
struct MaskKernel {
  Isa isa = Isa::none;
  std::string_view name;
  std::int64_t elements = 4;
  void (*draw)(const DropoutDraw& draw, std::uint64_t sample, std::uint32_t threshold, std::int64_t first,
               bool* mask) = nullptr;
};
// Those that this processor can run, best first; the last is for every processor. All give the same bits.
std::span<const MaskKernel> mask_kernels();

// Which of the elements [begin, end) of a sample stay, one for each element from `mask` on. The same as those
// that dropout() draws for the sample whose global number it is.
void draw_dropout_mask(const DropoutDraw& draw, std::uint64_t sample, double keep_prob, std::int64_t begin,
                       std::int64_t end, bool* mask);
// By how much elements that stay grow.
template <class T>
T dropout_growth(double keep_prob) {
  return keep_prob > 0 ? static_cast<T>(1 / keep_prob) : T{0};
}
// dx = dy / keep_prob where mask, else 0.
void dropout_grad(double keep_prob, DType dtype, const void* dy, const bool* mask, void* dx,
                  std::int64_t count, int threads);

}  // namespace muster::kernels
