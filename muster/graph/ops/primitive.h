// Private to graph: kernels of the primitive library (muster/tensor/primitives.h) in the kernel lists of
// rows.
#pragma once

#include "muster/graph/op.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {

inline constexpr std::string_view primitive_kernel_name = "onednn";

// Of the primitive: its formats, its scratch, and itself as settings; declined when there is none.
Prepared prepared(const PrimitivePtr& primitive);
void run_primitive(const KernelCall& call);
bool primitives_available();
PrimitiveSetting setting_of(const Signature& signature);
// float32 with elements, where the library is there.
bool suits_primitives(const Signature& signature);

// The kernel whose primitive `make` makes of the library and the signature.
template <PrimitivePtr (*make)(const PrimitiveLibrary&, const Signature&)>
Kernel primitive_kernel() {
  return {primitive_kernel_name, suits_primitives,
          [](const Signature& signature) { return prepared(make(*primitive_library(), signature)); },
          run_primitive, primitives_available};
}

}  // namespace muster::graph
