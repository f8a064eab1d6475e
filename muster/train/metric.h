// Metric: what an evaluation says about a network, collected batch by batch.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "muster/base/base.h"
#include "muster/tensor/tensor.h"
#include "muster/train/state.h"

namespace muster::train {

// A value of the language above (any Python object).
class ForeignValue {
 public:
  virtual ~ForeignValue() = default;
  virtual std::string text() const = 0;
  virtual std::optional<double> number() const = 0;
  // As JSON, if it can be said so.
  virtual std::optional<std::string> json() const { return std::nullopt; }
};

// A number, an array of float64 (one number for each class), or something of the language above.
using MetricValue = std::variant<double, Tensor, std::shared_ptr<const ForeignValue>>;

// As Python prints it: "0.98", "[0.5 1. ]".
std::string to_string(const MetricValue& value);
// The number, the mean of an array, or nothing.
std::optional<double> number_of(const MetricValue& value);

// Results of an evaluation by name, in the order of the metrics.
using MetricValues = std::vector<std::pair<std::string, MetricValue>>;
// As JSON and back; nothing where a value of the language above cannot be said so.
std::optional<std::string> to_json(const MetricValues& values);
Result<MetricValues> metric_values_from(const std::string& json);
// "{'Accuracy': 0.98, 'loss': 0.1}"
std::string to_string(const MetricValues& values);

// "accuracy 0.98, loss 0.1043": numbers in four digits.
std::string results_text(const MetricValues& values);

// Subclasses count in update and answer in eval. Threads: one at a time.
class Metric {
 public:
  Metric() = default;
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;
  virtual ~Metric() = default;

  // As if nothing had been counted.
  virtual Result<> clear() = 0;
  // One batch: by default what the network gave and the labels.
  virtual Result<> update(std::span<const Tensor> inputs) = 0;
  // The answer; an error before the first update.
  virtual Result<MetricValue> eval() = 0;
  // Whether update is given the loss alone instead of outputs and labels.
  virtual bool wants_loss() const { return false; }
  // Whether a script has written its update, which is given all outputs of an eval_network, as in MindSpore.
  virtual bool is_of_script() const { return false; }
  // How many rows the next update is of, for those whose inputs do not say it: a loss.
  virtual void set_rows(std::int64_t) {}
  // What has been counted, for recovery points and for merge().
  virtual Result<State> state() { return State{}; }
  virtual Result<> load_state(const State&) { return {}; }
  // Adds what another one has counted, as its state() says: in an evaluation of which each worker makes a
  // share, all workers clear() theirs and merge those of all, in the same order. Where it does not merge the
  // number is this worker's alone.
  virtual bool merges() const { return false; }
  virtual Result<> merge(const State& other);

  // Which of the evaluation's outputs update is given, when the default does not fit.
  const std::optional<std::vector<std::size_t>>& indexes() const { return indexes_; }
  void set_indexes(std::vector<std::size_t> indexes) { indexes_ = std::move(indexes); }

 private:
  std::optional<std::vector<std::size_t>> indexes_;
};

using MetricPtr = std::shared_ptr<Metric>;
using NamedMetrics = std::vector<std::pair<std::string, MetricPtr>>;

// A new metric by name: "accuracy", "acc", "loss", "top_1_accuracy", "top_5_accuracy", "precision", "recall",
// "F1", "mae", "mse"; an error lists them.
Result<MetricPtr> metric_named(std::string_view name);
std::vector<std::string> metric_names();

}  // namespace muster::train
