// Private to kernels: a loop compiled once for each set of vector instructions, run with the best that this
// processor has.
#pragma once

#include <cstdint>

#include "muster/tensor/cpu.h"

namespace muster::kernels {

#if defined(__x86_64__)
template <class Loop>
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))) void run_avx512(const Loop& loop,
                                                                                       std::int64_t begin,
                                                                                       std::int64_t end) {
  loop(begin, end);
}
template <class Loop>
__attribute__((target("avx2,fma"))) void run_avx2(const Loop& loop, std::int64_t begin, std::int64_t end) {
  loop(begin, end);
}
#endif

// Calls loop(begin, end). It must be declared MUSTER_LOOP, or it keeps the instructions of its own function.
#define MUSTER_LOOP __attribute__((always_inline))
template <class Loop>
void vectorised(std::int64_t begin, std::int64_t end, const Loop& loop) {
#if defined(__x86_64__)
  switch (processor_isa()) {
    case Isa::avx512:
      return run_avx512(loop, begin, end);
    case Isa::avx2:
      return run_avx2(loop, begin, end);
    case Isa::none:
      break;
  }
#endif
  loop(begin, end);
}

}  // namespace muster::kernels
