#include "muster/graph/execution/runner.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "muster/graph/execution/anomaly_watch.h"
#include "muster/graph/execution/explain.h"

namespace muster::graph {

Runner::Runner(const CompiledPlan& plan, std::shared_ptr<Arenas> arenas)
    : plan_(plan),
      arenas_(arenas != nullptr ? std::move(arenas) : std::make_shared<Arenas>()),
      parameter_addresses_(plan.parameters.size()),
      outputs_(plan.layout.buffers_bytes) {
  make_calls();
  make_copies();
}

void Runner::make_calls() {
  std::size_t addresses = 0;
  for (const PlannedStep& step : plan_.steps)
    for (const Node& node : plan_.nodes_of(step)) addresses += node.inputs.size() + node.outputs.size();
  addresses_.resize(addresses);
  calls_.resize(plan_.steps.size());
  std::byte** address = addresses_.data();
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const PlannedStep& step = plan_.steps[i];
    const Node& first = plan_.graph.nodes[step.node];
    calls_[i].call = {.inputs = address,
                      .outputs = address + first.inputs.size(),
                      .settings = step.prepared.settings.get(),
                      .failure = &calls_[i].failure};
    patches_.arena.push_back({&calls_[i].call.scratch, 0, plan_.layout.scratch_offset_bytes[step.node]});
    rollback_.add_step(first, plan_.graph, address);
    for (const Node& node : plan_.nodes_of(step)) {
      for (const ValueId id : node.inputs) bind(*address++, plan_.layout.values[id]);
      for (const ValueId id : node.outputs) bind(*address++, plan_.layout.values[id]);
    }
  }
}

void Runner::make_copies() {
  copies_.resize(plan_.layout.copies.size());
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const OutputCopy& wanted = plan_.layout.copies[i];
    copies_[i].size_bytes = plan_.graph.values[wanted.value].size_bytes();
    bind(copies_[i].from, plan_.layout.values[wanted.value]);
    bind(copies_[i].to, plan_.layout.outputs[wanted.output]);
  }
}

// Resolves a place to an address now, or notes that it must be patched later.
void Runner::bind(std::byte*& where, const Location& location) {
  const Patch patch{&where, location.index, location.offset_bytes};
  switch (location.kind) {
    case Location::Kind::input:
      patches_.inputs.push_back(patch);
      return;
    case Location::Kind::output:
      patches_.outputs.push_back(patch);
      return;
    case Location::Kind::parameter:
      patches_.parameters.push_back(patch);
      return;
    case Location::Kind::bucket:
      patches_.buckets.push_back(patch);
      return;
    case Location::Kind::captured:
      where = plan_.graph.captured[location.index].second.bytes();
      return;
    case Location::Kind::arena:
      patches_.arena.push_back(patch);
      return;
  }
}

