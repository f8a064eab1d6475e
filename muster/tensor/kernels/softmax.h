// softmax and its logarithm along one axis, and their derivatives. float32 or float64; sums run in double.
#pragma once

#include "muster/tensor/kernels/reduce.h"

namespace muster::kernels {

// y = e^x / sum(e^x) of each line, or its logarithm. y may be x.
void softmax(bool logarithm, DType dtype, const LineSize& lines, const void* x, void* y, int threads);

// dx from dy and y; dx may be dy.
void softmax_grad(bool logarithm, DType dtype, const LineSize& lines, const void* dy, const void* y, void* dx,
                  int threads);

}  // namespace muster::kernels
