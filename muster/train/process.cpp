#include "muster/train/process.h"

namespace muster::train {

Process& process() {
  static auto* const made = new Process;
  return *made;
}

}  // namespace muster::train
