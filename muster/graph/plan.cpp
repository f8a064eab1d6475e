#include "muster/graph/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "muster/graph/execution/call_thread.h"
#include "muster/graph/execution/kernels.h"
#include "muster/graph/execution/memory.h"
#include "muster/graph/execution/pool.h"
#include "muster/graph/execution/rollback.h"
#include "muster/graph/execution/updates.h"
#include "muster/graph/ops/transfer.h"
#include "muster/graph/partition/partition.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

struct Step {
  void (*run)(const KernelCall&) = nullptr;
  KernelCall call;
  std::vector<std::byte*> addresses;  // inputs, then outputs
  Prepared prepared;
  std::size_t node = 0;   // the first
  std::size_t nodes = 1;  // more than one: updates that run as one
  std::string_view kernel;
  bool collective = false;
  bool transfers = false;  // sends or receives
  bool receives = false;
  bool beside = false;      // and is worth another thread
  std::size_t joined = 0;   // how many of the plan's calls must be done before
  std::uint64_t given = 0;  // in this run: its number among the calls of the other thread; 0: it has none
  std::optional<Error> failure;
};

// An address that changes from run to run.
struct Patch {
  std::byte** where = nullptr;
  std::size_t index = 0;
  std::size_t offset_bytes = 0;
};

// Where a run finds a parameter.
struct Placed {
  ParameterPtr parameter;
  ParameterFormatPtr format;  // null: plain
  bool is_written = false;

  std::byte* address(std::uint64_t seed) const {
    if (format != nullptr) return parameter->in_format(format, seed, is_written);
    return (is_written ? parameter->writable(seed) : parameter->materialize(seed)).bytes();
  }
};

constexpr std::size_t npos = static_cast<std::size_t>(-1);

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
  std::vector<FormatPtr> formats;  // by value
  int threads = 1;                 // that kernels were chosen for
  std::vector<Step> steps;
  Rollback rollback;
  std::vector<Copy> copies;
  std::vector<Patch> inputs;
  std::vector<Patch> outputs;
  std::vector<Patch> parameters;
  std::vector<Patch> buckets;  // when they get other memory
  std::shared_ptr<Buffer> bucket_memory;
  Communicator* bucket_owner = nullptr;  // whose memory it is; null: ordinary memory
  std::vector<ParameterPtr> parameter_list;
  std::vector<Placed> placed;                   // by parameter
  std::vector<std::byte*> parameter_addresses;  // of this run, likewise
  std::vector<BufferPool> pools;
  std::vector<std::shared_ptr<Buffer>> taken;  // of this run, by output buffer
  std::vector<std::size_t> calls;              // the steps that are collective
  std::size_t first_update = npos;             // the first step that updates parameters
  bool overlaps = false;                       // whether any call may go on beside other steps
  bool transfers_beside = false;               // whether any send or receive is worth it
  std::unique_ptr<CallThread> call_thread;
  // Of sends alone, once one is worth it: what waits for its receiver holds up nothing that comes meanwhile.
  std::unique_ptr<CallThread> send_thread;
  Division division;              // of one worker: the graph is whole
  std::vector<PartOutput> given;  // by output of the whole graph; empty: the graph is whole
  std::optional<Parts> parts;
  // By value that is received: its format where one worker does all. Kernels are chosen by the formats in
  // which values come, and other kernels may give other bits.
  std::vector<FormatPtr> seen_as;
  std::vector<std::pair<ParameterPtr, std::optional<std::uint32_t>>> homes;  // of the whole graph

  Result<> take_part(const Graph& whole, const PlanOptions& options);
  std::vector<Tensor> outputs_of_run() const;
  Result<> make_steps(int threads);
  void add_step(std::span<const Node> nodes, std::span<Chosen> chosen);
  void make_copies();
  void bind(std::byte*& where, ValueId id);
  void bind(std::byte*& where, const Location& location);
  void place_parameters(std::vector<ParameterFormatPtr> kept_in);
  void find_parameters(std::uint64_t seed);
  void ready_buckets(Communicator* sharing);
  CallThread* thread_for(const RunContext& context);
  bool reduces_beside(const RunContext& context) const;
  Result<> check(std::span<const Tensor> tensors, const RunContext& context) const;
  PlanStep explain(const Step& step) const;
  void add_work(const Node& node, PlanStep& step) const;
  std::string describe(const Step& step) const;
  class Run;
};

