#include "muster/train/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "muster/train/metric_rows.h"

namespace muster::train {
namespace {

tl::unexpected<Error> nothing_counted(std::string_view metric) {
  return fail(Code::invalid_argument, fmt::format("{}.eval: nothing has been counted yet", metric));
}

Result<MetricValue> share(std::string_view metric, double part, double all) {
  if (all == 0) return nothing_counted(metric);
  return part / all;
}

// Of metrics that count a part of something: a whole number, or a sum of doubles.
State state_of_share(std::int64_t part, std::int64_t all) {
  return {.text = StateValues().set("part", part).set("all", all).to_json()};
}

State state_of_share(const ExactSum& part, std::int64_t all) {
  return {.text = StateValues().set("part", part.parts()).set("all", all).to_json()};
}

Result<> merge_share(const State& state, std::int64_t& part, std::int64_t& all) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(state.text));
  MUSTER_TRY(const std::int64_t other_part, values.integer("part"));
  MUSTER_TRY(const std::int64_t other_all, values.integer("all"));
  part += other_part;
  all += other_all;
  return {};
}

Result<> merge_share(const State& state, ExactSum& part, std::int64_t& all) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(state.text));
  MUSTER_TRY(const std::vector<double> other_part, values.numbers("part"));
  MUSTER_TRY(const std::int64_t other_all, values.integer("all"));
  part.add(other_part);
  all += other_all;
  return {};
}

template <class Part>
Result<> load_share(const State& state, Part& part, std::int64_t& all) {
  part = {};
  all = 0;
  return merge_share(state, part, all);
}

}  // namespace

Result<EvalType> eval_type_from_string(std::string_view name) {
  if (name == "classification") return EvalType::classification;
  if (name == "multilabel") return EvalType::multilabel;
  return fail(Code::invalid_argument,
              fmt::format("eval_type '{}' is not known; choose 'classification' or 'multilabel'", name));
}

// ---- Accuracy ---------------------------------------------------------------------------------------------

Result<> Accuracy::clear() {
  right_ = rows_ = 0;
  return {};
}

Result<> Accuracy::update(std::span<const Tensor> inputs) {
  if (type_ == EvalType::multilabel) {
    MUSTER_TRY(const FlagRows given, flag_rows("Accuracy", inputs));
    for (std::int64_t r = 0; r < given.rows; ++r)
      right_ +=
          std::ranges::equal(row(given.predictions, given.classes, r), row(given.labels, given.classes, r));
    rows_ += given.rows;
    return {};
  }
  MUSTER_TRY(const LabelledRows given, labelled_rows("Accuracy", inputs));
  for (std::int64_t r = 0; r < given.rows; ++r)
    right_ += greatest(given.prediction(r)) == given.labels[static_cast<std::size_t>(r)];
  rows_ += given.rows;
  return {};
}

Result<MetricValue> Accuracy::eval() {
  return share("Accuracy", static_cast<double>(right_), static_cast<double>(rows_));
}

Result<State> Accuracy::state() { return state_of_share(right_, rows_); }
Result<> Accuracy::load_state(const State& state) { return load_share(state, right_, rows_); }
Result<> Accuracy::merge(const State& other) { return merge_share(other, right_, rows_); }

// ---- Loss -------------------------------------------------------------------------------------------------

Result<> Loss::clear() {
  sum_ = {};
  rows_ = 0;
  rows_of_next_ = 1;
  return {};
}

Result<> Loss::update(std::span<const Tensor> inputs) {
  const auto is_loss = [](const Tensor& x) {
    return x.elements() == 1 || (x.shape().rank() == 1 && x.elements() > 0);
  };
  if (inputs.size() != 1 || !is_loss(inputs[0]))
    return fail(Code::invalid_argument,
                "Loss.update takes one loss: a number, or one axis of them, whose mean counts");
  MUSTER_TRY(const std::vector<double> losses, numbers_of(inputs[0]));
  const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
  sum_.add(sum / static_cast<double>(losses.size()) * static_cast<double>(rows_of_next_));
  rows_ += rows_of_next_;
  return {};
}

