// Guards of a trace: what traced Python code reads beside its arguments. Variables of its module and of the
// functions around it, attributes of objects and classes, and what lists, dicts, sets and arrays hold there.
// A plan serves only as long as all of it is what it was.
#pragma once

#include "python/muster/bindings/bindings.h"

namespace muster::python {

// The trace in progress depends on what `callable` reads: a function, a method, or an object that is called.
// Called before it runs; does nothing outside of a trace. Functions of libraries are not looked into, nor are
// attributes of cells that are values, parameters or cells: a cell notes itself when one is set.
void guard(nb::handle callable);
// The same for `self.construct` of a cell.
void guard_construct(nb::handle self);

}  // namespace muster::python
