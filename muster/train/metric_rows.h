// Private to train: predictions and labels as plain numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/tensor/tensor.h"

namespace muster::train {

// Any tensor in float64. An error where its elements are on another worker.
Result<Tensor> as_float64(const Tensor& tensor);
// The elements of any tensor as double.
Result<std::vector<double>> numbers_of(const Tensor& tensor);

// An error naming `metric` unless `inputs` are two, predictions and labels, with as many rows.
Result<> check_pair(std::string_view metric, std::span<const Tensor> inputs);

// Row r of a table of `columns` columns.
inline std::span<const double> row(const std::vector<double>& table, std::int64_t columns, std::int64_t r) {
  return std::span(table).subspan(static_cast<std::size_t>(r * columns), static_cast<std::size_t>(columns));
}

// The index of the greatest, the first of equal ones.
std::int64_t greatest(std::span<const double> values);

// Predictions (N, C) with the label of each row, from labels (N,) or one-hot (N, C).
struct LabelledRows {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  std::vector<double> predictions = {};
  std::vector<std::int64_t> labels = {};

  std::span<const double> prediction(std::int64_t r) const { return row(predictions, classes, r); }
};
Result<LabelledRows> labelled_rows(std::string_view metric, std::span<const Tensor> inputs);

// Predictions and labels (N, C) of 0 and 1.
struct FlagRows {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  std::vector<double> predictions = {};
  std::vector<double> labels = {};
};
Result<FlagRows> flag_rows(std::string_view metric, std::span<const Tensor> inputs);

}  // namespace muster::train
