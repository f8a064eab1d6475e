#include "muster/tensor/kernels/reduce.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>
#include <vector>

#include "muster/tensor/kernels/types.h"
#include "muster/tensor/kernels/vectorised.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

using Loop = ReduceLoops::Loop;

// Columns that are reduced together: their accumulators stay in the first cache.
constexpr std::int64_t block = 128;
// Elements below which a second thread costs more than it brings.
constexpr std::int64_t grain_elements = 16384;

template <class T>
struct Sum {
  using Total = std::conditional_t<std::is_floating_point_v<T>, double, std::make_unsigned_t<std::int64_t>>;
  static constexpr Total begin = 0;
  static Total fold(Total total, T value) { return total + static_cast<Total>(value); }
  static Total join(Total a, Total b) { return a + b; }
  static T end(Total total, std::int64_t) { return static_cast<T>(total); }
};

template <class T>
struct SumOfSquares : Sum<T> {
  using Total = typename Sum<T>::Total;
  static Total fold(Total total, T value) {
    return total + static_cast<Total>(value) * static_cast<Total>(value);
  }
};

template <class T>
struct Mean : Sum<T> {
  static T end(typename Sum<T>::Total total, std::int64_t count) {
    if constexpr (std::is_integral_v<T>)  // towards zero; of nothing 0
      return count == 0 ? 0 : static_cast<T>(static_cast<std::int64_t>(total) / count);
    else
      return static_cast<T>(total / static_cast<typename Sum<T>::Total>(count));
  }
};

template <class T>
struct Prod {
  using Total = typename Sum<T>::Total;
  static constexpr Total begin = 1;
  static Total fold(Total total, T value) { return total * static_cast<Total>(value); }
  static Total join(Total a, Total b) { return a * b; }
  static T end(Total total, std::int64_t) { return static_cast<T>(total); }
};

template <class T>
struct Max {
  using Total = T;
  static constexpr T begin =
      std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min();
  static T fold(T total, T value) { return value > total || value != value ? value : total; }
  static T join(T a, T b) { return fold(a, b); }
  static T end(T total, std::int64_t) { return total; }
};

template <class T>
struct Min {
  using Total = T;
  static constexpr T begin =
      std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  static T fold(T total, T value) { return value < total || value != value ? value : total; }
  static T join(T a, T b) { return fold(a, b); }
  static T end(T total, std::int64_t) { return total; }
};

std::int64_t rounds(const std::vector<Loop>& loops, std::size_t count) {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < count; ++i) product *= loops[i].size;
  return product;
}

// Where round `index` of the first `count` loops begins.
std::int64_t offset_of(const std::vector<Loop>& loops, std::size_t count, std::int64_t index) {
  std::int64_t offset = 0;
  for (std::size_t loop = count; loop-- > 0; index /= loops[loop].size)
    offset += index % loops[loop].size * loops[loop].stride;
  return offset;
}

// Elements of 16 bits are folded as float32: R is a reduction of Computed<T>.
// Eight accumulators take turns, so that an addition need not wait for the one before.
template <class R, class T>
typename R::Total fold_run(typename R::Total total, const T* x, std::int64_t count) {
  constexpr std::int64_t lanes = 8;
  if (count < 4 * lanes) {
    for (std::int64_t i = 0; i < count; ++i) total = R::fold(total, static_cast<Computed<T>>(x[i]));
    return total;
  }
  std::array<typename R::Total, lanes> lane;
  lane.fill(R::begin);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (std::int64_t k = 0; k < lanes; ++k)
      lane[static_cast<std::size_t>(k)] =
          R::fold(lane[static_cast<std::size_t>(k)], static_cast<Computed<T>>(x[i + k]));
  for (; i < count; ++i) lane[0] = R::fold(lane[0], static_cast<Computed<T>>(x[i]));
  for (const auto& part : lane) total = R::join(total, part);
  return total;
}

// Of a long run this many elements make a part, so that several threads share it.
constexpr std::int64_t part_elements = 65536;

// Each result is made of one long run.
template <class R, class T>
void fold_long_rows(const ReduceLoops& loops, const T* x, T* out, int threads) {
  const std::int64_t run = loops.inputs_each, parts = (run + part_elements - 1) / part_elements;
  std::vector<typename R::Total> totals(static_cast<std::size_t>(loops.outputs * parts));
  parallel_for(loops.outputs * parts, 1, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t first = task % parts * part_elements;
      const T* const base = x + offset_of(loops.kept, loops.kept.size(), task / parts) + first;
      totals[static_cast<std::size_t>(task)] =
          fold_run<R>(R::begin, base, std::min(part_elements, run - first));
    }
  });
  for (std::int64_t o = 0; o < loops.outputs; ++o) {
    auto total = R::begin;
    for (std::int64_t part = 0; part < parts; ++part)
      total = R::join(total, totals[static_cast<std::size_t>(o * parts + part)]);
    out[o] = static_cast<T>(R::end(total, run));
  }
}

