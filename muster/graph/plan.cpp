#include "muster/graph/plan.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "muster/graph/execute.h"
#include "muster/graph/memory.h"
#include "muster/graph/passes.h"
#include "muster/graph/pool.h"

namespace muster::graph {
namespace {

struct Step {
  void (*run)(const KernelCall&) = nullptr;
  KernelCall call;
  std::vector<std::byte*> addresses;  // inputs, then outputs
  Prepared prepared;
  std::string description;
};

// An address that changes from run to run.
struct Patch {
  std::byte** where = nullptr;
  std::size_t index = 0;
  std::size_t offset_bytes = 0;
};

struct Copy {
  std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t size_bytes = 0;
};

}  // namespace

struct Plan::State {
  Graph graph;
  Layout layout;
  std::shared_ptr<Buffer> arena;
  std::vector<Step> steps;
  std::vector<Copy> copies;
  std::vector<Patch> inputs;      // every run
  std::vector<Patch> outputs;     // every run
  std::vector<Patch> parameters;  // once, when they have storage: it never moves
  bool parameters_ready = false;
  std::vector<ParameterPtr> parameter_list;
  std::vector<BufferPool> pools;
  std::vector<std::shared_ptr<Buffer>> taken;  // of this run, by output buffer
  std::optional<Error> failure;

  Result<> make_steps();
  void make_copies();
  void bind(std::byte*& where, ValueId id);
  void bind(std::byte*& where, const Location& location);
  void ready_parameters(std::uint64_t seed);
  Result<> check(std::span<const Tensor> given) const;
  Result<> execute(const RunContext& context);
};

namespace {

Signature signature_of(const Graph& graph, const Node& node, std::vector<TensorType>& types) {
  types.clear();
  for (const ValueId id : node.inputs) types.push_back(graph.values[id]);
  for (const ValueId id : node.outputs) types.push_back(graph.values[id]);
  const std::span<const TensorType> all = types;
  return {all.first(node.inputs.size()), all.subspan(node.inputs.size()), node.attributes};
}

}  // namespace

// Resolves a place to an address now, or notes that it must be patched later.
void Plan::State::bind(std::byte*& where, const Location& location) {
  const Patch patch{&where, location.index, location.offset_bytes};
  switch (location.kind) {
    case Location::Kind::input:
      inputs.push_back(patch);
      return;
    case Location::Kind::output:
      outputs.push_back(patch);
      return;
    case Location::Kind::parameter:
      parameters.push_back(patch);
      return;
    case Location::Kind::captured:
      where = graph.captured[location.index].second.bytes();
      return;
    case Location::Kind::arena:
      where = arena->data() + location.offset_bytes;
      return;
  }
}

void Plan::State::bind(std::byte*& where, ValueId id) { bind(where, layout.values[id]); }

Result<> Plan::State::make_steps() {
  std::vector<const Kernel*> chosen;
  std::vector<Prepared> prepared;
  std::vector<std::size_t> scratch_bytes;
  std::vector<TensorType> types;
  for (const Node& node : graph.nodes) {
    chosen.push_back(nullptr);
    prepared.emplace_back();
    if (node.op->sharing != Sharing::view) {
      const Signature signature = signature_of(graph, node, types);
      MUSTER_TRY(chosen.back(), choose_kernel(*node.op, signature));
      prepared.back() = chosen.back()->prepare(signature);
    }
    scratch_bytes.push_back(prepared.back().scratch_bytes);
  }
  layout = plan_memory(graph, scratch_bytes);
  arena = Buffer::allocate(layout.arena_bytes);
  steps.reserve(graph.nodes.size());  // patches point into it
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (chosen[i] == nullptr) continue;
    const Node& node = graph.nodes[i];
    Step& step = steps.emplace_back();
    step.run = chosen[i]->run;
    step.prepared = std::move(prepared[i]);
    step.description = fmt::format("{} [{}]", node.op->name, chosen[i]->name);
    step.addresses.resize(node.inputs.size() + node.outputs.size());
    std::byte** address = step.addresses.data();
    for (const ValueId id : node.inputs) bind(*address++, id);
    for (const ValueId id : node.outputs) bind(*address++, id);
    step.call = {.inputs = step.addresses.data(),
                 .outputs = step.addresses.data() + node.inputs.size(),
                 .settings = step.prepared.settings.get(),
                 .scratch = arena->data() + layout.scratch_offset_bytes[i],
                 .failure = &failure};
  }
  return {};
}