namespace {

Result<> check_types(const Graph& graph, std::span<const Tensor> inputs) {
  if (inputs.size() != graph.inputs.size())
    return fail(Code::invalid_argument, fmt::format("'{}' takes {} tensors, {} were given", graph.name,
                                                    graph.inputs.size(), inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& wanted = graph.values[graph.inputs[i]];
    if (inputs[i].dtype() != wanted.dtype || inputs[i].shape() != wanted.shape)
      return fail(Code::invalid_argument,
                  fmt::format("'{}': input {} must be {}, not {}", graph.name, i, to_string(wanted),
                              to_string(TensorType{inputs[i].dtype(), inputs[i].shape()})));
  }
  return {};
}

Result<> check_worker(const CompiledPlan& plan, const RunContext& context) {
  const StageIndex& wanted = plan.stage.index;
  if (wanted.size == 1) return {};
  const StageIndex here =
      context.stages == nullptr ? StageIndex{} : StageIndex{context.stages->rank(), context.stages->size()};
  if (here == wanted) return {};
  return fail(Code::invalid_argument,
              fmt::format("'{}' was compiled for worker {} of {} and runs on worker {} of {}",
                          plan.graph.name, wanted.rank, wanted.size, here.rank, here.size));
}

}  // namespace

Result<> Runner::check(std::span<const Tensor> inputs, const RunContext& context) const {
  const std::string& name = plan_.graph.name;
  MUSTER_TRY_VOID(check_types(plan_.graph, inputs));
  for (const Patch& patch : patches_.inputs)
    if (const std::string* reason = inputs[patch.index].absence())
      return fail(Code::invalid_argument,
                  fmt::format("'{}': input {} is needed here: {}", name, patch.index, *reason));
  MUSTER_TRY_VOID(check_worker(plan_, context));
  for (const PlannedParameter& each : plan_.parameters)
    if (const std::string* reason = each.parameter->absence())
      return fail(Code::invalid_argument, fmt::format("'{}': {}", name, *reason));
  return {};
}

namespace {

// Moving statistics are written anywhere in a run; everything else from the first update on.
void note_writes(std::span<const PlannedParameter> parameters, bool statistics) {
  for (const PlannedParameter& each : parameters)
    if (each.is_written && each.parameter->is_statistic() == statistics) each.parameter->note_write();
}

}  // namespace

// Each run anew: another plan, or a reader, may have moved them meanwhile.
void Runner::place_parameters(std::uint64_t seed) {
  for (std::size_t i = 0; i < parameter_addresses_.size(); ++i)
    parameter_addresses_[i] = plan_.parameters[i].parameter->in_format(plan_.parameters[i].format, seed,
                                                                       plan_.parameters[i].is_written);
  for (const Patch& patch : patches_.parameters) *patch.where = parameter_addresses_[patch.index];
}

void Runner::place_buckets(Communicator* sharing) {
  const std::size_t bytes = plan_.layout.buckets_bytes;
  if (bytes == 0 || (buckets_.memory != nullptr && buckets_.owner == sharing)) return;
  buckets_ = {buffer_of(sharing, bytes), sharing};
  for (const Patch& patch : patches_.buckets) *patch.where = buckets_.memory->data() + patch.offset_bytes;
}

// Another plan may have had it meanwhile, or made it larger.
void Runner::place_arena(std::byte* arena) {
  if (arena == arena_) return;
  for (const Patch& patch : patches_.arena) *patch.where = arena + patch.offset_bytes;
  arena_ = arena;
}

// All addresses of a run but those in the arena.
void Runner::place(std::span<const Tensor> inputs, const RunContext& context) {
  Communicator* const sharing = context.communicator != nullptr && context.communicator->shares_memory()
                                    ? context.communicator
                                    : nullptr;
  place_parameters(context.seed);
  place_buckets(sharing);
  for (const Patch& patch : patches_.inputs) *patch.where = inputs[patch.index].bytes();
  // Gradients that leave side by side are likely to be reduced.
  outputs_.take(plan_.layout.ranges, sharing);
  for (const Patch& patch : patches_.outputs)
    *patch.where = outputs_[patch.index]->data() + patch.offset_bytes;
}

bool Runner::reduces_async(const RunContext& context) const {
  return plan_.has_overlap && context.communicator != nullptr && context.communicator->size() > 1;
}

// Null where nothing would go on beside the calls, or nothing may: what a step gives is looked at before the
// next.
CallThread* Runner::thread_for(const RunContext& context) {
  if (plan_.detects_anomalies) return nullptr;
  if (!reduces_async(context) && !plan_.has_async_transfers) return nullptr;
  if (threads_.calls == nullptr) threads_.calls = std::make_unique<CallThread>();
  return threads_.calls->exists() ? threads_.calls.get() : nullptr;
}

// One run of all steps, collective calls beside the others where that is of use.
class Runner::Run {
 public:
  Run(Runner& runner, std::span<const Tensor> inputs, const RunContext& context)
      : runner_(runner),
        plan_(runner.plan_),
        context_(context),
        to_the_end_(context),
        thread_(runner.thread_for(context)),
        reduces_async_(runner.reduces_async(context)) {
    to_the_end_.interrupted = nullptr;
    if (plan_.detects_anomalies) watch_.emplace(plan_, inputs, runner.parameter_addresses_);
  }
  // However it ends, no call goes on after it: calls use the memory of the run.
  ~Run() {
    if (thread_ == nullptr) return;
    thread_->finish();
    if (runner_.threads_.sends != nullptr) runner_.threads_.sends->finish();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Result<> execute() {
    runner_.rollback_.keep();
    note_writes(plan_.parameters, true);
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      if (i == plan_.first_update) {
        MUSTER_TRY_VOID(commit());
        note_writes(plan_.parameters, false);
      }
      const bool may_end = runner_.rollback_.covers(i);
      const Result<> done = may_end ? interruptible(i) : to_the_end(i);
      if (!done && may_end) runner_.rollback_.put_back();
      MUSTER_TRY_VOID(done);
    }
    MUSTER_TRY_VOID(join(plan_.collectives.size()));
    for (const Copy& copy : runner_.copies_) std::memmove(copy.to, copy.from, copy.size_bytes);
    return {};
  }

 private:
  using Kind = PlannedStep::Kind;

  Result<> interruptible(std::size_t step) {
    if (context_.interrupted != nullptr) MUSTER_TRY_VOID(context_.interrupted());
    return begin(step, context_);
  }

  Result<> commit() {
    if (context_.commit == nullptr) return {};
    MUSTER_TRY_VOID(join(plan_.steps[plan_.first_update].wait_count));
    return context_.commit();
  }

  Result<> to_the_end(std::size_t step) {
    MUSTER_TRY_VOID(join(plan_.steps[step].wait_count));
    return begin(step, to_the_end_);
  }

