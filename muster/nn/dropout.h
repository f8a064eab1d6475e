// Dropout: training forgets at random.
#pragma once

#include <span>

#include "muster/nn/cell.h"

namespace muster::nn {

// While the cell trains each element becomes 0 with probability p, the others are divided by 1 - p; else x as
// it is. Which ones depends on the seed, the step, the cell and the place in the global batch, never on the
// rank. Srivastava et al., JMLR 2014.
class Dropout : public Cell {
 public:
  explicit Dropout(double p = 0.5);  // in [0, 1)
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

 private:
  double p_;
};

}  // namespace muster::nn
