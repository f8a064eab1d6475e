// Private to batch_blocked: its primitives, by the names of PrimitiveLibrary's members. They list the formats
// of all their inputs and outputs.
#pragma once

#include "muster/tensor/batch_blocked/format.h"
#include "muster/tensor/batch_blocked/simd.h"
#include "muster/tensor/primitives.h"

namespace muster::batch_blocked {

PrimitivePtr make_conv2d(const Simd& simd, const kernels::Conv2dSize& size, Direction direction, bool bias,
                         bool relu);
PrimitivePtr make_conv2d_grad_weight(const Simd& simd, const kernels::Conv2dSize& size);
PrimitivePtr make_max_pool2d(const Simd& simd, const kernels::Pool2dSize& size, Direction direction);
PrimitivePtr make_avg_pool2d(const Simd& simd, const kernels::Pool2dSize& size, Direction direction);
PrimitivePtr make_batch_norm(const Simd& simd, const kernels::BatchNormSize& size, Direction direction,
                             bool relu);
PrimitivePtr make_channel_sum(const Simd& simd, const Shape& x);
PrimitivePtr make_reorder(const Simd& simd, const FormatPtr& from, const FormatPtr& to);

// `inner` between reorders, for callers whose values are plain.
PrimitivePtr in_plain_order(const Simd& simd, PrimitivePtr inner);

inline FormatPtr x_format(const kernels::Conv2dSize& s) {
  return batch_blocked_format(s.batch, s.in_channels * s.in_height * s.in_width);
}
inline FormatPtr y_format(const kernels::Conv2dSize& s) {
  return batch_blocked_format(s.batch, s.out_channels * s.out_height * s.out_width);
}

// How many threads are worth waking for this much arithmetic.
int threads_for(std::int64_t operations, int threads);

}  // namespace muster::batch_blocked