// The innermost loop is folded: each result is made of runs.
template <class R, class T>
void fold_rows(const ReduceLoops& loops, const T* x, T* out, int threads) {
  const std::size_t outer = loops.folded.size() - 1;
  const std::int64_t runs = rounds(loops.folded, outer);
  const std::int64_t run = loops.folded[outer].size;
  if (runs == 1 && run >= 2 * part_elements && loops.outputs < 64)
    return fold_long_rows<R>(loops, x, out, threads);
  const std::int64_t grain =
      std::max<std::int64_t>(1, grain_elements / std::max<std::int64_t>(1, runs * run));
  parallel_for(loops.outputs, grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      const T* base = x + offset_of(loops.kept, loops.kept.size(), o);
      auto total = R::begin;
      for (std::int64_t r = 0; r < runs; ++r)
        total = fold_run<R>(total, base + offset_of(loops.folded, outer, r), run);
      out[o] = static_cast<T>(R::end(total, loops.inputs_each));
    }
  });
}

// The innermost loop is kept: neighbouring results are made together.
template <class R, class T>
void fold_columns(const ReduceLoops& loops, const T* x, T* out, int threads) {
  const std::size_t outer = loops.kept.size() - 1;
  const std::int64_t columns = loops.kept[outer].size;
  const std::int64_t blocks = (columns + block - 1) / block;
  const std::int64_t runs = rounds(loops.folded, loops.folded.size());
  const std::int64_t tasks = rounds(loops.kept, outer) * blocks;
  const std::int64_t grain =
      std::max<std::int64_t>(1, grain_elements / std::max<std::int64_t>(1, runs * std::min(columns, block)));
  const auto fold = [&](std::int64_t begin, std::int64_t end) MUSTER_LOOP {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t first = task % blocks * block;
      const std::int64_t width = std::min(block, columns - first);
      const T* base = x + offset_of(loops.kept, outer, task / blocks) + first;
      typename R::Total total[block];
      std::fill_n(total, block, R::begin);
      for (std::int64_t r = 0; r < runs; ++r) {
        const T* row = base + offset_of(loops.folded, loops.folded.size(), r);
        for (std::int64_t c = 0; c < width; ++c)
          total[c] = R::fold(total[c], static_cast<Computed<T>>(row[c]));
      }
      T* to = out + task / blocks * columns + first;
      for (std::int64_t c = 0; c < width; ++c) to[c] = static_cast<T>(R::end(total[c], loops.inputs_each));
    }
  };
  // A product of two float64 may be fused with an addition there, and then has other bits; one of two float32
  // is exact in float64.
  constexpr bool has_same_bits = std::is_same_v<Computed<T>, float>;
  parallel_for(tasks, grain, threads, [&](std::int64_t begin, std::int64_t end) {
    if constexpr (has_same_bits)
      vectorised(begin, end, fold);
    else
      fold(begin, end);
  });
}

template <class R, class T>
void fold_one_by_one(const ReduceLoops& loops, const T* x, T* out) {
  for (std::int64_t o = 0; o < loops.outputs; ++o) {
    const T* base = x + offset_of(loops.kept, loops.kept.size(), o);
    auto total = R::begin;
    for (std::int64_t i = 0; i < loops.inputs_each; ++i)
      total = R::fold(total, static_cast<Computed<T>>(base[offset_of(loops.folded, loops.folded.size(), i)]));
    out[o] = static_cast<T>(R::end(total, loops.inputs_each));
  }
}

template <class T, class Use>
void with_reduction(Reduce kind, const Use& use) {
  switch (kind) {
    case Reduce::sum:
      return use(Sum<T>());
    case Reduce::mean:
      return use(Mean<T>());
    case Reduce::max:
      return use(Max<T>());
    case Reduce::min:
      return use(Min<T>());
    case Reduce::prod:
      return use(Prod<T>());
    case Reduce::sum_of_squares:
      return use(SumOfSquares<T>());
  }
}

