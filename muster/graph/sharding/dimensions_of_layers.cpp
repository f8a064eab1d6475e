// Rules of convolutions, pooling, batch normalization, attention and losses.
#include "muster/graph/sharding/dimensions.h"

namespace muster::graph {
namespace {

using AxisLabels = DimensionMap::Labels;
constexpr int uncut = DimensionMap::whole;

// Of images, weights and results: samples and channels.
constexpr int samples = 0, results = 1, channels = 2;

// The first two axes of `labels`.
void label(AxisLabels& labels, int first, int second) {
  labels[0] = first;
  labels[1] = second;
}

bool has_groups(const DimensionMap& map) { return map.attributes.get("group", std::int64_t{1}) != 1; }

}  // namespace

// x (N, C, ...), weight (O, C, ...) and perhaps a bias (O,), which is added once, so that the channels are
// not cut then; y (N, O, ...).
void conv_dimensions(DimensionMap& map) {
  const bool has_bias = map.inputs.size() > 2;
  const int out = has_groups(map) ? uncut : results;
  const int in = has_groups(map) || has_bias ? uncut : channels;
  label(map.of_inputs[0], samples, in);
  label(map.of_inputs[1], out, in);
  if (has_bias) map.of_inputs[2][0] = out;
  label(map.of_outputs[0], samples, out);
}

// dy (N, O, ...) and the weight to dx (N, C, ...).
void conv_grad_input_dimensions(DimensionMap& map) {
  const int out = has_groups(map) ? uncut : results, in = has_groups(map) ? uncut : channels;
  label(map.of_inputs[0], samples, out);
  label(map.of_inputs[1], out, in);
  label(map.of_outputs[0], samples, in);
}

// x (N, C, ...) and dy (N, O, ...) to that of the weight.
void conv_grad_weight_dimensions(DimensionMap& map) {
  const int out = has_groups(map) ? uncut : results, in = has_groups(map) ? uncut : channels;
  label(map.of_inputs[0], samples, in);
  label(map.of_inputs[1], samples, out);
  label(map.of_outputs[0], out, in);
}

void channel_sum_dimensions(DimensionMap& map) {
  for (std::size_t dim = 0; dim < map.of_inputs[0].size(); ++dim)
    map.of_inputs[0][dim] = static_cast<int>(dim);
  map.of_outputs[0][0] = map.of_inputs[0][1];
}

void pool_dimensions(DimensionMap& map) {
  for (AxisLabels& labels : map.of_inputs) label(labels, samples, channels);
  for (AxisLabels& labels : map.of_outputs) label(labels, samples, channels);
}

namespace {

// Images have samples and channels, everything else has channels.
void label_by_channel(DimensionMap& map) {
  const auto each = [](AxisLabels& labels) {
    if (labels.size() > 1)
      label(labels, samples, channels);
    else
      labels[0] = channels;
  };
  for (AxisLabels& labels : map.of_inputs) each(labels);
  for (AxisLabels& labels : map.of_outputs) each(labels);
}

}  // namespace

// In training the batch's statistics are sums over the samples: see Expansion.
void batch_norm_dimensions(DimensionMap& map) {
  if (map.attributes.get("training", false)) return;
  label_by_channel(map);
  map.copies = {1, 2};  // the statistics that came in
}

void batch_norm_grad_dimensions(DimensionMap& map) {
  if (!map.attributes.get("training", false)) label_by_channel(map);
}

namespace {

// q, k and v from input `first` on, and what broadcasts against the products behind them.
struct AttentionAxes {
  std::size_t heads, rows;
};

AttentionAxes attention_axes(const DimensionMap& map) {
  const bool rows_first = map.attributes.get("rows_first", false);
  return {rows_first ? 2u : 1u, rows_first ? 1u : 2u};
}

constexpr int heads = 1, queries = 2;

// Which weights are dropped depends on the number of the sample and the place in it.
bool drops(const DimensionMap& map) { return map.attributes.get("keep_prob", 1.0) < 1; }

void label_query(const DimensionMap& map, AxisLabels& labels) {
  labels[0] = samples;
  if (drops(map)) return;
  labels[attention_axes(map).heads] = heads;
  if (!map.attributes.get("is_causal", false)) labels[attention_axes(map).rows] = queries;
}

void label_keys(const DimensionMap& map, AxisLabels& labels) {
  labels[0] = samples;
  if (!drops(map)) labels[attention_axes(map).heads] = heads;
}

// The mask, whose last axes are samples, heads, queries, keys as far as it has them.
void label_mask(const DimensionMap& map, const Shape& mask, AxisLabels& labels) {
  if (mask.elements() == 1) return;
  const int all[] = {samples, drops(map) ? uncut : heads,
                     drops(map) || map.attributes.get("is_causal", false) ? uncut : queries, uncut};
  for (std::size_t back = 1; back <= labels.size(); ++back)
    if (mask[labels.size() - back] != 1) labels[labels.size() - back] = all[4 - back];
}

void label_attention(DimensionMap& map, std::size_t first) {
  label_query(map, map.of_inputs[first]);
  label_keys(map, map.of_inputs[first + 1]);
  label_keys(map, map.of_inputs[first + 2]);
  // Numbers behind it have one element, and stay whole.
  if (map.inputs.size() > first + 3) label_mask(map, map.inputs[first + 3].shape, map.of_inputs[first + 3]);
  if (drops(map)) map.part = "part";
}

}  // namespace

void attention_dimensions(DimensionMap& map) {
  label_attention(map, 0);
  label_query(map, map.of_outputs[0]);
}

// dy before the others; dk and dv are sums over the queries.
void attention_grad_dimensions(DimensionMap& map) {
  label_attention(map, 1);
  label_query(map, map.of_inputs[0]);
  label_query(map, map.of_outputs[0]);
  label_keys(map, map.of_outputs[1]);
  label_keys(map, map.of_outputs[2]);
}

namespace {

bool takes_mean(const DimensionMap& map) {
  return map.attributes.get("reduction", std::string("mean")) == "mean";
}

}  // namespace

// Rows (N, C) and labels (N,) to the loss, and perhaps something of each row. A mean is divided by what all
// labels weigh together: see Expansion.
void loss_dimensions(DimensionMap& map) {
  if (takes_mean(map)) return;
  map.of_inputs[0][0] = map.of_inputs[1][0] = samples;
  for (AxisLabels& labels : map.of_outputs)
    if (!labels.empty()) labels[0] = samples;
}

// Rows, labels and the gradient of the loss to that of the rows.
void loss_grad_dimensions(DimensionMap& map) {
  if (takes_mean(map)) return;
  map.of_inputs[0][0] = map.of_inputs[1][0] = map.of_outputs[0][0] = samples;
  if (!map.of_inputs[2].empty()) map.of_inputs[2][0] = samples;
}

}  // namespace muster::graph
