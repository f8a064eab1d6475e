// Private to kernels: the loops that elementwise kernels share. Functors say what one element becomes; of
// bfloat16 they see floats, and what they give is rounded.
#pragma once

#include <cstdint>

#include "muster/base/base.h"
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

}  // namespace muster::kernels
