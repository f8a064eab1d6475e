#include "muster/tensor/kernels/copy.h"

#include <algorithm>
#include <cstring>

#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

// Waking a thread costs about as much as copying this many elements.
constexpr std::int64_t elements_per_part = 1 << 14;
constexpr std::int64_t bytes_per_part = 1 << 18;
// A block of this many lines by as many elements stays in the first cache on both sides.
constexpr std::int64_t block = 16;

// A place in the outer axes of a copy, as offsets into both sides.
class Walk {
 public:
  Walk(const StridedCopy& copy, std::size_t axes, std::int64_t at)
      : copy_(copy), index_(axes), from(copy.from_begin), to(copy.to_begin) {
    for (std::size_t axis = axes; axis-- > 0;) {
      index_[axis] = at % copy.sizes[axis];
      at /= copy.sizes[axis];
      from += index_[axis] * copy.from_strides[axis];
      to += index_[axis] * copy.to_strides[axis];
    }
  }

  void next() {
    for (std::size_t axis = index_.size(); axis-- > 0;) {
      from += copy_.from_strides[axis];
      to += copy_.to_strides[axis];
      if (++index_[axis] < copy_.sizes[axis]) return;
      from -= copy_.sizes[axis] * copy_.from_strides[axis];
      to -= copy_.sizes[axis] * copy_.to_strides[axis];
      index_[axis] = 0;
    }
  }

 private:
  const StridedCopy& copy_;
  std::vector<std::int64_t> index_;

 public:
  std::int64_t from;
  std::int64_t to;
};

std::int64_t product(const std::vector<std::int64_t>& sizes, std::size_t axes) {
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis < axes; ++axis) count *= sizes[axis];
  return count;
}

// `bytes` is known when compiled, so that each memcpy is one load and one store.
template <std::size_t bytes>
void copy_line(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
               std::int64_t count) {
  constexpr auto unit = static_cast<std::int64_t>(bytes);
  if (from_step == 1 && to_step == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * bytes);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_step * unit, from + i * from_step * unit, bytes);
}

template <std::size_t bytes>
void copy_lines(const StridedCopy& copy, const std::byte* from, std::byte* to, int threads) {
  constexpr auto unit = static_cast<std::int64_t>(bytes);
  const std::size_t last = copy.sizes.size() - 1;
  const std::int64_t grain = std::max<std::int64_t>(elements_per_part / copy.sizes[last], 1);
  parallel_for(product(copy.sizes, last), grain, threads, [&](std::int64_t begin, std::int64_t end) {
    Walk walk(copy, last, begin);
    for (std::int64_t i = begin; i < end; ++i, walk.next())
      copy_line<bytes>(from + walk.from * unit, copy.from_strides[last], to + walk.to * unit,
                       copy.to_strides[last], copy.sizes[last]);
  });
}

// The two inner axes in small blocks: one side runs along the rows, the other along the columns.
template <std::size_t bytes>
void copy_blocks(const StridedCopy& copy, const std::byte* from, std::byte* to, int threads) {
  constexpr auto unit = static_cast<std::int64_t>(bytes);
  const std::size_t last = copy.sizes.size() - 1;
  const std::int64_t rows = copy.sizes[last - 1];
  const std::int64_t columns = copy.sizes[last];
  const std::int64_t row_blocks = (rows + block - 1) / block;
  const std::int64_t grain = std::max<std::int64_t>(elements_per_part / (block * columns), 1);
  const std::int64_t count = product(copy.sizes, last - 1) * row_blocks;
  parallel_for(count, grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Walk outer(copy, last - 1, i / row_blocks);
      const std::int64_t first = i % row_blocks * block;
      const std::int64_t height = std::min(block, rows - first);
      for (std::int64_t column = 0; column < columns; column += block)
        for (std::int64_t row = first; row < first + height; ++row)
          copy_line<bytes>(
              from +
                  (outer.from + row * copy.from_strides[last - 1] + column * copy.from_strides[last]) * unit,
              copy.from_strides[last],
              to + (outer.to + row * copy.to_strides[last - 1] + column * copy.to_strides[last]) * unit,
              copy.to_strides[last], std::min(block, columns - column));
    }
  });
}

