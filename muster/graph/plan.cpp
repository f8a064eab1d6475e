#include "muster/graph/plan.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "muster/graph/kernels.h"
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

  Result<> make_steps(int threads);
  void make_copies();
  void bind(std::byte*& where, ValueId id);
  void bind(std::byte*& where, const Location& location);
  void ready_parameters(std::uint64_t seed);
  Result<> check(std::span<const Tensor> given) const;
  Result<> execute(const RunContext& context);
  void run_timed(const Step& step, StepTimes& times) const;
};

namespace {

// "conv2d [onednn] -> aBcd16b", the format only where it is not plain.
std::string describe(const Node& node, const Choices& choices, const Chosen& chosen) {
  std::string text = fmt::format("{} [{}]", node.op->name, chosen.kernel->name);
  const FormatPtr& format = choices.formats[node.outputs.empty() ? 0 : node.outputs[0]];
  if (!node.outputs.empty() && format != nullptr) text += " -> " + format->name();
  return text;
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

Result<> Plan::State::make_steps(int threads) {
  MUSTER_TRY(Choices choices, choose_kernels(graph, threads));
  graph = std::move(choices.graph);
  Sizes sizes;
  for (ValueId id = 0; id < graph.values.size(); ++id)
    sizes.values_bytes.push_back(graph::size_bytes(graph.values[id], choices.formats[id]));
  for (const Chosen& chosen : choices.nodes) sizes.scratch_bytes.push_back(chosen.prepared.scratch_bytes);
  layout = plan_memory(graph, sizes);
  arena = Buffer::allocate(layout.arena_bytes);
  steps.reserve(graph.nodes.size());  // patches point into it
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Chosen& chosen = choices.nodes[i];
    if (chosen.kernel == nullptr) continue;
    const Node& node = graph.nodes[i];
    Step& step = steps.emplace_back();
    step.run = chosen.kernel->run;
    step.description = describe(node, choices, chosen);
    step.prepared = std::move(chosen.prepared);
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

void Plan::State::run_timed(const Step& step, StepTimes& times) const {
  if (times.size() != steps.size()) {
    times.clear();
    for (const Step& each : steps) times.push_back({each.description, {}});
  }
  const TimePoint begin = real_clock().now();
  step.run(step.call);
  times[static_cast<std::size_t>(&step - steps.data())].total += real_clock().now() - begin;
}

Result<> Plan::State::execute(const RunContext& context) {
  for (Step& step : steps) {
    step.call.threads = context.threads;
    step.call.communicator = context.communicator;
    step.call.context = &context;
    if (context.times == nullptr)
      step.run(step.call);
    else
      run_timed(step, *context.times);
    if (failure) return fail(*std::exchange(failure, std::nullopt));
  }
  for (const Copy& copy : copies) std::memmove(copy.to, copy.from, copy.size_bytes);
  return {};
}

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::~Plan() = default;

Result<std::unique_ptr<Plan>> Plan::compile(const Graph& graph, int threads) {
  auto state = std::make_unique<State>();
  state->graph = graph;
  remove_dead(state->graph);
  fuse_dense(state->graph);
  fuse_relu(state->graph);
  MUSTER_TRY_VOID(state->make_steps(threads));
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
