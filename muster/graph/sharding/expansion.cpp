#include "muster/graph/sharding/expansion.h"

#include <string_view>

#include "muster/graph/ops/rules.h"
#include "muster/graph/trace.h"

namespace muster::graph {
namespace {
namespace expansions {

Value cast_like(const Value& x, const Value& like) {
  return x.dtype() == like.dtype() ? x : apply("cast", {x}, {{"dtype", like.dtype()}});
}

Attributes with(Attributes attributes, std::string_view name, Attribute value) {
  attributes.set(name, std::move(value));
  return attributes;
}

// ---- Means over labels ------------------------------------------------------------------------------------

// How many labels count, of the dtype of `like`.
Value counted(const Value& labels, const Value& like, const Attributes& attributes) {
  const auto ignored = static_cast<double>(attributes.get("ignore_index", std::int64_t{-100}));
  const Value counts = apply("not_equal", {labels, filled_like(labels, ignored)});
  return apply("reduce_sum", {as_numbers(counts, like)});
}

Values mean_loss(std::string_view op, std::span<const Value> inputs, const Attributes& attributes) {
  Values made = apply_all(op, inputs, with(attributes, "reduction", std::string("sum")));
  made[0] = over(made[0], counted(inputs[1], made[0], attributes));
  return made;
}

Values mean_loss_grad(std::string_view op, std::span<const Value> inputs, const Attributes& attributes) {
  Values given(inputs.begin(), inputs.end());
  given[2] = over(given[2], counted(given[1], given[2], attributes));
  return apply_all(op, given, with(attributes, "reduction", std::string("sum")));
}

// ---- Batch normalization in training ----------------------------------------------------------------------

// One number for each channel against (N, C, ...).
Value spread(const Value& channel, const Value& x) {
  std::vector<std::int64_t> sizes(x.shape().rank(), 1);
  sizes[1] = x.shape()[1];
  return apply("reshape", {channel}, {{"shape", sizes}});
}

double pixels_of(const Value& x) {
  return static_cast<double>(x.shape().elements()) / static_cast<double>(x.shape()[1]);
}

void move_towards(const Value& moving, const Value& batch, double momentum) {
  apply("assign", {moving, plus(times(moving, momentum), times(batch, 1 - momentum))});
}

Values batch_norm(std::span<const Value> inputs, const Attributes& attributes) {
  const Value &gamma = inputs[1], &beta = inputs[2];
  const Value x = cast_like(inputs[0], gamma);
  const double count = pixels_of(x), momentum = attributes.get("momentum", 0.9);
  const Value mean = times(apply("channel_sum", {x}), 1 / count);
  const Value away = minus(x, spread(mean, x));
  const Value variance = times(apply("channel_sum", {times(away, away)}), 1 / count);
  const Value y =
      apply("batch_norm", {inputs[0], gamma, beta, mean, variance}, with(attributes, "training", false));
  move_towards(inputs[3], mean, momentum);
  move_towards(inputs[4], times(variance, count / (count - 1)), momentum);
  return {y, mean, variance};
}

// dx = gamma rstd (dy - mean(dy) - n mean(dy n)) with n = (x - mean) rstd; dgamma and dbeta are the sums.
Values batch_norm_grad(std::span<const Value> inputs, const Attributes& attributes) {
  const Value &gamma = inputs[2], &mean = inputs[3], &variance = inputs[4];
  Values made = apply_all("batch_norm_grad", inputs, with(attributes, "training", false));
  const Value x = cast_like(inputs[0], gamma);
  const double count = pixels_of(x);
  const Value rstd = apply("rsqrt", {plus(variance, scalar_like(variance, attributes.get("eps", 1e-5)))});
  const Value scale = times(times(gamma, rstd), 1 / count);
  const Value along = times(minus(x, spread(mean, x)), spread(times(times(scale, rstd), made[1]), x));
  const Value less = plus(spread(times(scale, made[2]), x), along);
  made[0] = cast_like(minus(cast_like(made[0], gamma), less), inputs[0]);
  return made;
}

// The values of `op` by others; nothing where it is none of these.
std::optional<Values> expanded(std::string_view op, std::span<const Value> inputs,
                               const Attributes& attributes) {
  const bool takes_mean = attributes.get("reduction", std::string("mean")) == "mean";
  const bool is_training = attributes.get("training", false);
  for (const std::string_view loss : {"softmax_cross_entropy", "nll_loss"})
    if (op == loss && takes_mean && inputs.size() == 2) return mean_loss(op, inputs, attributes);
  for (const std::string_view loss : {"softmax_cross_entropy_grad", "nll_loss_grad"})
    if (op == loss && takes_mean && inputs.size() == 3) return mean_loss_grad(op, inputs, attributes);
  if (op == "batch_norm" && is_training) return batch_norm(inputs, attributes);
  if (op == "batch_norm_grad" && is_training) return batch_norm_grad(inputs, attributes);
  return std::nullopt;
}

}  // namespace expansions
}  // namespace

Result<std::optional<Graph>> expansion_of(const Graph& graph, const Node& node) {
  return catch_error([&]() -> std::optional<Graph> {
    const auto trace = Trace::begin(std::string(node.op->name));
    const Trace::Scope scope(*trace);
    std::vector<Value> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(trace->input(graph.values[id]));
    const std::optional<Values> outputs = expansions::expanded(node.op->name, inputs, node.attributes);
    if (!outputs) return std::nullopt;
    return trace->finish(*outputs);
  });
}

}  // namespace muster::graph
