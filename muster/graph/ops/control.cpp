// cond and while_loop: nodes that hold graphs. A kernel runs their compiled plans.
#include "muster/graph/ops/control.h"
#include "muster/graph/ops/array.h"

#include <cstring>

#include "muster/graph/function.h"
#include "muster/graph/ops/array.h"
#include "muster/graph/plan.h"
#include "muster/graph/trace.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {

SubGraph trace_inside(std::string name, std::span<const TensorType> types, const Body& body) {
  const auto trace = Trace::begin_inside(*Trace::current(), std::move(name));
  std::vector<Value> inputs;
  for (const TensorType& type : types) inputs.push_back(trace->input(type));
  Values outputs;
  {
    const Trace::Scope scope(*trace);
    outputs = body(inputs);
  }
  Graph graph = trace->finish(outputs);
  for (const Node& node : graph.nodes)
    if (node.op->has_effect())
      throw Exception(
          Code::not_provided,
          fmt::format("{} inside of cond or while_loop is not provided: it has an effect on parameters "
                      "or other ranks",
                      node.op->name));
  return SubGraph{std::make_shared<const Graph>(std::move(graph)), trace->take_borrowed()};
}

std::vector<TensorType> output_types(const Graph& graph) {
  std::vector<TensorType> types;
  for (const ValueId id : graph.outputs) types.push_back(graph.values[id]);
  return types;
}

namespace {
namespace control_rows {

using Indices = std::vector<std::int64_t>;

GraphPtr graph_of(const Attributes& attributes, std::string_view name) {
  return attributes.get<GraphPtr>(name, nullptr);
}

// ---- Running a graph that belongs to a node --------------------------------------------------------------

class Part {
 public:
  // The graph under `name`; its inputs are those of the node that "<name>_inputs" lists, behind the first
  // `own` ones.
  Part(const Signature& signature, const std::string& name, std::size_t own) {
    for (std::size_t i = 0; i < own; ++i) inputs_.push_back(i);
    for (const std::int64_t index : signature.attributes.get(name + "_inputs", Indices{}))
      inputs_.push_back(static_cast<std::size_t>(index));
    for (const std::size_t index : inputs_) types_.push_back(signature.inputs[index]);
    Result<std::unique_ptr<Plan>> plan =
        Plan::compile(*graph_of(signature.attributes, name), {.threads = signature.threads});
    if (plan)
      plan_ = *std::move(plan);
    else
      failure_ = plan.error();
  }

  // `state`, if any, takes the place of the first inputs.
  Result<std::vector<Tensor>> run(const KernelCall& call, std::span<const Tensor> state = {}) const {
    if (failure_) return fail(*failure_);
    std::vector<Tensor> inputs(state.begin(), state.end());
    for (std::size_t i = state.size(); i < inputs_.size(); ++i) inputs.push_back(input(call, i));
    return plan_->run(inputs, *call.context);
  }

  // The node's memory as a tensor; it outlives the call.
  Tensor input(const KernelCall& call, std::size_t i) const {
    std::byte* data = call.inputs[inputs_[i]];
    return Tensor(types_[i].dtype, types_[i].shape, Buffer::borrow(data, types_[i].size_bytes(), [] {}));
  }

