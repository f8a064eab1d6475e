// Module `_core`: everything that C++ offers to Python, by room.
#include "python/muster/bindings/bindings.h"

NB_MODULE(_core, core) {
  using namespace muster::python;
  // Objects that are still alive when the interpreter ends (a traceback holds them) are no leak worth a
  // report.
  nb::set_leak_warnings(false);
  core.doc() = "The C++ library behind muster; import its names from muster.";
  bind_errors(core);
  bind_dtype(core);
  bind_tensor(core);
}
