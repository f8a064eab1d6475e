#include <algorithm>
#include <utility>

#include "muster/tensor/batch_blocked/batch_blocked.h"
#include "muster/tensor/batch_blocked/primitives.h"

namespace muster {
namespace batch_blocked {
namespace {

// Waking a thread costs some microseconds: about as much as this much work.
constexpr std::int64_t operations_per_thread = 1 << 19;

PrimitivePtr for_setting(const PrimitiveSetting& setting, const Simd& simd, PrimitivePtr made) {
  if (made == nullptr || setting.dtype != DType::float32) return nullptr;
  return setting.free ? made : in_plain_order(simd, std::move(made));
}

// The table holds plain functions, so each instruction set gets its own.
template <Isa isa>
constexpr PrimitiveLibrary table{
    .version = primitive_table_version,
    .name = "batch blocked",
    .conv2d =
        [](const PrimitiveSetting& setting, const kernels::Conv2dSize& size, Direction direction, bool bias,
           bool relu) {
          const Simd& simd = simd_for(isa);
          return for_setting(setting, simd, make_conv2d(simd, size, direction, bias, relu));
        },
    .conv3d = [](const PrimitiveSetting&, const kernels::Conv3dSize&, Direction) -> PrimitivePtr {
      return nullptr;
    },
    .max_pool2d =
        [](const PrimitiveSetting& setting, const kernels::Pool2dSize& size, Direction direction) {
          const Simd& simd = simd_for(isa);
          return for_setting(setting, simd, make_max_pool2d(simd, size, direction));
        },
    .avg_pool2d =
        [](const PrimitiveSetting& setting, const kernels::Pool2dSize& size, Direction direction) {
          const Simd& simd = simd_for(isa);
          return for_setting(setting, simd, make_avg_pool2d(simd, size, direction));
        },
    .batch_norm =
        [](const PrimitiveSetting& setting, const kernels::BatchNormSize& size, Direction direction,
           bool relu) {
          const Simd& simd = simd_for(isa);
          return for_setting(setting, simd, make_batch_norm(simd, size, direction, relu));
        },
    .matmul = [](const PrimitiveSetting&, const MatmulProblem&) -> PrimitivePtr { return nullptr; },
    .reorder = [](const FormatPtr& from, const FormatPtr& to,
                  int) { return make_reorder(simd_for(isa), from, to); },
    .format_named = [](const Shape&, DType, std::string_view) -> FormatPtr { return nullptr; }};

}  // namespace

int threads_for(std::int64_t operations, int threads) {
  return static_cast<int>(
      std::clamp<std::int64_t>(operations / operations_per_thread, 1, std::max(threads, 1)));
}

}  // namespace batch_blocked

const PrimitiveLibrary& batch_blocked_library(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return batch_blocked::table<Isa::avx512>;
    case Isa::avx2:
      return batch_blocked::table<Isa::avx2>;
    case Isa::none:
      break;
  }
  return batch_blocked::table<Isa::none>;
}

const PrimitiveLibrary& batch_blocked_library() { return batch_blocked_library(processor_isa()); }

PrimitivePtr batch_blocked_channel_sum(const PrimitiveSetting& setting, const Shape& x) {
  const batch_blocked::Simd& simd = batch_blocked::simd_for(processor_isa());
  return batch_blocked::for_setting(setting, simd, batch_blocked::make_channel_sum(simd, x));
}

}  // namespace muster
