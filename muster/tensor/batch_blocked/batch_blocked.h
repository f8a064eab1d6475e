// Kernels of our own for images of few channels, where a library that pads channels to its blocks of 16
// computes mostly zeros: 16 samples lie side by side instead, one in each lane of a vector. They need no
// library, so where there is none they serve for any number of channels.
//
// Private to tensor and its public header: primitives.h says what a primitive is. Sums run in float32, in an
// order that depends on the sizes alone: the number of threads changes no bit.
#pragma once

#include "muster/tensor/cpu.h"
#include "muster/tensor/format.h"
#include "muster/tensor/primitives.h"

namespace muster {

// For this processor's best instructions.
const PrimitiveLibrary& batch_blocked_library();
// For others, which the processor must have; none: what the compiler makes of vectors of 16 bytes.
const PrimitiveLibrary& batch_blocked_library(Isa isa);

// Whether a value lies in this library's format.
bool is_batch_blocked(const FormatPtr& format);

// Whether more than half of the lanes would hold samples of a batch: with fewer they lose what they gain.
bool fills_batch_blocks(std::int64_t batch);

// x (batch, channels, height, width) to the sums over all but the channels.
PrimitivePtr batch_blocked_channel_sum(const PrimitiveSetting& setting, const Shape& x);

}  // namespace muster
