#include "muster/graph/own_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "muster/graph/ops/array.h"
#include "muster/graph/scopes.h"
#include "muster/graph/thread_state.h"
#include "muster/graph/trace.h"

namespace muster::graph {
namespace {

void check_count(const GradientRule& rule, std::size_t inputs, std::size_t gradients) {
  if (gradients == inputs) return;
  throw Exception(Code::invalid_argument,
                  fmt::format("{}: bprop gives one gradient for each input, {}; it gave {}", rule.name,
                              inputs, gradients));
}

// With the dtype of its input, and summed over the axes along which code broadcast the input: what formulas
// of gradients leave out most often. Anything else stays as it is.
Value fitted(Value gradient, const Value& input) {
  if (!gradient.defined() || !is_floating(input.dtype())) return gradient;
  if (gradient.dtype() != input.dtype()) gradient = apply("cast", {gradient}, {{"dtype", input.dtype()}});
  if (gradient.shape() == input.shape() || !broadcasts_to(input.shape(), gradient.shape())) return gradient;
  return apply("sum_to", {gradient}, {{"shape", input.shape().sizes()}});
}

void check_types(const GradientRule& rule, std::span<const Value> inputs, std::span<const Value> gradients) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_free = !gradients[i].defined() || !is_floating(inputs[i].dtype());
    if (is_free || gradients[i].type() == inputs[i].type()) continue;
    throw Exception(Code::invalid_argument,
                    fmt::format("{}: the gradient that bprop gives for input {} is {}, and the input is {}: "
                                "a gradient has its input's shape, or one that the input can be broadcast to",
                                rule.name, i, to_string(gradients[i].type()), to_string(inputs[i].type())));
  }
}

// The same value under an identity of its own, so that what flows to it is told from what flows elsewhere.
Value renamed(const Value& value) { return apply("reshape", {value}, {{"shape", value.shape().sizes()}}); }

// `rule` under the scopes of the code whose gradient it is.
GradientRule in_its_scopes(GradientRule rule) {
  const ThreadState& state = thread_state();
  std::optional<Precision> precision;
  if (state.precision != nullptr) precision = *state.precision;
  GradientRule::Gradients inner = std::move(rule.gradients);
  rule.gradients = [inner = std::move(inner), placement = state.placement, precision](
                       std::span<const Value> inputs, std::span<const Value> outputs,
                       std::span<const Value> output_gradients) {
    const PlaceScope placed(placement);
    std::optional<PrecisionScope> precise;
    if (precision) precise.emplace(*precision);
    return inner(inputs, outputs, output_gradients);
  };
  return rule;
}

}  // namespace

Values gradients_by(const GradientRule& rule, std::span<const Value> inputs, std::span<const Value> outputs,
                    std::span<const Value> output_gradients) {
  Values made = rule.gradients(inputs, outputs, output_gradients);
  check_count(rule, inputs.size(), made.size());
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = fitted(std::move(made[i]), inputs[i]);
  check_types(rule, inputs, made);
  for (std::size_t i = 0; i < made.size(); ++i)
    if (!is_floating(inputs[i].dtype())) made[i] = Value();
  return made;
}

bool makes_value(const Graph& graph, ValueId id) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [id](const Node& node) {
    return std::find(node.outputs.begin(), node.outputs.end(), id) != node.outputs.end();
  });
}

namespace {

// `history` is the trace or the tape on which `body` is noted.
template <class History>
Values noted_outputs(History& history, const std::function<Values()>& body, const std::string& name) {
  const std::size_t first = history.value_count();
  Values outputs = body();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined())
      throw Exception(Code::invalid_argument, fmt::format("{}: output {} has no value", name, i));
    const auto same = [&](const Value& other) {
      return other.is_traced() ? other.place().id == outputs[i].place().id
                               : other.identity() == outputs[i].identity();
    };
    const auto end = outputs.begin() + static_cast<std::ptrdiff_t>(i);
    const bool is_own = history.makes(outputs[i], first) && std::none_of(outputs.begin(), end, same);
    if (!is_own) outputs[i] = renamed(outputs[i]);
  }
  return outputs;
}

}  // namespace

bool notes_gradients() { return is_tracing() || is_taping(); }

Values with_own_gradient(std::span<const Value> inputs, const std::function<Values()>& body,
                         GradientRule rule) {
  Trace* const trace = Trace::current();
  Tape* const tape = Tape::current();
  if (trace == nullptr && tape == nullptr) return body();
  const std::string& name = rule.name;
  Values outputs = trace != nullptr ? noted_outputs(*trace, body, name) : noted_outputs(*tape, body, name);
  if (outputs.empty()) return outputs;
  auto kept = std::make_shared<const GradientRule>(in_its_scopes(std::move(rule)));
  if (trace != nullptr)
    trace->own_gradient(inputs, outputs, std::move(kept));
  else
    own_gradient_on_tapes(inputs, outputs, kept);
  return outputs;
}

}  // namespace muster::graph
