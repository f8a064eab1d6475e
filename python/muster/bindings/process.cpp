#include "python/muster/bindings/process.h"

namespace muster::python {

Process& process() {
  static auto* const made = new Process;
  return *made;
}

}  // namespace muster::python