 private:
  std::vector<std::size_t> inputs_;  // of the node
  std::vector<TensorType> types_;
  std::unique_ptr<Plan> plan_;
  std::optional<Error> failure_;
};

void give(const KernelCall& call, Result<std::vector<Tensor>> outputs) {
  if (!outputs) {
    *call.failure = std::move(outputs).error();
    return;
  }
  for (std::size_t i = 0; i < outputs->size(); ++i)
    std::memcpy(call.outputs[i], (*outputs)[i].bytes(), (*outputs)[i].size_bytes());
}

// ---- cond ------------------------------------------------------------------------------------------------

Types infer_cond(const Signature& signature) {
  const GraphPtr graph = graph_of(signature.attributes, "true");
  if (graph == nullptr || graph_of(signature.attributes, "false") == nullptr)
    return bad("cond: its branches are traced by graph::cond");
  return output_types(*graph);
}

struct CondSettings {
  Part if_true;
  Part if_false;
};

Prepared prepare_cond(const Signature& signature) {
  return {std::make_shared<const CondSettings>(
              CondSettings{Part(signature, "true", 0), Part(signature, "false", 0)}),
          0};
}

void run_cond(const KernelCall& call) {
  const auto& [if_true, if_false] = call.setting<CondSettings>();
  give(call, (*call.input<bool>(0) ? if_true : if_false).run(call));
}

// What the graph computes, as nodes of the current trace.
std::vector<Value> inlined(const Graph& graph, std::span<const Value> inputs) {
  std::vector<Value> values(graph.values.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) values[graph.inputs[i]] = inputs[i];
  const auto valued = [&](const std::vector<ValueId>& ids) {
    Values made;
    for (const ValueId id : ids) made.push_back(values[id]);
    return made;
  };
  auto own = graph.own_gradients.begin();
  for (std::size_t index = 0; index < graph.nodes.size(); ++index) {
    const Node& node = graph.nodes[index];
    const Values made = Trace::current()->add(*node.op, valued(node.inputs), node.attributes);
    for (std::size_t i = 0; i < made.size(); ++i) values[node.outputs[i]] = made[i];
    for (; own != graph.own_gradients.end() && own->end == index + 1; ++own)
      Trace::current()->own_gradient(valued(own->inputs), valued(own->outputs), own->rule);
  }
  std::vector<Value> outputs;
  for (const ValueId id : graph.outputs) outputs.push_back(values[id]);
  return outputs;
}

// The gradients of a branch for `wanted` of the node's inputs; those that it does not read get zeros.
Values gradient_inside(const Graph& branch, const Indices& branch_inputs, std::span<const Value> inputs,
                       std::span<const Value> output_gradients, const std::vector<std::size_t>& wanted) {
  std::vector<Value> given;
  for (const std::int64_t index : branch_inputs) given.push_back(inputs[static_cast<std::size_t>(index)]);
  const std::vector<Value> outputs = inlined(branch, given);
  std::vector<Value> losses, wrt;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (output_gradients[i].defined()) losses.push_back(apply("mul", {outputs[i], output_gradients[i]}));
  for (const std::size_t index : wanted) wrt.push_back(inputs[index]);
  const std::vector<Value> gradients = Trace::current()->gradient(losses, wrt);
  return Values(gradients.begin(), gradients.end());
}

// A cond whose branches compute the gradients of the branches, forward pass included.
std::vector<Value> gradient_cond(const GradientQuery& query) {
  std::vector<std::size_t> wanted;
  for (std::size_t i = 1; i < query.inputs.size(); ++i)
    if (is_floating(query.inputs[i].dtype())) wanted.push_back(i);
  const auto branch = [&](const std::string& name) {
    return [&query, &wanted, name]() -> Values {
      const GraphPtr graph = graph_of(query.attributes, name);
      const auto inputs = query.attributes.get(name + "_inputs", Indices{});
      return gradient_inside(*graph, inputs, query.inputs, query.output_gradients, wanted);
    };
  };
  std::vector<Value> gradients(query.inputs.size());
  if (wanted.empty()) return gradients;
  const Values made = cond(query.inputs[0], branch("true"), branch("false"));
  for (std::size_t i = 0; i < wanted.size(); ++i) gradients[wanted[i]] = made[i];
  return gradients;
}

// ---- while_loop ------------------------------------------------------------------------------------------

Types infer_while(const Signature& signature) {
  const GraphPtr body = graph_of(signature.attributes, "body");
  if (body == nullptr || graph_of(signature.attributes, "test") == nullptr)
    return bad("while_loop: its test and body are traced by graph::while_loop");
  return output_types(*body);
}

struct WhileSettings {
  std::size_t states = 0;
  Part test;
  Part body;
};

Prepared prepare_while(const Signature& signature) {
  const std::size_t states = signature.outputs.size();
  return {std::make_shared<const WhileSettings>(
              WhileSettings{states, Part(signature, "test", states), Part(signature, "body", states)}),
          0};
}

Result<std::vector<Tensor>> loop(const KernelCall& call, const WhileSettings& settings) {
  std::vector<Tensor> state;
  for (std::size_t i = 0; i < settings.states; ++i) state.push_back(settings.body.input(call, i));
  while (true) {
    MUSTER_TRY(const std::vector<Tensor> decided, settings.test.run(call, state));
    if (!*decided[0].data<bool>()) return state;
    MUSTER_TRY(state, settings.body.run(call, state));
  }
}

void run_while(const KernelCall& call) { give(call, loop(call, call.setting<WhileSettings>())); }

std::vector<Value> gradient_while(const GradientQuery&) {
  throw Exception(Code::not_provided,
                  "the gradient cannot pass through while_loop: how often it runs is known only when it has "
                  "run; write a Python loop with a fixed count, or use cond");
}

}  // namespace control_rows
}  // namespace

const Op& cond_op() {
  using namespace control_rows;
  static const Op op{
      .name = "cond",
      .documentation =
          "What graph `true` or graph `false` computes, as input 0 (a bool scalar) says; `true_inputs` and "
          "`false_inputs` number the inputs of the node that each reads. Its gradient is a cond of the "
          "gradients, which computes the branch again.",
      .inputs_min = 1,
      .inputs_max = 65536,
      .infer = infer_cond,
      .gradient = gradient_cond,
      .kernels = {for_any_dtype({"reference", any, prepare_cond, run_cond})},
      .mixes = true,
  };
  return op;
}

const Op& while_loop_op() {
  using namespace control_rows;
  static const Op op{
      .name = "while_loop",
      .documentation =
          "state = `body`(state) as long as `test`(state) gives true; the first inputs are the first state, "
          "`test_inputs` and `body_inputs` number those that each reads beside it. No gradient.",
      .inputs_min = 1,
      .inputs_max = 65536,
      .infer = infer_while,
      .gradient = gradient_while,
      .kernels = {for_any_dtype({"reference", any, prepare_while, run_while})},
      .mixes = true,
  };
  return op;
}

std::vector<const Op*> rows_of_control() { return {&cond_op(), &while_loop_op()}; }

}  // namespace muster::graph
