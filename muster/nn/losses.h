// What training makes small.
#pragma once

#include <span>
#include <string>

#include "muster/nn/cell.h"

namespace muster::nn {

struct CrossEntropyOptions {
  std::string reduction = "mean";  // or "sum", "none"
  std::int64_t ignore_index = -100;
  double label_smoothing = 0.0;
  Value weight = {};  // of the classes, (C,)
};

// construct(logits (N, C), labels (N,) int32) gives the cross entropy of softmax(logits): a scalar, or (N,)
// with reduction "none". The mean is over the weights of the labels that are not ignored.
class CrossEntropyLoss : public Cell {
 public:
  explicit CrossEntropyLoss(CrossEntropyOptions options = {});
  Values construct(std::span<const Value> inputs) override;

 private:
  CrossEntropyOptions options_;
};

}  // namespace muster::nn