// "conv2d [onednn] -> aBcd16b", the format only where it is not plain.
std::string Plan::State::describe(const Step& step) const {
  const Node& node = graph.nodes[step.node];
  std::string text = fmt::format("{} [{}]", node.op->name, step.kernel);
  if (!node.outputs.empty())
    if (const FormatPtr& format = formats[node.outputs[0]]; format != nullptr)
      text += " -> " + format->name();
  if (step.nodes > 1) text += fmt::format(", {} together", step.nodes);
  return text;
}

namespace {

std::optional<std::uint32_t> rank_of(const std::optional<Parameter::Home>& home) {
  return home ? std::optional(home->rank) : std::nullopt;
}

// By node: how many calls are joined when it begins. Calls are done in their order.
std::vector<std::size_t> joined_before(const Graph& graph, const Overlap& overlap) {
  std::vector<std::size_t> joined(graph.nodes.size() + 1, 0);
  std::size_t calls = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].op->collective) joined[overlap.joins[i]] = ++calls;
  std::inclusive_scan(joined.begin(), joined.end(), joined.begin(),
                      [](std::size_t a, std::size_t b) { return std::max(a, b); });
  return joined;
}

}  // namespace

// The graph, or what this worker does of it.
Result<> Plan::State::take_part(const Graph& whole, const PlanOptions& options) {
  graph = whole;
  if (!is_placed(whole, options.input_homes)) return {};
  if (options.division.size == 1) {
    // A part that could not be is no error where nothing is divided.
    if (Result<Parts> divided = divided_as_placed(whole)) parts = *std::move(divided);
    return {};
  }
  MUSTER_TRY(Partition part, partition(whole, options.division, options.input_homes));
  division = options.division;
  graph = std::move(part.graph);
  given = std::move(part.outputs);
  parts = std::move(part.parts);
  if (!part.received.empty()) {
    MUSTER_TRY(const auto formats_alone, formats_in_plan(part.whole, options.threads));
    seen_as.resize(graph.values.size());
    for (const auto& [here, there] : part.received) seen_as[here] = formats_alone[there];
  }
  for (auto& [parameter, home] : part.homes) parameter->set_home(std::move(home));
  for (const auto& [id, tensor] : graph.captured)
    if (const std::string* reason = tensor.absence())
      return fail(Code::invalid_argument,
                  fmt::format("'{}' holds a tensor that is needed here: {}", graph.name, *reason));
  return {};
}

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
    case Location::Kind::bucket:
      buckets.push_back(patch);
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

Result<> Plan::State::make_steps(int for_threads) {
  threads = for_threads;
  MUSTER_TRY(Choices choices, choose_kernels(graph, threads, seen_as));
  graph = std::move(choices.graph);
  formats = std::move(choices.formats);
  place_parameters(std::move(choices.parameter_formats));
  Sizes sizes;
  for (ValueId id = 0; id < graph.values.size(); ++id)
    sizes.values_bytes.push_back(graph::size_bytes(graph.values[id], formats[id]));
  for (const Chosen& chosen : choices.nodes) sizes.scratch_bytes.push_back(chosen.prepared.scratch_bytes);
  const Overlap overlap = overlap_of(graph);
  layout = plan_memory(graph, sizes, overlap);
  arena = Buffer::allocate(layout.arena_bytes);
  const std::vector<std::size_t> joined = joined_before(graph, overlap);
  steps.reserve(graph.nodes.size());  // patches point into it
  const std::span<const Node> nodes = graph.nodes;
  const std::span<Chosen> chosen = choices.nodes;
  for (std::size_t i = 0, count = 1; i < nodes.size(); i += count) {
    count = joined_updates(nodes.subspan(i), chosen.subspan(i));
    if (chosen[i].kernel == nullptr) continue;
    add_step(nodes.subspan(i, count), chosen.subspan(i, count));
    steps.back().joined = joined[i + count - 1];
    steps.back().beside = overlap.beside[i];
    transfers_beside = transfers_beside || overlap.beside[i];
  }
  overlaps = overlap.any;
  return {};
}

