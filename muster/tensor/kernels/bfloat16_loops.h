// Private to kernels: the loops over bfloat16 that networks spend their time in, as wide as the processor
// allows. Outputs may be inputs. The bits are those of the plain loops on every processor.
#pragma once

#include <cstdint>

#include "muster/base/base.h"

namespace muster::kernels {

struct Bfloat16Loops {
  void (*widen)(const bfloat16* x, float* y, std::int64_t count);
  void (*round)(const float* x, bfloat16* y, std::int64_t count);
  void (*add)(const bfloat16* a, const bfloat16* b, bfloat16* out, std::int64_t count);
  void (*relu)(const bfloat16* x, bfloat16* y, std::int64_t count);
  void (*relu_grad)(const bfloat16* dy, const bfloat16* y, bfloat16* dx, std::int64_t count);
  // max(a + b, 0), and a + b where y > 0
  void (*add_relu)(const bfloat16* a, const bfloat16* b, bfloat16* out, std::int64_t count);
  void (*add_relu_grad)(const bfloat16* a, const bfloat16* b, const bfloat16* y, bfloat16* out,
                        std::int64_t count);
  // What float16 has of its own: the conversions.
  void (*widen_float16)(const float16* x, float* y, std::int64_t count);
  void (*round_float16)(const float* x, float16* y, std::int64_t count);
};

// Of this processor.
const Bfloat16Loops& bfloat16_loops();
// Without any of its vector instructions.
const Bfloat16Loops& plain_bfloat16_loops();

}  // namespace muster::kernels
