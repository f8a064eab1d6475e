// The buffer protocol of Tensor: numpy and memoryview read its elements in place.
#pragma once

#include "python/muster/bindings/bindings.h"

namespace muster::python {

// Slots for class Tensor; ends with an empty one.
extern PyType_Slot tensor_buffer_slots[];

}  // namespace muster::python