// One node, or several updates as one.
void Plan::State::add_step(std::span<const Node> nodes, std::span<Chosen> chosen) {
  Step& step = steps.emplace_back();
  step.node = static_cast<std::size_t>(nodes.data() - graph.nodes.data());
  step.nodes = nodes.size();
  step.kernel = chosen[0].kernel->name;
  if (nodes.size() == 1) {
    step.run = chosen[0].kernel->run;
    step.prepared = std::move(chosen[0].prepared);
  } else {
    step.run = run_updates;
    step.prepared = Prepared{std::make_shared<const Updates>(join_updates(graph, nodes, chosen))};
  }
  std::size_t addresses = 0;
  for (const Node& node : nodes) addresses += node.inputs.size() + node.outputs.size();
  step.addresses.resize(addresses);
  std::byte** address = step.addresses.data();
  for (const Node& node : nodes) {
    for (const ValueId id : node.inputs) bind(*address++, id);
    for (const ValueId id : node.outputs) bind(*address++, id);
  }
  step.call = {.inputs = step.addresses.data(),
               .outputs = step.addresses.data() + nodes[0].inputs.size(),
               .settings = step.prepared.settings.get(),
               .scratch = arena->data() + layout.scratch_offset_bytes[step.node],
               .failure = &step.failure};
  step.collective = nodes[0].op->collective;
  step.receives = nodes[0].op == &receive_op();
  step.transfers = step.receives || nodes[0].op == &send_op();
  if (step.collective) calls.push_back(steps.size() - 1);
  if (nodes[0].op->sharing == Sharing::in_place) first_update = std::min(first_update, steps.size() - 1);
  rollback.add_step(nodes[0], graph, step.addresses.data());
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

void Plan::State::place_parameters(std::vector<ParameterFormatPtr> kept_in) {
  kept_in.resize(graph.parameters.size());
  const std::vector<ValueId> roots = roots_of(graph);
  std::vector<bool> is_written(graph.values.size(), false), is_statistic(graph.values.size(), false);
  for (const Node& node : graph.nodes)
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.op->writes(i)) continue;
      is_written[roots[node.inputs[i]]] = true;
      if (node.op->sharing != Sharing::in_place) is_statistic[roots[node.inputs[i]]] = true;
    }
  for (std::size_t i = 0; i < kept_in.size(); ++i) {
    const auto& [id, parameter] = graph.parameters[i];
    parameter_list.push_back(parameter);
    if (is_statistic[id]) parameter->mark_statistic();
    placed.push_back({parameter, std::move(kept_in[i]), is_written[id]});
  }
  parameter_addresses.resize(placed.size());
}

// Each run anew: another plan, or a reader, may have moved them meanwhile.
void Plan::State::find_parameters(std::uint64_t seed) {
  for (std::size_t i = 0; i < placed.size(); ++i) parameter_addresses[i] = placed[i].address(seed);
  for (const Patch& patch : parameters) *patch.where = parameter_addresses[patch.index];
}

void Plan::State::ready_buckets(Communicator* sharing) {
  const std::size_t bytes = layout.buckets_bytes;
  if (bytes == 0 || (bucket_memory != nullptr && bucket_owner == sharing)) return;
  bucket_memory = buffer_of(sharing, bytes);
  bucket_owner = sharing;
  for (const Patch& patch : buckets) *patch.where = bucket_memory->data() + patch.offset_bytes;
}

// Null where nothing would go on beside the calls.
CallThread* Plan::State::thread_for(const RunContext& context) {
  if (!reduces_beside(context) && !transfers_beside) return nullptr;
  if (call_thread == nullptr) call_thread = std::make_unique<CallThread>();
  return call_thread->exists() ? call_thread.get() : nullptr;
}

