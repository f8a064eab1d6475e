// The built-in metrics. Predictions and labels may have any dtype; arrays are per class.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/train/metric.h"

namespace muster::train {

// A sum of doubles that does not depend on their order: it keeps every bit and rounds once, when it is asked
// for. So numbers that were shared out among workers have the sum that one process gives them. Infinities and
// NaN add up as those of doubles do.
class ExactSum {
 public:
  void add(double number);
  // Their sum is this one, exactly: another ExactSum takes them by add().
  std::vector<double> parts() const;
  void add(std::span<const double> numbers) {
    for (const double number : numbers) add(number);
  }
  // Rounded to the nearest double, of two equally near ones to the even one.
  double value() const;

 private:
  std::vector<double> parts_;  // finite; from small to large, no bit of one reaches into another
  double not_finite_ = 0;      // the sum of what is not
};

// What predictions and labels mean.
enum class EvalType {
  classification,  // predictions (N, C), labels (N,) or one-hot (N, C)
  multilabel,      // predictions and labels (N, C) of 0 and 1
};
// "classification" or "multilabel"; an error lists the choices.
Result<EvalType> eval_type_from_string(std::string_view name);

// The share of rows that are predicted right; for several labels those that are right in all.
class Accuracy : public Metric {
 public:
  explicit Accuracy(EvalType type = EvalType::classification) : type_(type) {}
  Result<> clear() override;
  Result<> update(std::span<const Tensor> inputs) override;
  Result<MetricValue> eval() override;
  Result<State> state() override;
  Result<> load_state(const State& state) override;
  bool merges() const override { return true; }
  Result<> merge(const State& other) override;

 private:
  EvalType type_;
  std::int64_t right_ = 0;
  std::int64_t rows_ = 0;
};

// The mean loss of the rows: of batches of different sizes each counts by its rows, as set_rows() says them
// before each update; without it batches count alike.
class Loss : public Metric {
 public:
  Result<> clear() override;
  Result<> update(std::span<const Tensor> inputs) override;
  Result<MetricValue> eval() override;
  Result<State> state() override;
  Result<> load_state(const State& state) override;
  bool merges() const override { return true; }
  Result<> merge(const State& other) override;
  bool wants_loss() const override { return true; }
  void set_rows(std::int64_t rows) override { rows_of_next_ = rows; }

 private:
  ExactSum sum_;
  std::int64_t rows_ = 0;
  std::int64_t rows_of_next_ = 1;
};

// The share of rows whose label is among the k greatest predictions. Of equal predictions the one of the
// lower class counts as greater.
class TopKCategoricalAccuracy : public Metric {
 public:
  // k is at least 1.
  explicit TopKCategoricalAccuracy(std::int64_t k) : k_(k) {}
  Result<> clear() override;
  Result<> update(std::span<const Tensor> inputs) override;
  Result<MetricValue> eval() override;
  Result<State> state() override;
  Result<> load_state(const State& state) override;
  bool merges() const override { return true; }
  Result<> merge(const State& other) override;

 private:
  std::int64_t k_;
  std::int64_t right_ = 0;
  std::int64_t rows_ = 0;
};

class Top1CategoricalAccuracy : public TopKCategoricalAccuracy {
 public:
  Top1CategoricalAccuracy() : TopKCategoricalAccuracy(1) {}
};

class Top5CategoricalAccuracy : public TopKCategoricalAccuracy {
 public:
  Top5CategoricalAccuracy() : TopKCategoricalAccuracy(5) {}
};

// Counts of each class that Precision, Recall and Fbeta share.
class ClassCounts : public Metric {
 public:
  Result<> clear() override;
  Result<> update(std::span<const Tensor> inputs) override;
  // For each class, or their mean.
  Result<MetricValue> eval() override { return eval(false); }
  Result<MetricValue> eval(bool average);
  Result<State> state() override;
  Result<> load_state(const State& state) override;
  bool merges() const override { return true; }
  Result<> merge(const State& other) override;

 protected:
  explicit ClassCounts(EvalType type) : type_(type) {}
  struct Counts {
    double right = 0;      // predicted and true
    double predicted = 0;  // predicted
    double labelled = 0;   // true
  };
  virtual double of_class(const Counts& counts) const = 0;

 private:
  EvalType type_;
  std::vector<Counts> classes_;
};

// Of what was predicted to be of a class, the share that is; 0 where nothing was.
class Precision : public ClassCounts {
 public:
  explicit Precision(EvalType type = EvalType::classification) : ClassCounts(type) {}

 private:
  double of_class(const Counts& counts) const override;
};

// Of what is of a class, the share that was predicted to be; 0 where nothing is.
class Recall : public ClassCounts {
 public:
  explicit Recall(EvalType type = EvalType::classification) : ClassCounts(type) {}

 private:
  double of_class(const Counts& counts) const override;
};

// (1 + beta^2) precision recall / (beta^2 precision + recall).
class Fbeta : public ClassCounts {
 public:
  explicit Fbeta(double beta) : ClassCounts(EvalType::classification), beta_(beta) {}

 private:
  double of_class(const Counts& counts) const override;
  double beta_;
};

class F1 : public Fbeta {
 public:
  F1() : Fbeta(1.0) {}
};

// The sum of |prediction - label| over all elements, divided by the number of rows.
class MAE : public Metric {
 public:
  Result<> clear() override;
  Result<> update(std::span<const Tensor> inputs) override;
  Result<MetricValue> eval() override;
  Result<State> state() override;
  Result<> load_state(const State& state) override;
  bool merges() const override { return true; }
  Result<> merge(const State& other) override;

 private:
  ExactSum sum_;
  std::int64_t rows_ = 0;
};

// The sum of (prediction - label)^2 over all elements, divided by the number of rows.
class MSE : public Metric {
 public:
  Result<> clear() override;
  Result<> update(std::span<const Tensor> inputs) override;
  Result<MetricValue> eval() override;
  Result<State> state() override;
  Result<> load_state(const State& state) override;
  bool merges() const override { return true; }
  Result<> merge(const State& other) override;

 private:
  ExactSum sum_;
  std::int64_t rows_ = 0;
};

struct ConfusionMatrixOptions {
  std::int64_t num_classes = 2;
  // Divides by the row's sum (the share of each label), by the column's, or by all.
  enum class Normalize { none, target, prediction, all } normalize = Normalize::none;
  double threshold = 0.5;  // of predictions (N,): above it they are of class 1
};

// Entry (i, j) counts the rows of label i that were predicted to be j.
class ConfusionMatrix : public Metric {
 public:
  explicit ConfusionMatrix(ConfusionMatrixOptions options);
  Result<> clear() override;
  Result<> update(std::span<const Tensor> inputs) override;
  Result<MetricValue> eval() override;
  Result<State> state() override;
  Result<> load_state(const State& state) override;
  bool merges() const override { return true; }
  Result<> merge(const State& other) override;

 private:
  double divisor(std::int64_t label, std::int64_t prediction) const;
  double& at(std::int64_t label, std::int64_t prediction);

  ConfusionMatrixOptions options_;
  std::vector<double> counts_;
  bool empty_ = true;
};

}  // namespace muster::train