Result<MetricValue> Loss::eval() { return share("Loss", sum_.value(), static_cast<double>(rows_)); }

Result<State> Loss::state() { return state_of_share(sum_, rows_); }
Result<> Loss::load_state(const State& state) { return load_share(state, sum_, rows_); }
Result<> Loss::merge(const State& other) { return merge_share(other, sum_, rows_); }

// ---- TopKCategoricalAccuracy ------------------------------------------------------------------------------

Result<> TopKCategoricalAccuracy::clear() {
  right_ = rows_ = 0;
  return {};
}

Result<> TopKCategoricalAccuracy::update(std::span<const Tensor> inputs) {
  MUSTER_TRY(const LabelledRows given, labelled_rows("TopKCategoricalAccuracy", inputs));
  for (std::int64_t r = 0; r < given.rows; ++r) {
    const auto values = given.prediction(r);
    const auto label = static_cast<std::size_t>(given.labels[static_cast<std::size_t>(r)]);
    std::int64_t before = 0;  // classes that come before the label
    for (std::size_t c = 0; c < values.size(); ++c)
      before += values[c] > values[label] || (values[c] == values[label] && c < label);
    right_ += before < k_;
  }
  rows_ += given.rows;
  return {};
}

Result<MetricValue> TopKCategoricalAccuracy::eval() {
  return share("TopKCategoricalAccuracy", static_cast<double>(right_), static_cast<double>(rows_));
}

Result<State> TopKCategoricalAccuracy::state() { return state_of_share(right_, rows_); }
Result<> TopKCategoricalAccuracy::load_state(const State& state) { return load_share(state, right_, rows_); }
Result<> TopKCategoricalAccuracy::merge(const State& other) { return merge_share(other, right_, rows_); }

// ---- Precision, Recall, Fbeta -----------------------------------------------------------------------------

Result<> ClassCounts::clear() {
  classes_.clear();
  return {};
}

Result<> ClassCounts::update(std::span<const Tensor> inputs) {
  FlagRows flags;
  if (type_ == EvalType::multilabel) {
    MUSTER_TRY(flags, flag_rows("update of a metric", inputs));
  } else {
    MUSTER_TRY(const LabelledRows given, labelled_rows("update of a metric", inputs));
    flags = {.rows = given.rows,
             .classes = given.classes,
             .predictions = std::vector<double>(given.predictions.size(), 0.0),
             .labels = std::vector<double>(given.predictions.size(), 0.0)};
    for (std::int64_t r = 0; r < given.rows; ++r) {
      flags.predictions[static_cast<std::size_t>(r * given.classes + greatest(given.prediction(r)))] = 1;
      flags.labels[static_cast<std::size_t>(r * given.classes + given.labels[static_cast<std::size_t>(r)])] =
          1;
    }
  }
  if (!classes_.empty() && static_cast<std::int64_t>(classes_.size()) != flags.classes)
    return fail(Code::invalid_argument,
                fmt::format("update of a metric: {} classes, {} before", flags.classes, classes_.size()));
  classes_.resize(static_cast<std::size_t>(flags.classes));
  for (std::size_t i = 0; i < flags.predictions.size(); ++i) {
    Counts& counts = classes_[i % classes_.size()];
    counts.right += flags.predictions[i] * flags.labels[i];
    counts.predicted += flags.predictions[i];
    counts.labelled += flags.labels[i];
  }
  return {};
}

Result<MetricValue> ClassCounts::eval(bool average) {
  if (classes_.empty()) return nothing_counted("metric");
  std::vector<double> values;
  for (const Counts& counts : classes_) values.push_back(of_class(counts));
  if (average) return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return Tensor::from<double>(values, {static_cast<std::int64_t>(values.size())});
}

Result<State> ClassCounts::state() {
  std::vector<double> numbers;
  for (const Counts& counts : classes_)
    numbers.insert(numbers.end(), {counts.right, counts.predicted, counts.labelled});
  return State{.text = StateValues().set("classes", std::move(numbers)).to_json()};
}

