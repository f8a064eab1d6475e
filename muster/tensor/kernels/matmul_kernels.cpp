#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "muster/tensor/cpu.h"
#include "muster/tensor/kernels/matmul.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {

#if defined(__x86_64__)
namespace {

int threads_for(const MatmulSize& size, int threads) {
  return threads_for_operations(size.m * size.n * size.k, threads);
}

std::size_t no_scratch(const MatmulSize&, int) { return 0; }

namespace avx512 {
#define MUSTER_TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#define MUSTER_LANES 16
#define MUSTER_ROWS 14
#define MUSTER_DOT_ROWS 4
#define MUSTER_DOT_COLUMNS 5
#include "muster/tensor/kernels/matmul_simd.inc"
}  // namespace avx512

namespace avx2 {
#define MUSTER_TARGET __attribute__((target("avx2,fma")))
#define MUSTER_LANES 8
#define MUSTER_ROWS 6
#define MUSTER_DOT_ROWS 2
#define MUSTER_DOT_COLUMNS 5
#include "muster/tensor/kernels/matmul_simd.inc"
}  // namespace avx2

constexpr std::array<MatmulKernel, 6> list{{
    {Isa::avx512, "avx512 dot", avx512::dot_usable, avx512::dot, no_scratch},
    {Isa::avx512, "avx512 outer", avx512::outer_usable, avx512::outer, no_scratch},
    {Isa::avx512, "avx512 packed", avx512::packed_usable, avx512::packed, avx512::packed_scratch, false},
    {Isa::avx2, "avx2 dot", avx2::dot_usable, avx2::dot, no_scratch},
    {Isa::avx2, "avx2 outer", avx2::outer_usable, avx2::outer, no_scratch},
    {Isa::avx2, "avx2 packed", avx2::packed_usable, avx2::packed, avx2::packed_scratch, false},
}};

}  // namespace

std::span<const MatmulKernel> matmul_kernels() { return usable_here(std::span<const MatmulKernel>(list)); }
#else
std::span<const MatmulKernel> matmul_kernels() { return {}; }
#endif

}  // namespace muster::kernels
