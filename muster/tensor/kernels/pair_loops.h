// Private to kernels: the arithmetic of two operands that networks spend their time in, as wide as the
// processor allows. The bits are those of the plain loops on every processor.
#pragma once

#include <cstdint>

#include "muster/base/base.h"
#include "muster/tensor/cpu.h"
#include "muster/tensor/kernels/binary.h"

namespace muster::kernels {

// One run: out[i] = f(a[i], b[i]). An operand goes along (stride 1) or stands still (stride 0); out may be
// one that goes along.
using PairLoop = void (*)(const void* a, std::int64_t a_stride, const void* b, std::int64_t b_stride,
                          void* out, std::int64_t count);

// Null: there is none for this function, dtype or processor.
PairLoop pair_loop(Binary kind, DType dtype, Isa isa = processor_isa());

}  // namespace muster::kernels
