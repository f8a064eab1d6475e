#include "muster/graph/function.h"

#include <fmt/format.h>

#include <utility>

#include "muster/graph/nodes.h"
#include "muster/graph/ops/control.h"
#include "muster/graph/scopes.h"
#include "muster/graph/trace.h"

namespace muster::graph {
namespace {

std::string describe(const Graph& graph) {
  std::string text;
  for (const ValueId id : graph.outputs) text += (text.empty() ? "" : ", ") + to_string(graph.values[id]);
  return text.empty() ? "nothing" : text;
}

// One element, as a bool scalar.
Value as_bool(std::string_view op, const Value& value) {
  if (!value.defined()) throw Exception(Code::invalid_argument, fmt::format("{}: no bool was given", op));
  if (value.shape().elements() != 1)
    throw Exception(Code::invalid_argument,
                    fmt::format("{}: one element decides, not {}", op, to_string(value.type())));
  const Value one = value.dtype() == DType::bool_ ? value : apply("cast", {value}, {{"dtype", DType::bool_}});
  if (one.shape().rank() == 0) return one;
  return apply("reshape", {one}, {{"shape", std::vector<std::int64_t>{}}});
}

// The only output of a test.
Value decision(std::string_view op, const Values& outputs) {
  if (outputs.size() == 1) return as_bool(op, outputs[0]);
  throw Exception(Code::invalid_argument,
                  fmt::format("{}: the test must give one value, not {}", op, outputs.size()));
}

bool read_bool(const Value& value) { return *value.read().value().data<bool>(); }

// The inputs of the node: those of its graphs, each once.
class Inputs {
 public:
  explicit Inputs(std::span<const Value> first) : values_(first.begin(), first.end()) {}

  std::int64_t index_of(const Value& value) {
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (values_[i].place().id == value.place().id) return static_cast<std::int64_t>(i);
    values_.push_back(value);
    return static_cast<std::int64_t>(values_.size() - 1);
  }
  std::vector<std::int64_t> indices_of(std::span<const Value> values) {
    std::vector<std::int64_t> indices;
    for (const Value& value : values) indices.push_back(index_of(value));
    return indices;
  }
  std::span<const Value> values() const { return values_; }

 private:
  std::vector<Value> values_;
};

std::vector<Value> captured(std::span<const Value> values) {
  std::vector<Value> made;
  for (const Value& value : values) {
    made.push_back(Trace::current()->capture(value));
    if (!made.back().defined()) throw Exception(Code::invalid_argument, "a value of the state is missing");
  }
  return made;
}

// The node is placed with what it computes, as a whole. Where that is placed on several workers, dividing the
// graph says so.
PlacementPtr placement_of(std::initializer_list<GraphPtr> parts) {
  if (current_placement() != nullptr) return current_placement();
  for (const GraphPtr& graph : parts)
    for (const Node& node : graph->nodes)
      if (node.placement != nullptr) return node.placement;
  return nullptr;
}

Values cond_node(const Value& pred, const std::function<Values()>& yes, const std::function<Values()>& no) {
  const Value decides = as_bool("cond", pred);
  const std::vector<Value> first = captured({&decides, 1});
  const auto run = [](const std::function<Values()>& branch) {
    return [&branch](std::span<const Value>) { return branch(); };
  };
  const SubGraph if_true = trace_inside("true", {}, run(yes));
  const SubGraph if_false = trace_inside("false", {}, run(no));
  if (output_types(*if_true.graph) != output_types(*if_false.graph))
    throw Exception(
        Code::invalid_argument,
        fmt::format("cond: both branches must give the same types, but true gives {} and false gives {}",
                    describe(*if_true.graph), describe(*if_false.graph)));
  Inputs inputs(first);
  const auto true_inputs = inputs.indices_of(if_true.borrowed);
  const auto false_inputs = inputs.indices_of(if_false.borrowed);
  const PlaceScope place(placement_of({if_true.graph, if_false.graph}));
  return apply_all("cond", inputs.values(),
                   {{"true", if_true.graph},
                    {"false", if_false.graph},
                    {"true_inputs", true_inputs},
                    {"false_inputs", false_inputs}});
}

Values while_node(const Body& test, const Body& body, std::span<const Value> init) {
  const std::vector<Value> first = captured(init);
  std::vector<TensorType> types;
  for (const Value& value : first) types.push_back(value.type());
  const SubGraph tested = trace_inside("test", types, [&](std::span<const Value> state) -> Values {
    return decision("while_loop", test(state));
  });
  const SubGraph looped = trace_inside("body", types, body);
  if (output_types(*looped.graph) != types) {
    std::string wanted;
    for (const TensorType& type : types) wanted += (wanted.empty() ? "" : ", ") + to_string(type);
    throw Exception(Code::invalid_argument, fmt::format("while_loop: the state is {}, but the body gives {}",
                                                        wanted, describe(*looped.graph)));
  }
  // The state comes first, as often as it has values: one of them may be there twice.
  Inputs inputs(first);
  const auto test_inputs = inputs.indices_of(tested.borrowed);
  const auto body_inputs = inputs.indices_of(looped.borrowed);
  const PlaceScope place(placement_of({tested.graph, looped.graph}));
  return apply_all("while_loop", inputs.values(),
                   {{"test", tested.graph},
                    {"body", looped.graph},
                    {"test_inputs", test_inputs},
                    {"body_inputs", body_inputs}});
}

Values while_now(const Body& test, const Body& body, std::span<const Value> init) {
  Values state(init.begin(), init.end());
  while (true) {
    if (!read_bool(decision("while_loop", test(state)))) return state;
    state = body(state);
  }
}

}  // namespace

Values cond(const Value& pred, const std::function<Values()>& yes, const std::function<Values()>& no) {
  if (is_tracing()) return cond_node(pred, yes, no);
  return read_bool(as_bool("cond", pred)) ? yes() : no();
}

Values while_loop(const Body& test, const Body& body, std::span<const Value> init) {
  return is_tracing() ? while_node(test, body, init) : while_now(test, body, init);
}

}  // namespace muster::graph
