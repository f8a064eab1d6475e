#include <nanobind/stl/string.h>

#include "python/muster/bindings/bindings.h"

namespace muster::python {

std::string class_name(nb::handle object) {
  return nb::cast<std::string>(nb::str(object.type().attr("__name__")));
}

}  // namespace muster::python