Result<> ClassCounts::load_state(const State& state) {
  classes_.clear();
  return merge(state);
}

// One that has counted nothing yet knows no classes.
Result<> ClassCounts::merge(const State& other) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(other.text));
  MUSTER_TRY(const std::vector<double> numbers, values.numbers("classes"));
  if (numbers.size() % 3 != 0) return fail(Code::corrupt, "the state counts three things of each class");
  if (classes_.empty()) classes_.resize(numbers.size() / 3);
  if (!numbers.empty() && numbers.size() != 3 * classes_.size())
    return fail(Code::invalid_argument, fmt::format("another worker has counted {} classes, this one {}",
                                                    numbers.size() / 3, classes_.size()));
  for (std::size_t i = 0; i < numbers.size(); i += 3) {
    Counts& counts = classes_[i / 3];
    counts.right += numbers[i];
    counts.predicted += numbers[i + 1];
    counts.labelled += numbers[i + 2];
  }
  return {};
}

double Precision::of_class(const Counts& counts) const {
  return counts.predicted == 0 ? 0 : counts.right / counts.predicted;
}

double Recall::of_class(const Counts& counts) const {
  return counts.labelled == 0 ? 0 : counts.right / counts.labelled;
}

double Fbeta::of_class(const Counts& counts) const {
  const double below = beta_ * beta_ * counts.labelled + counts.predicted;
  return below == 0 ? 0 : (1 + beta_ * beta_) * counts.right / below;
}

// ---- MAE and MSE ------------------------------------------------------------------------------------------

namespace {

// Adds measure(prediction - label) of all elements: those of a row as doubles, the rows exactly, so that it
// is all the same which rows came together.
template <class Measure>
Result<> add_errors(std::string_view metric, std::span<const Tensor> inputs, Measure measure, ExactSum& sum) {
  MUSTER_TRY_VOID(check_pair(metric, inputs));
  if (inputs[0].elements() != inputs[1].elements())
    return fail(Code::invalid_argument,
                fmt::format("{}.update: predictions {} and labels {} have different shapes", metric,
                            to_string(inputs[0].shape()), to_string(inputs[1].shape())));
  MUSTER_TRY(const std::vector<double> predictions, numbers_of(inputs[0]));
  MUSTER_TRY(const std::vector<double> labels, numbers_of(inputs[1]));
  if (labels.empty()) return {};
  const std::size_t width = labels.size() / static_cast<std::size_t>(inputs[1].shape()[0]);
  for (std::size_t begin = 0; begin < labels.size(); begin += width) {
    double of_row = 0;
    for (std::size_t i = begin; i < begin + width; ++i) of_row += measure(predictions[i] - labels[i]);
    sum.add(of_row);
  }
  return {};
}

}  // namespace

Result<> MAE::clear() {
  sum_ = {};
  rows_ = 0;
  return {};
}

Result<> MAE::update(std::span<const Tensor> inputs) {
  MUSTER_TRY_VOID(add_errors(
      "MAE", inputs, [](double error) { return std::fabs(error); }, sum_));
  rows_ += inputs[1].shape()[0];
  return {};
}

Result<MetricValue> MAE::eval() { return share("MAE", sum_.value(), static_cast<double>(rows_)); }

Result<State> MAE::state() { return state_of_share(sum_, rows_); }
Result<> MAE::load_state(const State& state) { return load_share(state, sum_, rows_); }
Result<> MAE::merge(const State& other) { return merge_share(other, sum_, rows_); }

Result<> MSE::clear() {
  sum_ = {};
  rows_ = 0;
  return {};
}

Result<> MSE::update(std::span<const Tensor> inputs) {
  MUSTER_TRY_VOID(add_errors(
      "MSE", inputs, [](double error) { return error * error; }, sum_));
  rows_ += inputs[1].shape()[0];
  return {};
}

Result<MetricValue> MSE::eval() { return share("MSE", sum_.value(), static_cast<double>(rows_)); }