bool Plan::State::reduces_beside(const RunContext& context) const {
  return overlaps && context.communicator != nullptr && context.communicator->size() > 1;
}

Result<> Plan::State::check(std::span<const Tensor> tensors, const RunContext& context) const {
  if (tensors.size() != graph.inputs.size())
    return fail(Code::invalid_argument, fmt::format("'{}' takes {} tensors, {} were given", graph.name,
                                                    graph.inputs.size(), tensors.size()));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorType& wanted = graph.values[graph.inputs[i]];
    if (tensors[i].dtype() != wanted.dtype || tensors[i].shape() != wanted.shape)
      return fail(Code::invalid_argument,
                  fmt::format("'{}': input {} must be {}, not {}", graph.name, i, graph::to_string(wanted),
                              graph::to_string({tensors[i].dtype(), tensors[i].shape()})));
  }
  for (const Patch& patch : inputs)
    if (const std::string* reason = tensors[patch.index].absence())
      return fail(Code::invalid_argument,
                  fmt::format("'{}': input {} is needed here: {}", graph.name, patch.index, *reason));
  if (const Division& wanted = division; wanted.size > 1) {
    const Division here =
        context.stages == nullptr ? Division{} : Division{context.stages->rank(), context.stages->size()};
    if (here != wanted)
      return fail(Code::invalid_argument,
                  fmt::format("'{}' was compiled for worker {} of {} and runs on worker {} of {}", graph.name,
                              wanted.rank, wanted.size, here.rank, here.size));
  }
  for (const ParameterPtr& parameter : parameter_list)
    if (const std::string* reason = parameter->absence())
      return fail(Code::invalid_argument, fmt::format("'{}': {}", graph.name, *reason));
  return {};
}

