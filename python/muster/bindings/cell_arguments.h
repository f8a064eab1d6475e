// Arguments that many cells take.
#pragma once

#include <string>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// A number, or a pair of them; `what` names the argument in errors.
nn::Size2d size_from(nb::handle object, const std::string& what);
// A number, a pair (rows, columns), or four: (top, bottom, left, right).
nn::Padding padding_from(nb::handle object, const std::string& what);
nn::PadMode pad_mode_from(nb::handle object, const std::string& what);
// Only "NCHW" is there.
void require_nchw(const std::string& data_format, const std::string& what);
// Only float32 is there.
void require_float32(nb::handle dtype, const std::string& what);
// None, a cell, or the name of an activation.
nn::CellPtr activation_from(nb::handle activation);

}  // namespace muster::python