Result<State> MSE::state() { return state_of_share(sum_, rows_); }
Result<> MSE::load_state(const State& state) { return load_share(state, sum_, rows_); }
Result<> MSE::merge(const State& other) { return merge_share(other, sum_, rows_); }

// ---- ConfusionMatrix --------------------------------------------------------------------------------------

ConfusionMatrix::ConfusionMatrix(ConfusionMatrixOptions options)
    : options_(options), counts_(static_cast<std::size_t>(options.num_classes * options.num_classes), 0.0) {}

double& ConfusionMatrix::at(std::int64_t label, std::int64_t prediction) {
  return counts_[static_cast<std::size_t>(label * options_.num_classes + prediction)];
}

Result<> ConfusionMatrix::clear() {
  std::fill(counts_.begin(), counts_.end(), 0.0);
  empty_ = true;
  return {};
}

Result<> ConfusionMatrix::update(std::span<const Tensor> inputs) {
  MUSTER_TRY_VOID(check_pair("ConfusionMatrix", inputs));
  const Shape& shape = inputs[0].shape();
  const bool scores = shape.rank() == 2;
  if (shape.rank() > 2 || inputs[1].shape().rank() != 1)
    return fail(Code::invalid_argument,
                fmt::format("ConfusionMatrix.update: predictions are (N, C) or (N,) and labels (N,), not {} "
                            "and {}",
                            to_string(shape), to_string(inputs[1].shape())));
  MUSTER_TRY(const std::vector<double> predictions, numbers_of(inputs[0]));
  MUSTER_TRY(const std::vector<double> labels, numbers_of(inputs[1]));
  const bool thresholded = !scores && is_floating(inputs[0].dtype());
  for (std::size_t r = 0; r < labels.size(); ++r) {
    const auto label = static_cast<std::int64_t>(labels[r]);
    const std::int64_t prediction = scores
                                        ? greatest(row(predictions, shape[1], static_cast<std::int64_t>(r)))
                                    : thresholded ? predictions[r] > options_.threshold
                                                  : static_cast<std::int64_t>(predictions[r]);
    if (label < 0 || label >= options_.num_classes || prediction < 0 || prediction >= options_.num_classes)
      return fail(Code::invalid_argument,
                  fmt::format("ConfusionMatrix.update: label {} or prediction {} is none of {} classes",
                              label, prediction, options_.num_classes));
    at(label, prediction) += 1;
    empty_ = false;
  }
  return {};
}

double ConfusionMatrix::divisor(std::int64_t label, std::int64_t prediction) const {
  using Normalize = ConfusionMatrixOptions::Normalize;
  const std::int64_t n = options_.num_classes;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      if (options_.normalize == Normalize::all || (options_.normalize == Normalize::target && i == label) ||
          (options_.normalize == Normalize::prediction && j == prediction))
        sum += counts_[static_cast<std::size_t>(i * n + j)];
  return sum == 0 ? 1 : sum;
}

Result<MetricValue> ConfusionMatrix::eval() {
  if (empty_) return nothing_counted("ConfusionMatrix");
  const std::int64_t n = options_.num_classes;
  Tensor values(DType::float64, {n, n});
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) values.data<double>()[i * n + j] = at(i, j) / divisor(i, j);
  return values;
}

Result<State> ConfusionMatrix::state() {
  return State{.text = StateValues().set("counts", counts_).set("empty", empty_).to_json()};
}

Result<> ConfusionMatrix::load_state(const State& state) {
  MUSTER_TRY_VOID(clear());
  return merge(state);
}

Result<> ConfusionMatrix::merge(const State& other) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(other.text));
  MUSTER_TRY(const std::vector<double> counts, values.numbers("counts"));
  MUSTER_TRY(const bool is_empty, values.flag("empty"));
  if (counts.size() != counts_.size())
    return fail(Code::corrupt, fmt::format("the state has {} counts, not {}", counts.size(), counts_.size()));
  for (std::size_t i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
  empty_ = empty_ && is_empty;
  return {};
}

}  // namespace muster::train