  Result<> begin(std::size_t index, const RunContext& context) {
    const PlannedStep& step = plan_.steps[index];
    StepCall& made = runner_.calls_[index];
    made.call.threads = context.threads;
    made.call.communicator = context.communicator;
    made.call.context = &context;
    made.failure.reset();
    made.ticket = 0;
    if (step.is_collective() && goes_to_a_thread(step)) {
      CallThread& thread = thread_of(step);
      thread.give(step.run, made.call);
      made.ticket = thread.given();
      return {};
    }
    timed(index, [&] { step.run(made.call); });
    MUSTER_TRY_VOID(outcome(made));
    return watch_ ? watch_->look(step, made.call.inputs) : Result<>{};
  }

  // Those of one kind keep their order: what must not wait goes behind one that is not done.
  bool goes_to_a_thread(const PlannedStep& step) {
    ++begun_;
    if (thread_ == nullptr) return false;
    if (step.kind == Kind::reduction)
      return reduction_waits_ = reduces_async_ && (reduction_waits_ || step.is_async);
    bool& waits = step.kind == Kind::receive ? receive_waits_ : send_waits_;
    return waits = waits || step.is_async;
  }

  CallThread& thread_of(const PlannedStep& step) const {
    if (step.kind != Kind::send) return *thread_;
    auto& sends = runner_.threads_.sends;
    if (sends == nullptr) sends = std::make_unique<CallThread>();
    return *sends;
  }

  // Waits for the first `count` calls.
  Result<> join(std::size_t count) {
    if (thread_ == nullptr) return {};
    for (; joined_ < count; ++joined_) {
      const std::size_t index = plan_.collectives[joined_];
      const StepCall& made = runner_.calls_[index];
      if (made.ticket == 0) continue;
      timed(index, [&] { thread_of(plan_.steps[index]).wait(made.ticket); });
      MUSTER_TRY_VOID(outcome(made));
    }
    if (joined_ == begun_) send_waits_ = receive_waits_ = reduction_waits_ = false;
    return {};
  }

  static Result<> outcome(const StepCall& made) {
    if (made.failure) return fail(*made.failure);
    return {};
  }

  // A call that goes on beside other steps takes as long as it is waited for.
  template <class Work>
  void timed(std::size_t step, const Work& work) const {
    if (context_.observer == nullptr) return work();
    const PlannedStep& planned = plan_.steps[step];
    const TimePoint begin = real_clock().now();
    work();
    context_.observer->ran({.plan = &plan_,
                            .index = step,
                            .op = plan_.graph.nodes[planned.node].op->name,
                            .talks = planned.is_collective()},
                           begin, real_clock().now(), [&] { return describe(plan_, planned); });
  }

  Runner& runner_;
  const CompiledPlan& plan_;
  const RunContext& context_;
  RunContext to_the_end_;       // of steps behind the rollback, and of the plans that they run
  CallThread* thread_;          // null: calls run in their turn
  bool reduces_async_;          // whether reductions go to the thread
  std::size_t begun_ = 0;       // calls
  std::size_t joined_ = 0;      // of these; those that ran in their turn, too
  bool send_waits_ = false;     // whether a send that was given to the thread may not be done
  bool receive_waits_ = false;  // likewise
  bool reduction_waits_ = false;
  std::optional<AnomalyWatch> watch_;
};

Result<std::vector<Tensor>> Runner::run(std::span<const Tensor> inputs, const RunContext& context) {
  MUSTER_TRY_VOID(check(inputs, context));
  const std::shared_ptr<Buffer> arena = arenas_->take(plan_.layout.arena_bytes);
  place_arena(arena->data());
  place(inputs, context);
  const Result<> done = Run(*this, inputs, context).execute();
  std::vector<Tensor> outputs;
  if (done) outputs = outputs_of_run();
  outputs_.drop();
  if (!done) return fail(done.error());
  return outputs;
}

std::vector<Tensor> Runner::outputs_here() const {
  const Graph& graph = plan_.graph;
  std::vector<Tensor> here;
  here.reserve(graph.outputs.size());
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const TensorType& type = graph.values[graph.outputs[i]];
    const Location& location = plan_.layout.outputs[i];
    here.emplace_back(type.dtype, type.shape, outputs_[location.index], location.offset_bytes);
  }
  return here;
}

// Of the whole graph.
std::vector<Tensor> Runner::outputs_of_run() const {
  std::vector<Tensor> here = outputs_here();
  if (plan_.stage.index.size == 1) return here;
  std::vector<Tensor> all;
  all.reserve(plan_.stage.outputs.size());
  for (const StageOutput& output : plan_.stage.outputs) {
    all.push_back(output.absent ? *output.absent : here[output.index]);
    if (output.home) all.back().set_home(*output.home);
  }
  return all;
}

}  // namespace muster::graph
