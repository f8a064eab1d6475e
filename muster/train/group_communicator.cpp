#include "muster/train/group_communicator.h"

namespace muster::train {

collective::Reduction to_collective(graph::Reduction reduction) {
  switch (reduction) {
    case graph::Reduction::sum:
      return collective::Reduction::sum;
    case graph::Reduction::mean:
      return collective::Reduction::mean;
    case graph::Reduction::max:
      return collective::Reduction::max;
    case graph::Reduction::min:
      return collective::Reduction::min;
  }
  return collective::Reduction::sum;
}

}  // namespace muster::train
