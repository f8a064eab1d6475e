#include "muster/tensor/kernels/index.h"

#include <algorithm>
#include <cstring>

#include "muster/tensor/kernels/copy.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

constexpr std::int64_t bytes_per_part = 1 << 16;
constexpr std::int64_t columns_per_part = 64;  // several cache lines, so that threads do not share one

std::int64_t from_begin(std::int64_t index, std::int64_t size) { return index < 0 ? index + size : index; }

}  // namespace

template <class I>
std::optional<std::int64_t> index_out_of_range(const I* indices, std::int64_t count, std::int64_t size) {
  for (std::int64_t i = 0; i < count; ++i)
    if (indices[i] < -size || indices[i] >= size) return i;
  return std::nullopt;
}

template <class I>
void gather(const GatherSize& size, const std::byte* x, const I* indices, std::byte* out,
            std::size_t element_bytes, int threads) {
  const auto row_bytes = size.inner * static_cast<std::int64_t>(element_bytes);
  if (row_bytes == 0) return;
  const std::int64_t rows = size.batches * size.outer * size.count;
  const std::int64_t grain = std::max<std::int64_t>(bytes_per_part / row_bytes, 1);
  parallel_for(rows, grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t outer = row / size.count;  // batch and outer together
      const std::int64_t batch = outer / size.outer;
      const std::int64_t index = from_begin(indices[batch * size.count + row % size.count], size.size);
      std::memcpy(out + row * row_bytes, x + (outer * size.size + index) * row_bytes,
                  static_cast<std::size_t>(row_bytes));
    }
  });
}

template <class T, class I>
void scatter_add(const GatherSize& size, const I* indices, const T* updates, T* x, int threads) {
  std::fill_n(x, size.batches * size.outer * size.size * size.inner, T{0});
  // Each part has columns of its own and walks all indices in order, so sums do not depend on threads.
  parallel_for(size.inner, columns_per_part, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t outer = 0; outer < size.batches * size.outer; ++outer) {
      const I* own = indices + outer / size.outer * size.count;
      for (std::int64_t i = 0; i < size.count; ++i) {
        const T* from = updates + (outer * size.count + i) * size.inner;
        T* to = x + (outer * size.size + from_begin(own[i], size.size)) * size.inner;
        for (std::int64_t column = begin; column < end; ++column) to[column] += from[column];
      }
    }
  });
}

template <class I>
void one_hot(const OneHotSize& size, const I* indices, const std::byte* on, const std::byte* off,
             std::byte* out, std::size_t element_bytes) {
  fill_elements(off, element_bytes, out, size.outer * size.depth * size.inner);
  for (std::int64_t outer = 0; outer < size.outer; ++outer)
    for (std::int64_t inner = 0; inner < size.inner; ++inner) {
      const std::int64_t index = indices[outer * size.inner + inner];
      if (index < 0 || index >= size.depth) continue;
      const std::int64_t at = (outer * size.depth + index) * size.inner + inner;
      std::memcpy(out + at * static_cast<std::int64_t>(element_bytes), on, element_bytes);
    }
}

template <class I>
void flat_index(std::span<const I* const> indices, const std::vector<std::int64_t>& sizes, std::int64_t* out,
                std::int64_t count) {
  std::fill_n(out, count, std::int64_t{0});
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    for (std::int64_t i = 0; i < count; ++i)
      out[i] = out[i] * sizes[axis] + from_begin(indices[axis][i], sizes[axis]);
}

#define MUSTER_INSTANTIATE_INDEX(I)                                                                    \
  template std::optional<std::int64_t> index_out_of_range(const I*, std::int64_t, std::int64_t);       \
  template void gather(const GatherSize&, const std::byte*, const I*, std::byte*, std::size_t, int);   \
  template void one_hot(const OneHotSize&, const I*, const std::byte*, const std::byte*, std::byte*,   \
                        std::size_t);                                                                  \
  template void flat_index(std::span<const I* const>, const std::vector<std::int64_t>&, std::int64_t*, \
                           std::int64_t);                                                              \
  template void scatter_add(const GatherSize&, const I*, const float*, float*, int);                   \
  template void scatter_add(const GatherSize&, const I*, const double*, double*, int);                 \
  template void scatter_add(const GatherSize&, const I*, const std::int32_t*, std::int32_t*, int);     \
  template void scatter_add(const GatherSize&, const I*, const std::int64_t*, std::int64_t*, int);
MUSTER_INSTANTIATE_INDEX(std::int32_t)
MUSTER_INSTANTIATE_INDEX(std::int64_t)

}  // namespace muster::kernels
