// Cells that compute element by element, or along one axis. All take one floating tensor and give one of its
// shape and dtype.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "muster/nn/cell.h"

namespace muster::nn {

// A cell that is one op.
class OpCell : public Cell {
 public:
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

 protected:
  OpCell(std::string class_name, std::string op, graph::Attributes attributes = {});

 private:
  std::string op_;
  graph::Attributes attributes_;
};

// max(x, 0)
class ReLU : public OpCell {
 public:
  ReLU() : OpCell("ReLU", "relu") {}
};

// min(max(x, 0), 6)
class ReLU6 : public OpCell {
 public:
  ReLU6() : OpCell("ReLU6", "relu6") {}
};

// x where x >= 0, else alpha x.
class LeakyReLU : public OpCell {
 public:
  explicit LeakyReLU(double alpha = 0.2);
};

// x where x >= 0, else alpha (exp(x) - 1). Clevert et al., ICLR 2016.
class ELU : public OpCell {
 public:
  explicit ELU(double alpha = 1.0);
};

// x P(X < x) for a standard normal X; approximate: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
// Hendrycks and Gimpel, 2016 (arXiv 1606.08415).
class GELU : public OpCell {
 public:
  explicit GELU(bool approximate = true);
};

// x sigmoid(x)
class SiLU : public OpCell {
 public:
  SiLU() : OpCell("SiLU", "silu") {}
};

// 1 / (1 + exp(-x))
class Sigmoid : public OpCell {
 public:
  Sigmoid() : OpCell("Sigmoid", "sigmoid") {}
};

class Tanh : public OpCell {
 public:
  Tanh() : OpCell("Tanh", "tanh") {}
};

// exp(x) / sum(exp(x)) along `axis`, which may count from the end.
class Softmax : public OpCell {
 public:
  explicit Softmax(std::int64_t axis = -1);
};

// log(softmax(x)) along `axis`, which may count from the end.
class LogSoftmax : public OpCell {
 public:
  explicit LogSoftmax(std::int64_t axis = -1);
};

// "relu", "relu6", "leakyrelu", "elu", "gelu", "silu", "sigmoid", "tanh", "softmax" or "logsoftmax", with the
// defaults above.
Result<CellPtr> activation_named(std::string_view name);

}  // namespace muster::nn