template <std::size_t bytes>
void copy_elements(const StridedCopy& copy, const std::byte* from, std::byte* to, int threads) {
  const std::size_t rank = copy.sizes.size();
  const bool crossed = rank >= 2 && copy.from_strides[rank - 2] == 1 && copy.to_strides[rank - 1] == 1;
  if (crossed)
    copy_blocks<bytes>(copy, from, to, threads);
  else
    copy_lines<bytes>(copy, from, to, threads);
}

// Where the walk runs along the columns of `from`, its rows become the axis next to the last.
void bring_rows_inwards(StridedCopy& copy) {
  const std::size_t last = copy.sizes.size() - 1;
  if (copy.to_strides[last] != 1 || copy.from_strides[last] == 1) return;
  const auto found = std::find(copy.from_strides.begin(), copy.from_strides.end(), 1);
  if (found == copy.from_strides.end()) return;
  const auto from_back = [&](std::vector<std::int64_t>& list, std::ptrdiff_t axis) {
    std::rotate(list.begin() + axis, list.begin() + axis + 1, list.end() - 1);
  };
  const std::ptrdiff_t axis = found - copy.from_strides.begin();
  from_back(copy.sizes, axis);
  from_back(copy.to_strides, axis);
  from_back(copy.from_strides, axis);
}

}  // namespace

std::vector<std::int64_t> row_major_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.rank());
  std::int64_t step = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

StridedCopy simplified(const StridedCopy& copy) {
  StridedCopy made{.sizes = {},
                   .from_strides = {},
                   .to_strides = {},
                   .from_begin = copy.from_begin,
                   .to_begin = copy.to_begin};
  for (std::size_t axis = 0; axis < copy.sizes.size(); ++axis) {
    const std::int64_t size = copy.sizes[axis];
    if (size == 0) return {.sizes = {0}, .from_strides = {1}, .to_strides = {1}};
    if (size == 1) continue;
    const bool continues = !made.sizes.empty() &&
                           made.from_strides.back() == size * copy.from_strides[axis] &&
                           made.to_strides.back() == size * copy.to_strides[axis];
    if (continues) {
      made.sizes.back() *= size;
      made.from_strides.back() = copy.from_strides[axis];
      made.to_strides.back() = copy.to_strides[axis];
    } else {
      made.sizes.push_back(size);
      made.from_strides.push_back(copy.from_strides[axis]);
      made.to_strides.push_back(copy.to_strides[axis]);
    }
  }
  if (made.sizes.empty()) {
    made.sizes = {1};
    made.from_strides = {1};
    made.to_strides = {1};
  }
  bring_rows_inwards(made);
  return made;
}

void strided_copy(const StridedCopy& copy, const std::byte* from, std::byte* to, std::size_t element_bytes,
                  int threads) {
  if (copy.sizes.front() == 0) return;
  switch (element_bytes) {
    case 1:
      return copy_elements<1>(copy, from, to, threads);
    case 2:
      return copy_elements<2>(copy, from, to, threads);
    case 4:
      return copy_elements<4>(copy, from, to, threads);
    case 8:
      return copy_elements<8>(copy, from, to, threads);
    default:
      break;
  }
  MUSTER_CHECK(false, "no dtype has elements of this size");
}

void fill_elements(const std::byte* element, std::size_t element_bytes, std::byte* out, std::int64_t count) {
  if (count == 0) return;
  const std::size_t total = static_cast<std::size_t>(count) * element_bytes;
  std::memcpy(out, element, element_bytes);
  for (std::size_t done = element_bytes; done < total;) {  // what is there already is copied behind itself
    const std::size_t more = std::min(done, total - done);
    std::memcpy(out + done, out, more);
    done += more;
  }
}

void copy_bytes(const std::byte* from, std::byte* to, std::size_t size_bytes, int threads) {
  parallel_for(static_cast<std::int64_t>(size_bytes), bytes_per_part, threads,
               [=](std::int64_t begin, std::int64_t end) {
                 std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
               });
}

}  // namespace muster::kernels
