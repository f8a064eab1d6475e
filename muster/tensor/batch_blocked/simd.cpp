#include "muster/tensor/batch_blocked/simd.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "muster/tensor/kernels/window.h"

namespace muster::batch_blocked {
namespace {

using kernels::Pool2dSize;
using kernels::Window;
using kernels::WindowAxis;

constexpr std::int64_t pixel = 16;  // floats: one of each sample

#if defined(__x86_64__)
namespace avx512 {
#define MUSTER_TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#define MUSTER_LANES 16
#define MUSTER_CONV_OUTS 6
#define MUSTER_CONV_COLUMNS 4
#define MUSTER_WEIGHT_SUMS 24
#include "muster/tensor/batch_blocked/simd.inc"
}  // namespace avx512

namespace avx2 {
#define MUSTER_TARGET __attribute__((target("avx2,fma")))
#define MUSTER_LANES 8
#define MUSTER_CONV_OUTS 6
#define MUSTER_CONV_COLUMNS 2
#define MUSTER_WEIGHT_SUMS 12
#include "muster/tensor/batch_blocked/simd.inc"
}  // namespace avx2
#endif

// Vectors of 16 bytes, which every processor that Muster is built for has.
namespace generic {
#define MUSTER_TARGET
#define MUSTER_LANES 4
#define MUSTER_CONV_OUTS 6
#define MUSTER_CONV_COLUMNS 2
#define MUSTER_WEIGHT_SUMS 12
#include "muster/tensor/batch_blocked/simd.inc"
}  // namespace generic

}  // namespace

const Simd& simd_for(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::table;
  if (isa == Isa::avx2) return avx2::table;
#endif
  static_cast<void>(isa);
  return generic::table;
}

}  // namespace muster::batch_blocked