// One run of all steps, calls beside the others where that is of use.
class Plan::State::Run {
 public:
  Run(State& state, const RunContext& context)
      : state_(state),
        context_(context),
        to_the_end_(context),
        thread_(state.thread_for(context)),
        reduces_beside_(state.reduces_beside(context)) {
    to_the_end_.interrupted = nullptr;
  }
  // However it ends, no call goes on after it: calls use the plan's memory.
  ~Run() {
    if (thread_ == nullptr) return;
    thread_->finish();
    if (state_.send_thread != nullptr) state_.send_thread->finish();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Result<> execute() {
    state_.rollback.keep();
    for (std::size_t i = 0; i < state_.steps.size(); ++i) {
      if (i == state_.first_update) MUSTER_TRY_VOID(commit(state_.steps[i]));
      const bool may_end = state_.rollback.covers(i);
      const Result<> done = may_end ? interruptible(state_.steps[i]) : to_the_end(state_.steps[i]);
      if (!done && may_end) state_.rollback.put_back();
      MUSTER_TRY_VOID(done);
    }
    MUSTER_TRY_VOID(join(state_.calls.size()));
    for (const Copy& copy : state_.copies) std::memmove(copy.to, copy.from, copy.size_bytes);
    return {};
  }

 private:
  Result<> interruptible(Step& step) {
    if (context_.interrupted != nullptr) MUSTER_TRY_VOID(context_.interrupted());
    return begin(step, context_);
  }

  Result<> commit(const Step& first_update) {
    if (context_.commit == nullptr) return {};
    MUSTER_TRY_VOID(join(first_update.joined));
    return context_.commit();
  }

  Result<> to_the_end(Step& step) {
    MUSTER_TRY_VOID(join(step.joined));
    return begin(step, to_the_end_);
  }

  Result<> begin(Step& step, const RunContext& context) {
    step.call.threads = context.threads;
    step.call.communicator = context.communicator;
    step.call.context = &context;
    step.failure.reset();
    step.given = 0;
    if (step.collective && goes_beside(step)) {
      CallThread& thread = thread_of(step);
      thread.give(step.run, step.call);
      step.given = thread.given();
      return {};
    }
    timed(static_cast<std::size_t>(&step - state_.steps.data()), [&] { step.run(step.call); });
    return outcome(step);
  }

  // Those of one kind keep their order: what must not wait goes behind one that is not done.
  bool goes_beside(const Step& step) {
    ++begun_;
    if (thread_ == nullptr) return false;
    if (!step.transfers) return reduces_beside_;
    bool& waits = step.receives ? receive_waits_ : send_waits_;
    return waits = waits || step.beside;
  }

  CallThread& thread_of(const Step& step) const {
    if (!step.transfers || step.receives) return *thread_;
    if (state_.send_thread == nullptr) state_.send_thread = std::make_unique<CallThread>();
    return *state_.send_thread;
  }

  // Waits for the first `count` calls.
  Result<> join(std::size_t count) {
    if (thread_ == nullptr) return {};
    for (; joined_ < count; ++joined_) {
      const std::size_t index = state_.calls[joined_];
      const Step& step = state_.steps[index];
      if (step.given == 0) continue;
      timed(index, [&] { thread_of(step).wait(step.given); });
      MUSTER_TRY_VOID(outcome(step));
    }
    if (joined_ == begun_) send_waits_ = receive_waits_ = false;
    return {};
  }

  static Result<> outcome(const Step& step) {
    if (step.failure) return fail(*step.failure);
    return {};
  }

  // A call that goes on beside other steps takes as long as it is waited for.
  template <class Work>
  void timed(std::size_t step, const Work& work) const {
    if (context_.times == nullptr) return work();
    StepTimes& times = *context_.times;
    if (times.size() != state_.steps.size()) {
      times.clear();
      for (const Step& each : state_.steps) times.push_back({state_.describe(each), {}});
    }
    const TimePoint begin = real_clock().now();
    work();
    times[step].total += real_clock().now() - begin;
  }

  State& state_;
  const RunContext& context_;
  RunContext to_the_end_;       // of steps behind the retreat, and of the plans that they run
  CallThread* thread_;          // null: calls run in their turn
  bool reduces_beside_;         // whether reductions go to the thread
  std::size_t begun_ = 0;       // calls
  std::size_t joined_ = 0;      // of these; those that ran in their turn, too
  bool send_waits_ = false;     // whether a send that was given to the thread may not be done
  bool receive_waits_ = false;  // likewise
};

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::~Plan() = default;

Result<std::unique_ptr<Plan>> Plan::compile(const Graph& graph, const PlanOptions& options) {
  auto state = std::make_unique<State>();
  MUSTER_TRY_VOID(state->take_part(graph, options));
  for (const auto& [id, parameter] : graph.parameters)
    state->homes.emplace_back(parameter, rank_of(parameter->home()));
  fuse(state->graph);
  make_buckets(state->graph);
  gather_updates(state->graph);
  MUSTER_TRY_VOID(state->make_steps(options.threads));
  state->make_copies();
  for (const std::size_t size : state->layout.buffers_bytes) state->pools.emplace_back(size);
  state->taken.resize(state->pools.size());
  return std::unique_ptr<Plan>(new Plan(std::move(state)));
}

Result<std::vector<Tensor>> Plan::run(std::span<const Tensor> inputs, const RunContext& context) {
  State& state = *state_;
  MUSTER_TRY_VOID(state.check(inputs, context));
  state.find_parameters(context.seed);
  Communicator* const sharing = context.communicator != nullptr && context.communicator->shares_memory()
                                    ? context.communicator
                                    : nullptr;
  state.ready_buckets(sharing);
  for (const Patch& patch : state.inputs) *patch.where = inputs[patch.index].bytes();
  // Gradients that leave side by side are likely to be reduced.
  for (std::size_t i = 0; i < state.pools.size(); ++i)
    state.taken[i] = state.pools[i].take(i < state.layout.ranges ? sharing : nullptr);
  for (const Patch& patch : state.outputs)
    *patch.where = state.taken[patch.index]->data() + patch.offset_bytes;
  const Result<> done = State::Run(state, context).execute();
  std::vector<Tensor> outputs;
  if (done) outputs = state.outputs_of_run();
  for (auto& buffer : state.taken) buffer.reset();
  if (!done) return fail(done.error());
  return outputs;
}

std::vector<Tensor> Plan::State::outputs_of_run() const {
  std::vector<Tensor> here;
  here.reserve(graph.outputs.size());
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const TensorType& type = graph.values[graph.outputs[i]];
    const Location& location = layout.outputs[i];
    here.emplace_back(type.dtype, type.shape, taken[location.index], location.offset_bytes);
  }
  if (division.size == 1) return here;
  std::vector<Tensor> all;
  all.reserve(given.size());
  for (const PartOutput& output : given) {
    all.push_back(output.absent ? *output.absent : here[output.index]);
    if (output.home) all.back().set_home(*output.home);
  }
  return all;
}