template <class T>
void prod_grad_of_one(const ReduceLoops& loops, T dy, const T* x, T* dx) {
  const auto at = [&](std::int64_t i) { return offset_of(loops.folded, loops.folded.size(), i); };
  std::int64_t zeros = 0;
  double product = 1;  // of the elements that are not zero
  for (std::int64_t i = 0; i < loops.inputs_each; ++i) {
    const double value = static_cast<double>(x[at(i)]);
    if (value == 0)
      ++zeros;
    else
      product *= value;
  }
  for (std::int64_t i = 0; i < loops.inputs_each; ++i) {
    const double value = static_cast<double>(x[at(i)]);
    double others = 0;
    if (zeros == 0) others = product / value;
    if (zeros == 1 && value == 0) others = product;
    dx[at(i)] = static_cast<T>(static_cast<double>(dy) * others);
  }
}

}  // namespace

ReduceLoops reduce_loops(const Shape& shape, const std::vector<bool>& folded) {
  ReduceLoops loops;
  std::int64_t stride = 1;
  bool any = false;
  bool last = false;
  for (std::size_t axis = shape.rank(); axis-- > 0; stride *= shape[axis]) {
    (folded[axis] ? loops.inputs_each : loops.outputs) *= shape[axis];
    if (shape[axis] == 1) continue;
    auto& own = folded[axis] ? loops.folded : loops.kept;
    if (any && last == folded[axis])
      own.back().size *= shape[axis];
    else
      own.push_back({shape[axis], stride});
    if (!any) loops.rows = folded[axis];
    any = true;
    last = folded[axis];
  }
  std::reverse(loops.kept.begin(), loops.kept.end());
  std::reverse(loops.folded.begin(), loops.folded.end());
  if (!loops.rows && loops.kept.empty()) loops.kept.push_back({});
  return loops;
}

void reduce(Reduce kind, DType dtype, const ReduceLoops& loops, const void* x, void* out, int threads) {
  with_number_element(dtype, [&](auto zero) {
    using T = decltype(zero);
    with_reduction<Computed<T>>(kind, [&](auto reduction) {
      using R = decltype(reduction);
      if (loops.rows)
        fold_rows<R>(loops, static_cast<const T*>(x), static_cast<T*>(out), threads);
      else
        fold_columns<R>(loops, static_cast<const T*>(x), static_cast<T*>(out), threads);
    });
  });
}

void reduce_reference(Reduce kind, DType dtype, const ReduceLoops& loops, const void* x, void* out) {
  with_number_element(dtype, [&](auto zero) {
    using T = decltype(zero);
    with_reduction<Computed<T>>(kind, [&](auto reduction) {
      fold_one_by_one<decltype(reduction)>(loops, static_cast<const T*>(x), static_cast<T*>(out));
    });
  });
}

void prod_grad(DType dtype, const ReduceLoops& loops, const void* dy, const void* x, void* dx, int threads) {
  with_floating(dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t each = std::max<std::int64_t>(1, loops.inputs_each);
    parallel_for(loops.outputs, std::max<std::int64_t>(1, grain_elements / each), threads,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t o = begin; o < end; ++o) {
                     const std::int64_t base = offset_of(loops.kept, loops.kept.size(), o);
                     prod_grad_of_one(loops, static_cast<const T*>(dy)[o], static_cast<const T*>(x) + base,
                                      static_cast<T*>(dx) + base);
                   }
                 });
  });
}

LineSize line_size(const Shape& shape, std::size_t axis) {
  LineSize lines{.outer = 1, .size = shape[axis], .inner = 1};
  for (std::size_t i = 0; i < axis; ++i) lines.outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.rank(); ++i) lines.inner *= shape[i];
  return lines;
}

void arg_extreme(bool greatest, DType dtype, const LineSize& lines, const void* x, std::int32_t* out,
                 int threads) {
  with_number(dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto first_extreme = [&](const T* line) {
      std::int64_t best = 0;
      T extreme = line[0];
      for (std::int64_t i = 1; i < lines.size && extreme == extreme; ++i) {
        const T value = line[i * lines.inner];
        const bool beats = greatest ? value > extreme : value < extreme;
        if (!beats && value == value) continue;
        extreme = value;
        best = i;
      }
      return static_cast<std::int32_t>(best);
    };
    const std::int64_t grain = std::max<std::int64_t>(1, grain_elements / lines.size);
    parallel_for(lines.outer * lines.inner, grain, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t base = i / lines.inner * lines.inner * lines.size + i % lines.inner;
        out[i] = first_extreme(static_cast<const T*>(x) + base);
      }
    });
  });
}

}  // namespace muster::kernels
