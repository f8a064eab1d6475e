#include "muster/tensor/kernels/bfloat16_loops.h"

#include "muster/tensor/cpu.h"

namespace muster::kernels {
namespace {

namespace plain {
#define MUSTER_TARGET
#include "muster/tensor/kernels/bfloat16_loops.inc"
#undef MUSTER_TARGET
}  // namespace plain

#if defined(__x86_64__)
namespace avx512 {
#define MUSTER_TARGET [[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prefer-vector-width=512")]]
#include "muster/tensor/kernels/bfloat16_loops.inc"
#undef MUSTER_TARGET
}  // namespace avx512

namespace avx2 {
#define MUSTER_TARGET [[gnu::target("avx2,fma")]]
#include "muster/tensor/kernels/bfloat16_loops.inc"
#undef MUSTER_TARGET
}  // namespace avx2
#endif

}  // namespace

const Bfloat16Loops& plain_bfloat16_loops() { return plain::loops; }

const Bfloat16Loops& bfloat16_loops() {
#if defined(__x86_64__)
  if (processor_isa() == Isa::avx512) return avx512::loops;
  if (processor_isa() == Isa::avx2) return avx2::loops;
#endif
  return plain::loops;
}

}  // namespace muster::kernels
