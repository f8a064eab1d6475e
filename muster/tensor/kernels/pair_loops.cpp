#include "muster/tensor/kernels/pair_loops.h"

#include <type_traits>

namespace muster::kernels {
namespace {

#if defined(__x86_64__)
namespace avx512 {
#define MUSTER_TARGET [[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prefer-vector-width=512")]]
#include "muster/tensor/kernels/pair_loops.inc"
#undef MUSTER_TARGET
}  // namespace avx512

namespace avx2 {
#define MUSTER_TARGET [[gnu::target("avx2,fma")]]
#include "muster/tensor/kernels/pair_loops.inc"
#undef MUSTER_TARGET
}  // namespace avx2
#endif

}  // namespace

PairLoop pair_loop(Binary kind, DType dtype, Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::loop_of(kind, dtype);
  if (isa == Isa::avx2) return avx2::loop_of(kind, dtype);
#endif
  return nullptr;
}

}  // namespace muster::kernels
