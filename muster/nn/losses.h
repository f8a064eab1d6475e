// Losses: what training makes small.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "muster/nn/cell.h"

namespace muster::nn {

// What all losses have: a reduction, "mean", "sum" or "none".
class LossBase : public Cell {
 public:
  explicit LossBase(std::string reduction = "mean", std::string class_name = "LossBase");
  const std::string& reduction() const { return reduction_; }
  // x * weights, reduced over all elements; `weights` may be undefined, and broadcasts.
  Value get_loss(const Value& x, const Value& weights = {}) const;
  // An error: subclasses compute.
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

 private:
  std::string reduction_;
};

// |logits - labels|, reduced. The shapes broadcast.
class L1Loss : public LossBase {
 public:
  explicit L1Loss(std::string reduction = "mean") : LossBase(std::move(reduction), "L1Loss") {}
  Values construct(std::span<const Value> inputs) override;
};

// (logits - labels)^2, reduced. The shapes broadcast.
class MSELoss : public LossBase {
 public:
  explicit MSELoss(std::string reduction = "mean") : LossBase(std::move(reduction), "MSELoss") {}
  Values construct(std::span<const Value> inputs) override;
};

// With d = |logits - labels|: d^2 / (2 beta) where d < beta, else d - beta / 2; reduced.
class SmoothL1Loss : public LossBase {
 public:
  explicit SmoothL1Loss(double beta = 1.0, std::string reduction = "none");
  Values construct(std::span<const Value> inputs) override;

 private:
  double beta_;
};

struct SoftmaxCrossEntropyOptions {
  bool sparse = false;
  std::string reduction = "none";
};

// The cross entropy of softmax(logits (N, C)) against labels: class numbers (N,), or with sparse = false
// probabilities (N, C). (N,) with "none".
class SoftmaxCrossEntropyWithLogits : public LossBase {
 public:
  explicit SoftmaxCrossEntropyWithLogits(SoftmaxCrossEntropyOptions options = {});
  Values construct(std::span<const Value> inputs) override;

 private:
  bool sparse_;
};

struct BCEOptions {
  std::string reduction = "mean";
  Value weight = {};  // broadcasts to the labels
};

// -weight (y log(x) + (1 - y) log(1 - x)) for probabilities x and labels y, reduced; the logarithms are of
// 1e-12 at least.
class BCELoss : public LossBase {
 public:
  explicit BCELoss(BCEOptions options = {});
  Values construct(std::span<const Value> inputs) override;

 private:
  Value weight_;
};

struct BCEWithLogitsOptions {
  std::string reduction = "mean";
  Value weight = {};      // broadcasts to the labels
  Value pos_weight = {};  // of positive labels; broadcasts
};

// The same for x = sigmoid(logits), without loss of digits: weight ((1 - y) x + (1 + (pos_weight - 1) y)
// log(1 + exp(-x))), reduced.
class BCEWithLogitsLoss : public LossBase {
 public:
  explicit BCEWithLogitsLoss(BCEWithLogitsOptions options = {});
  Values construct(std::span<const Value> inputs) override;

 private:
  Value weight_;
  Value pos_weight_;
};

struct NLLOptions {
  Value weight = {};  // of the classes, (C,)
  std::int64_t ignore_index = -100;
  std::string reduction = "mean";
};

// -weight[label] logits[label] for log probabilities (N, C, d...) and class numbers (N, d...), or (C,) and
// (); "mean" divides by the sum of the weights. Labels equal to ignore_index do not count.
class NLLLoss : public LossBase {
 public:
  explicit NLLLoss(NLLOptions options = {});
  Values construct(std::span<const Value> inputs) override;

 private:
  NLLOptions options_;
};

struct CrossEntropyOptions {
  std::string reduction = "mean";  // or "sum", "none"
  std::int64_t ignore_index = -100;
  double label_smoothing = 0.0;  // in [0, 1]
  Value weight = {};             // of the classes, (C,)
};

// The cross entropy of softmax(logits) along the classes. logits are (N, C), (N, C, d...) or (C,); labels are
// class numbers (N,), (N, d...) or (), int32 or int64, or floating class probabilities of the shape of the
// logits. "mean" is over the weights of the labels that are not ignored; over N d... for probabilities, where
// nothing is ignored.
class CrossEntropyLoss : public LossBase {
 public:
  explicit CrossEntropyLoss(CrossEntropyOptions options = {});
  Values construct(std::span<const Value> inputs) override;

 private:
  Value of_numbers(const Value& logits, const Value& labels) const;
  Value of_probabilities(const Value& logits, const Value& labels) const;

  CrossEntropyOptions options_;
};

}  // namespace muster::nn
