// Private to tensor: products and convolutions of bfloat16 by primitives of float32, for processors that
// compute those in less time (Processor::slow_bfloat16).
#pragma once

#include "muster/tensor/primitives.h"

namespace muster {

// `library`, but for the products of bfloat16 in which arithmetic outweighs the casts: inputs are widened,
// results rounded once, formats stay those of bfloat16. There is one such library in a process: `library`
// must always be the same.
const PrimitiveLibrary& with_wide_products(const PrimitiveLibrary& library);

}  // namespace muster
