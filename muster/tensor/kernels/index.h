// Elements picked by integers. I is int32 or int64; negative indices count from the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "muster/base/base.h"

namespace muster::kernels {

// x is (batches, outer, size, inner), the indices (batches, count), the result (batches, outer, count,
// inner).
struct GatherSize {
  std::int64_t batches = 1;
  std::int64_t outer = 1;
  std::int64_t size = 0;
  std::int64_t inner = 1;
  std::int64_t count = 0;
};

// The position of the first index outside of [-size, size), if there is one: to be asked first.
template <class I>
std::optional<std::int64_t> index_out_of_range(const I* indices, std::int64_t count, std::int64_t size);

// out[b, o, i, :] = x[b, o, indices[b, i], :], elements of any dtype.
template <class I>
void gather(const GatherSize& size, const std::byte* x, const I* indices, std::byte* out,
            std::size_t element_bytes, int threads);

// x = 0, then x[b, o, indices[b, i], :] += updates[b, o, i, :] in the order of i, whatever the threads. T is
// float, double, int32 or int64.
template <class T, class I>
void scatter_add(const GatherSize& size, const I* indices, const T* updates, T* x, int threads);

// out (outer, depth, inner): `on` where the depth is indices (outer, inner), else `off`; an index that is no
// depth has no `on`. Elements of any dtype.
struct OneHotSize {
  std::int64_t outer = 1;
  std::int64_t depth = 0;
  std::int64_t inner = 1;
};
template <class I>
void one_hot(const OneHotSize& size, const I* indices, const std::byte* on, const std::byte* off,
             std::byte* out, std::size_t element_bytes);

// out[i] = the place of element (indices[0][i], indices[1][i], ...) in a tensor of `sizes`, row by row.
template <class I>
void flat_index(std::span<const I* const> indices, const std::vector<std::int64_t>& sizes, std::int64_t* out,
                std::int64_t count);

}  // namespace muster::kernels
