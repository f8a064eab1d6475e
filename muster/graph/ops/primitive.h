// Private to graph: kernels of the primitive libraries (muster/tensor/primitives.h) in the kernel lists of
// rows: of the one that is loaded where it is installed, and of our own
// (muster/tensor/batch_blocked/batch_blocked.h).
#pragma once

#include "muster/graph/ops/ops.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {

inline constexpr std::string_view primitive_kernel_name = "onednn";
inline constexpr std::string_view batch_blocked_kernel_name = "batch blocked";

// Of the primitive: its formats, its scratch, and itself as settings; declined when there is none.
Prepared prepared(const PrimitivePtr& primitive);
void run_primitive(const KernelCall& call);
bool primitives_available();
PrimitiveSetting setting_of(const Signature& signature);
// float32 or bfloat16 with elements, where the library is there.
bool suits_primitives(const Signature& signature);

using MakePrimitive = PrimitivePtr (*)(const PrimitiveLibrary&, const Signature&);

// The library that reorders between two formats, of which one is plain or both are its own.
const PrimitiveLibrary& library_of(const FormatPtr& from, const FormatPtr& to);

// Made by the library that is loaded, to which values in our own format come as plain: a reorder goes before.
Prepared prepare_loaded(MakePrimitive make, const Signature& signature);

// The kernel whose primitive `make` makes of the library and the signature.
template <MakePrimitive make>
Kernel primitive_kernel() {
  return with_bfloat16({primitive_kernel_name, suits_primitives,
                        [](const Signature& signature) { return prepare_loaded(make, signature); },
                        run_primitive, primitives_available});
}

// The same of our own library, where it `suits`.
template <MakePrimitive make, bool (*suits)(const Signature&)>
Kernel batch_blocked_kernel() {
  return {batch_blocked_kernel_name, suits,
          [](const Signature& signature) { return prepared(make(batch_blocked_library(), signature)); },
          run_primitive};
}

// float32 with elements.
bool is_float32_with_elements(const Signature& signature);
// Whether an input comes with samples side by side.
template <std::size_t index>
bool comes_batch_blocked(const Signature& signature) {
  return is_float32_with_elements(signature) && index < signature.formats.size() &&
         is_batch_blocked(signature.formats[index]);
}

}  // namespace muster::graph
