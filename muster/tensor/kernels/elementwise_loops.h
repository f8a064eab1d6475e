// Private to kernels: the loops that elementwise kernels share. Functors say what one element becomes; of
// bfloat16 they see floats, and what they give is rounded.
#pragma once

#include <array>
#include <cstdint>

#include "muster/base/base.h"
#include "muster/tensor/kernels/broadcast.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {

// Below this many elements a second thread costs more than it brings.
inline constexpr std::int64_t elementwise_grain = 16384;

// out[i] = f(x[i]...); out may be an input.
template <class F, class Out, class... In>
void each(const F& f, std::int64_t count, int threads, Out* out, const In*... x) {
  parallel_for(count, elementwise_grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      out[i] = static_cast<Out>(f(static_cast<Computed<In>>(x[i])...));
  });
}

// The same with a loop of its own: loop(x..., out, count).
template <class Loop, class Out, class... In>
void in_parts(const Loop& loop, std::int64_t count, int threads, Out* out, const In*... x) {
  parallel_for(count, elementwise_grain, threads,
               [&](std::int64_t begin, std::int64_t end) { loop((x + begin)..., out + begin, end - begin); });
}

// One run of pairs. Within a run an operand goes along (stride 1) or stands still (stride 0).
template <class F, class In, class Out>
void run_of_pairs(const F& f, const In* a, std::int64_t a_stride, const In* b, std::int64_t b_stride,
                  Out* out, std::int64_t count) {
  using Number = Computed<In>;
  const auto g = [&f](Number left, Number right) { return static_cast<Out>(f(left, right)); };
  if (a_stride == 1 && b_stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = g(a[i], b[i]);
  } else if (a_stride == 1) {
    const Number right = *b;
    for (std::int64_t i = 0; i < count; ++i) out[i] = g(a[i], right);
  } else if (b_stride == 1) {
    const Number left = *a;
    for (std::int64_t i = 0; i < count; ++i) out[i] = g(left, b[i]);
  } else {
    const Out both = g(*a, *b);
    for (std::int64_t i = 0; i < count; ++i) out[i] = both;
  }
}

// out = f(a, b) with broadcasting; out may be an operand that is not repeated.
template <class F, class In, class Out>
void each_pair(const F& f, const BroadcastLoops& loops, int threads, const In* a, const In* b, Out* out) {
  const std::int64_t a_stride = loops.strides[0].back();
  const std::int64_t b_stride = loops.strides[1].back();
  parallel_for(loops.count, elementwise_grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for_each_run<2>(loops, begin, end, [&](const auto& offsets, std::int64_t at, std::int64_t count) {
      run_of_pairs(f, a + offsets[0], a_stride, b + offsets[1], b_stride, out + at, count);
    });
  });
}

// The same, one element after another: the oracle.
template <class F, class In, class Out>
void each_pair_reference(const F& f, const std::array<Shape, 3>& shapes, const In* a, const In* b, Out* out) {
  const auto& [a_shape, b_shape, out_shape] = shapes;
  const auto a_strides = broadcast_strides(a_shape, out_shape);
  const auto b_strides = broadcast_strides(b_shape, out_shape);
  const std::int64_t count = out_shape.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t a_at = 0;
    std::int64_t b_at = 0;
    std::int64_t rest = i;
    for (std::size_t axis = out_shape.rank(); axis-- > 0; rest /= out_shape[axis]) {
      a_at += rest % out_shape[axis] * a_strides[axis];
      b_at += rest % out_shape[axis] * b_strides[axis];
    }
    out[i] = static_cast<Out>(f(static_cast<Computed<In>>(a[a_at]), static_cast<Computed<In>>(b[b_at])));
  }
}

}  // namespace muster::kernels
