// Moving elements of any dtype: one walk with strides serves transposing, slicing, reversing, repeating,
// joining, splitting and padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/base/base.h"

namespace muster::kernels {

// For each index below `sizes` the element at from_begin + index * from_strides goes to to_begin + index *
// to_strides. Begins and strides count elements; strides of `from` may be 0 (it is repeated), all may be
// negative. The elements written to are distinct.
struct StridedCopy {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> from_strides;
  std::vector<std::int64_t> to_strides;
  std::int64_t from_begin = 0;
  std::int64_t to_begin = 0;
};

// Steps through the elements of a tensor in memory: (12, 4, 1) for (2, 3, 4).
std::vector<std::int64_t> row_major_strides(const Shape& shape);

// The same copy in as few axes as possible, and in an order that caches like. Done once, before the runs.
StridedCopy simplified(const StridedCopy& copy);

// `from` and `to` do not overlap; `element_bytes` is 1, 2, 4 or 8.
void strided_copy(const StridedCopy& copy, const std::byte* from, std::byte* to, std::size_t element_bytes,
                  int threads);

// From one place to another that does not overlap it.
void copy_bytes(const std::byte* from, std::byte* to, std::size_t size_bytes, int threads);

// `count` copies of one element.
void fill_elements(const std::byte* element, std::size_t element_bytes, std::byte* out, std::int64_t count);

}  // namespace muster::kernels