void Plan::State::make_copies() {
  copies.reserve(layout.copies.size());  // patches point into it
  for (const OutputCopy& wanted : layout.copies) {
    Copy& copy = copies.emplace_back();
    copy.size_bytes = graph.values[wanted.value].size_bytes();
    bind(copy.from, wanted.value);
    bind(copy.to, layout.outputs[wanted.output]);
  }
}

void Plan::State::ready_parameters(std::uint64_t seed) {
  for (const ParameterPtr& parameter : parameter_list) parameter->materialize(seed);
  for (const Patch& patch : parameters) *patch.where = parameter_list[patch.index]->storage().bytes();
  parameters_ready = true;
}

Result<> Plan::State::check(std::span<const Tensor> given) const {
  if (given.size() != graph.inputs.size())
    return fail(Code::invalid_argument, fmt::format("'{}' takes {} tensors, {} were given", graph.name,
                                                    graph.inputs.size(), given.size()));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const TensorType& wanted = graph.values[graph.inputs[i]];
    if (given[i].dtype() != wanted.dtype || given[i].shape() != wanted.shape)
      return fail(Code::invalid_argument,
                  fmt::format("'{}': input {} must be {}, not {}", graph.name, i, graph::to_string(wanted),
                              graph::to_string({given[i].dtype(), given[i].shape()})));
  }
  return {};
}

Result<> Plan::State::execute(const RunContext& context) {
  for (Step& step : steps) {
    step.call.threads = context.threads;
    step.call.communicator = context.communicator;
    step.call.context = &context;
    step.run(step.call);
    if (failure) return fail(*std::exchange(failure, std::nullopt));
  }
  for (const Copy& copy : copies) std::memmove(copy.to, copy.from, copy.size_bytes);
  return {};
}

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::~Plan() = default;

Result<std::unique_ptr<Plan>> Plan::compile(const Graph& graph) {
  auto state = std::make_unique<State>();
  state->graph = graph;
  remove_dead(state->graph);
  fuse_dense(state->graph);
  MUSTER_TRY_VOID(state->make_steps());
  state->make_copies();
  for (const auto& [id, parameter] : graph.parameters) state->parameter_list.push_back(parameter);
  for (const std::size_t size : state->layout.buffers_bytes) state->pools.emplace_back(size);
  state->taken.resize(state->pools.size());
  return std::unique_ptr<Plan>(new Plan(std::move(state)));
}

Result<std::vector<Tensor>> Plan::run(std::span<const Tensor> inputs, const RunContext& context) {
  State& state = *state_;
  MUSTER_TRY_VOID(state.check(inputs));
  if (!state.parameters_ready) state.ready_parameters(context.seed);
  for (const Patch& patch : state.inputs) *patch.where = inputs[patch.index].bytes();
  for (std::size_t i = 0; i < state.pools.size(); ++i) state.taken[i] = state.pools[i].take();
  for (const Patch& patch : state.outputs)
    *patch.where = state.taken[patch.index]->data() + patch.offset_bytes;
  const Result<> done = state.execute(context);
  std::vector<Tensor> outputs;
  if (done) {
    outputs.reserve(state.graph.outputs.size());
    for (std::size_t i = 0; i < state.graph.outputs.size(); ++i) {
      const TensorType& type = state.graph.values[state.graph.outputs[i]];
      const Location& location = state.layout.outputs[i];
      outputs.emplace_back(type.dtype, type.shape, state.taken[location.index], location.offset_bytes);
    }
  }
  for (auto& buffer : state.taken) buffer.reset();
  if (!done) return fail(done.error());
  return outputs;
}

std::span<const ParameterPtr> Plan::parameters() const { return state_->parameter_list; }
std::size_t Plan::arena_bytes() const { return state_->layout.arena_bytes; }

std::string Plan::to_string() const {
  std::string text = fmt::format("plan {}: {} bytes of arena\n", state_->graph.name, arena_bytes());
  for (const Step& step : state_->steps) text += fmt::format("  {}\n", step.description);
  for (const Copy& copy : state_->copies) text += fmt::format("  copy {} bytes\n", copy.size_bytes);
  return text;
}

}  // namespace muster::graph