std::span<const ParameterPtr> Plan::parameters() const { return state_->parameter_list; }
std::size_t Plan::arena_bytes() const { return state_->layout.arena_bytes; }
const Parts* Plan::parts() const { return state_->parts ? &*state_->parts : nullptr; }
bool Plan::is_valid() const {
  return std::all_of(state_->homes.begin(), state_->homes.end(),
                     [](const auto& entry) { return rank_of(entry.first->home()) == entry.second; });
}

PlanStep Plan::State::explain(const Step& step) const {
  const Node& first = graph.nodes[step.node];
  PlanStep made{.op = first.op->name, .kernel = step.kernel, .result = {}, .format = {}};
  for (const Node& node : std::span(graph.nodes).subspan(step.node, step.nodes)) add_work(node, made);
  if (first.outputs.empty()) return made;
  made.result = step.nodes > 1 ? fmt::format("{} parameters", step.nodes)
                               : graph::to_string(graph.values[first.outputs[0]]);
  if (const FormatPtr& format = formats[first.outputs[0]]; format != nullptr) made.format = format->name();
  return made;
}

void Plan::State::add_work(const Node& node, PlanStep& step) const {
  std::vector<TensorType> types;
  for (const auto* ids : {&node.inputs, &node.outputs})
    for (const ValueId id : *ids) {
      types.push_back(graph.values[id]);
      step.bytes += graph::size_bytes(graph.values[id], formats[id]);
    }
  const std::span<const TensorType> all = types;
  if (node.op->flops != nullptr)
    step.flops += node.op->flops({.inputs = all.first(node.inputs.size()),
                                  .outputs = all.subspan(node.inputs.size()),
                                  .attributes = node.attributes});
}

Explanation Plan::explain() const {
  const State& state = *state_;
  Explanation made{.name = state.graph.name,
                   .inputs = {},
                   .threads = state.threads,
                   .arena_bytes = arena_bytes(),
                   .buckets_bytes = state.layout.buckets_bytes};
  for (const ValueId id : state.graph.inputs) {
    const TensorType& type = state.graph.values[id];
    made.inputs += (made.inputs.empty() ? "" : ", ") + graph::to_string(type);
    made.inputs_bytes += type.size_bytes();
  }
  for (const auto& [id, tensor] : state.graph.captured) made.inputs_bytes += tensor.size_bytes();
  for (const std::size_t bytes : state.layout.buffers_bytes) made.outputs_bytes += bytes;
  for (const Step& step : state.steps) made.steps.push_back(state.explain(step));
  for (const ParameterPtr& parameter : state.parameter_list)
    made.parameters.emplace_back(parameter->name(), parameter->type());
  if (state.parts) made.parts = *state.parts;
  return made;
}

std::string Plan::to_string() const {
  std::string text = fmt::format("plan {}: {} bytes of arena\n", state_->graph.name, arena_bytes());
  for (const Step& step : state_->steps) text += fmt::format("  {}\n", state_->describe(step));
  for (const Copy& copy : state_->copies) text += fmt::format("  copy {} bytes\n", copy.size_bytes);
  return text;
}

}  // namespace muster::graph
