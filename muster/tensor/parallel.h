// Private to tensor: one loop on several threads.
#pragma once

#include <algorithm>
#include <cstdint>

// ThreadSanitizer does not see libgomp's barriers and would report every loop.
#if defined(_OPENMP) && !defined(__SANITIZE_THREAD__)
#include <omp.h>
#define MUSTER_PARALLEL 1
#endif

namespace muster {

// As many of `threads` as so many multiply-adds keep busy: waking one costs some microseconds.
inline int threads_for_operations(std::int64_t operations, int threads) {
  constexpr std::int64_t operations_per_thread = 1 << 20;
  return static_cast<int>(
      std::clamp<std::int64_t>(operations / operations_per_thread, 1, std::max(threads, 1)));
}

// Calls body(part, begin, end) for parts that cover [0, count) once; parts begin at multiples of `grain`, and
// are numbered from 0, fewer than `threads`. What a part computes must not depend on where it begins, so that
// the number of threads changes no bit.
template <class Body>
void parallel_parts(std::int64_t count, std::int64_t grain, int threads, const Body& body) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t parts = std::min<std::int64_t>(threads, grains);
  if (parts <= 1) {
    if (count > 0) body(std::int64_t{0}, std::int64_t{0}, count);
    return;
  }
  const auto part = [&](std::int64_t index) {
    const std::int64_t begin = grains * index / parts * grain;
    const std::int64_t end = std::min(grains * (index + 1) / parts * grain, count);
    if (begin < end) body(index, begin, end);
  };
#if defined(MUSTER_PARALLEL)
#pragma omp parallel num_threads(static_cast <int>(parts))
  for (std::int64_t index = omp_get_thread_num(); index < parts; index += omp_get_num_threads()) part(index);
#else
  for (std::int64_t index = 0; index < parts; ++index) part(index);
#endif
}

// The same for bodies that need no number: body(begin, end).
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, int threads, const Body& body) {
  parallel_parts(count, grain, threads,
                 [&body](std::int64_t, std::int64_t begin, std::int64_t end) { body(begin, end); });
}

}  // namespace muster
