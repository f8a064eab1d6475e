#include "muster/train/metric_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/nn/nn.h"

namespace muster::train {

Result<Tensor> as_float64(const Tensor& tensor) {
  return catch_error([&] { return nn::ops::cast(tensor, DType::float64).read(); });
}

Result<std::vector<double>> numbers_of(const Tensor& tensor) {
  if (tensor.dtype() == DType::float64)
    return std::vector<double>(tensor.span<double>().begin(), tensor.span<double>().end());
  MUSTER_TRY(const Tensor doubles, as_float64(tensor));
  return std::vector<double>(doubles.span<double>().begin(), doubles.span<double>().end());
}

Result<> check_pair(std::string_view metric, std::span<const Tensor> inputs) {
  if (inputs.size() != 2)
    return fail(
        Code::invalid_argument,
        fmt::format("{}.update takes predictions and labels, {} tensors were given", metric, inputs.size()));
  const Shape& predictions = inputs[0].shape();
  const Shape& labels = inputs[1].shape();
  if (predictions.rank() == 0 || labels.rank() == 0 || predictions[0] != labels[0])
    return fail(Code::invalid_argument, fmt::format("{}.update: predictions {} and labels {} do not have as "
                                                    "many rows",
                                                    metric, to_string(predictions), to_string(labels)));
  return {};
}

std::int64_t greatest(std::span<const double> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

Result<LabelledRows> labelled_rows(std::string_view metric, std::span<const Tensor> inputs) {
  MUSTER_TRY_VOID(check_pair(metric, inputs));
  const Shape& predictions = inputs[0].shape();
  const Shape& labels = inputs[1].shape();
  const bool one_hot = labels == predictions;
  if (predictions.rank() != 2 || predictions[1] < 1 || (labels.rank() != 1 && !one_hot))
    return fail(Code::invalid_argument,
                fmt::format("{}.update: predictions are (N, C) and labels (N,) or (N, C), not {} and {}",
                            metric, to_string(predictions), to_string(labels)));
  LabelledRows rows{.rows = predictions[0], .classes = predictions[1]};
  MUSTER_TRY(rows.predictions, numbers_of(inputs[0]));
  MUSTER_TRY(const std::vector<double> given, numbers_of(inputs[1]));
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    const std::int64_t label = one_hot ? greatest(row(given, rows.classes, r))
                                       : static_cast<std::int64_t>(given[static_cast<std::size_t>(r)]);
    if (label < 0 || label >= rows.classes)
      return fail(Code::invalid_argument, fmt::format("{}.update: label {} is no class of {} predictions",
                                                      metric, label, rows.classes));
    rows.labels.push_back(label);
  }
  return rows;
}

Result<FlagRows> flag_rows(std::string_view metric, std::span<const Tensor> inputs) {
  MUSTER_TRY_VOID(check_pair(metric, inputs));
  const Shape& shape = inputs[0].shape();
  if (shape.rank() != 2 || inputs[1].shape() != shape)
    return fail(Code::invalid_argument,
                fmt::format("{}.update: predictions and labels of several labels are (N, C), not {} and {}",
                            metric, to_string(shape), to_string(inputs[1].shape())));
  FlagRows rows{.rows = shape[0], .classes = shape[1]};
  MUSTER_TRY(rows.predictions, numbers_of(inputs[0]));
  MUSTER_TRY(rows.labels, numbers_of(inputs[1]));
  const auto is_flag = [](double value) { return value == 0 || value == 1; };
  if (!std::all_of(rows.predictions.begin(), rows.predictions.end(), is_flag) ||
      !std::all_of(rows.labels.begin(), rows.labels.end(), is_flag))
    return fail(Code::invalid_argument,
                fmt::format("{}.update: predictions and labels of several labels are 0 or 1", metric));
  return rows;
}

}  // namespace muster::train
