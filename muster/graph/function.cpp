#include "muster/graph/function.h"
#include "muster/graph/host_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "muster/base/base.h"
#include "muster/graph/anomaly.h"
#include "muster/graph/execution/arenas.h"
#include "muster/graph/plan.h"
#include "muster/graph/thread_state.h"

namespace muster::graph {
namespace {

// Shapes that change with every call would fill the memory with plans.
constexpr std::size_t entries_max = 32;
constexpr std::size_t records_max = 256;
// A function that is traced this often may be traced by mistake.
constexpr std::size_t traces_noted = 9;

std::string describe(std::span<const TensorType> types) {
  std::string text;
  for (const TensorType& type : types) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

std::vector<TensorType> types_of(std::span<const Tensor> tensors) {
  std::vector<TensorType> types;
  for (const Tensor& tensor : tensors) types.push_back({tensor.dtype(), tensor.shape()});
  return types;
}

using Homes = std::vector<std::optional<std::uint32_t>>;

StageIndex stage_index_of(const RunContext& context) {
  if (context.stages == nullptr) return {};
  return {.rank = context.stages->rank(), .size = context.stages->size()};
}

Homes homes_of(std::span<const Tensor> tensors) {
  Homes homes;
  for (const Tensor& tensor : tensors) homes.push_back(tensor.home());
  return homes;
}

// Which outputs are losses of one number: what gradients were taken of; or the first output, which a loss
// scale lies between.
std::vector<std::size_t> losses_among(const Graph& graph) {
  std::vector<std::size_t> made;
  if (graph.losses.empty()) return made;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const bool is_loss = i == 0 || std::ranges::count(graph.losses, graph.outputs[i]) > 0;
    if (is_loss && graph.values[graph.outputs[i]].shape.elements() == 1) made.push_back(i);
  }
  return made;
}

}  // namespace

void observe_functions(FunctionObserver* observer) { process_state().observer = observer; }
void observe_graphs(GraphObserver* observer) { process_state().graph_observer = observer; }

struct Function::Entry {
  std::vector<TensorType> types;
  std::string extra;
  std::vector<Dependency> dependencies;
  StageIndex stage_index;
  Homes homes;
  bool detects_anomalies = false;
  std::uint64_t begun = 0;          // next_version() when it was traced
  std::vector<std::size_t> losses;  // which outputs
  bool updates = false;             // parameters
  std::vector<Trace::BeforeRun> before_runs;
  std::unique_ptr<Plan> plan;

  bool has_types(std::span<const Tensor> inputs) const {
    return std::equal(inputs.begin(), inputs.end(), types.begin(), types.end(),
                      [](const Tensor& tensor, const TensorType& type) {
                        return tensor.dtype() == type.dtype && tensor.shape() == type.shape;
                      });
  }
  // Over stages only one worker's count.
  bool uses_inputs() const {
    const Partition* const partition = plan->partition();
    return partition == nullptr || partition->reader == stage_index.rank;
  }
  // What the trace depended on and has changed since, if anything.
  const Dependency* changed() const {
    for (const Dependency& dependency : dependencies)
      if (!dependency.holds()) return &dependency;
    return nullptr;
  }
};

Function::Function(std::string name, Body body)
    : Function(Private{}, std::move(name), [body = std::move(body)](std::span<const Value> inputs) {
        return Recipe{body(inputs), {}, {}};
      }) {}

Function::Function(Private, std::string name, Maker maker)
    : name_(std::move(name)), maker_(std::move(maker)), arenas_(std::make_shared<Arenas>()) {}

Function::~Function() = default;

const Plan* Function::plan() const { return entries_.empty() ? nullptr : entries_.front()->plan.get(); }

Function::Entry* Function::find(std::span<const Tensor> inputs, std::string_view extra,
                                const RunContext& context) {
  const StageIndex stage_index = stage_index_of(context);
  const Homes homes = homes_of(inputs);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if ((*entry)->extra != extra || !(*entry)->has_types(inputs) || (*entry)->changed() != nullptr) continue;
    if ((*entry)->stage_index != stage_index || (*entry)->homes != homes || !(*entry)->plan->is_valid())
      continue;
    if ((*entry)->detects_anomalies != detects_anomalies()) continue;
    std::rotate(entries_.begin(), entry, entry + 1);
    return entries_.front().get();
  }
  return nullptr;
}

std::string Function::reason(std::span<const Tensor> inputs, std::string_view extra,
                             const RunContext& context) const {
  if (entries_.empty()) return "first call";
  const Entry& last = *entries_.front();
  if (last.types.size() != inputs.size())
    return fmt::format("{} tensors, {} before", inputs.size(), last.types.size());
  const std::vector<TensorType> types = types_of(inputs);
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i] != last.types[i])
      return fmt::format("input {} is {}, was {}", i, to_string(types[i]), to_string(last.types[i]));
  if (last.extra != extra)
    return extra_difference_ != nullptr ? extra_difference_(extra, last.extra)
                                        : "other arguments that are no tensors";
  if (last.detects_anomalies != detects_anomalies()) return "detection of anomalies was turned on or off";
  if (last.stage_index != stage_index_of(context))
    return fmt::format("worker {} of {}, was {} of {}", stage_index_of(context).rank,
                       stage_index_of(context).size, last.stage_index.rank, last.stage_index.size);
  if (last.homes != homes_of(inputs) || !last.plan->is_valid())
    return "other workers have its inputs or parameters";
  if (const Dependency* changed = last.changed())
    return changed->token->object == nullptr ? changed->description + " is gone"
                                             : changed->token->object->change_since(last.begun);
  return "the plan had been dropped";
}

namespace {

// Whether the code of this thread's trace looked at what a trace has not, and will run op by op.
bool is_left() { return thread_state().may_fall_back && thread_state().looked_at_traced; }

}  // namespace

Result<Function::Entry*> Function::trace(std::span<const Tensor> inputs, std::string_view extra,
                                         const RunContext& context) {
  const TimePoint begin = real_clock().now();
  TraceRecord record{.signature = {}, .reason = reason(inputs, extra, context), .nodes = 0, .duration = {}};
  auto entry = std::make_unique<Entry>();
  entry->begun = next_version();
  entry->types = types_of(inputs);
  entry->extra = extra;
  record.signature = describe(entry->types);

  const auto trace = Trace::begin(name_);
  std::vector<Value> traced;
  for (const TensorType& type : entry->types) traced.push_back(trace->input(type));
  Recipe recipe;
  const auto finished = [&] {
    const ContextScope run(context);  // asking for another would count one: random numbers move
    const Trace::Scope scope(*trace);
    recipe = maker_(traced);
    return trace->finish(recipe.outputs, std::move(recipe.contiguous));
  };
  MUSTER_TRY(Graph graph, catch_error([&] {
               try {
                 return finished();
               } catch (...) {
                 if (is_left() && trace->guards() != nullptr) trace->guards()->undo();
                 throw;
               }
             }));
  graph.notes = std::move(recipe.notes);
  graph.notes.resize(graph.outputs.size());
  for (std::size_t i = 0; i < graph.notes.size(); ++i) {
    const bool is_number = graph.values[graph.outputs[i]].shape.rank() == 0;
    graph.notes[i].everywhere = graph.notes[i].everywhere || everywhere_ || is_number;
  }
  entry->dependencies = trace->take_dependencies();
  entry->before_runs = trace->take_before_runs();
  entry->stage_index = stage_index_of(context);
  entry->homes = homes_of(inputs);
  entry->detects_anomalies = detects_anomalies();
  entry->losses = losses_among(graph);
  entry->updates = std::ranges::any_of(
      graph.nodes, [](const Node& node) { return node.op->sharing == Sharing::in_place; });
  const PlanOptions options{.threads = context.threads,
                            .stage_index = entry->stage_index,
                            .input_homes = entry->homes,
                            .arenas = arenas_};
  if (GraphObserver* const observer = process_state().graph_observer) {
    MUSTER_TRY(const bool traces_again, observer->compiling(graph, inputs, options));
    if (traces_again) return this->trace(inputs, extra, context);
  }
  MUSTER_TRY(entry->plan, Plan::compile(graph, options));

  record.nodes = graph.nodes.size();
  record.duration = real_clock().now() - begin;
  std::erase_if(entries_,
                [](const auto& old) { return old->changed() != nullptr || !old->plan->is_valid(); });
  if (entries_.size() >= entries_max) entries_.pop_back();
  entries_.insert(entries_.begin(), std::move(entry));
  note(std::move(record));
  return entries_.front().get();
}

void Function::note(TraceRecord record) {
  if (++trace_count_ == traces_noted)
    log::warning(
        fmt::format("'{}' was traced {} times, the last time because: {}. Each trace costs far more than a "
                    "call; `muster explain --trace SCRIPT` shows each with its reason",
                    name_, trace_count_, record.reason));
  if (FunctionObserver* const observer = process_state().observer) observer->traced(*this, record);
  if (traces_.size() < records_max) traces_.push_back(std::move(record));
}

Result<std::vector<Tensor>> Function::call(std::span<const Tensor> inputs, std::string_view extra,
                                           const RunContext& context) {
  Entry* entry = find(inputs, extra, context);
  const bool again = entry != nullptr;
  if (!again) {
    MUSTER_TRY(entry, trace(inputs, extra, context));
  }
  if (FunctionObserver* const observer = process_state().observer) observer->calling(*this, again);
  for (const Trace::BeforeRun& hook : entry->before_runs) MUSTER_TRY_VOID(hook(!again && trace_count_ == 1));
  if (const auto note_batch = anomaly_hooks().batch; note_batch != nullptr && !entry->losses.empty())
    note_batch(entry->uses_inputs() ? inputs : std::span<const Tensor>());
  Result<std::vector<Tensor>> made = entry->plan->run(inputs, context);
  if (made)
    for (const std::size_t loss : entry->losses) look_at_loss((*made)[loss], entry->updates);
  return made;
}

Result<> Function::compile(std::span<const Tensor> inputs, std::string_view extra,
                           const RunContext& context) {
  if (find(inputs, extra, context) != nullptr) return {};
  MUSTER_TRY_VOID(trace(inputs, extra, context));
  return {};
}

Explanation Function::explain() const {
  MUSTER_CHECK(plan() != nullptr, "a function without a plan was to be explained");
  Explanation made = plan()->explain();
  made.traces = traces_;
  return made;
}

bool Function::runs_inline() const {
  return op_by_op_ || is_tracing() || is_taping() || (differentiates_ && is_eager() && !falls_back());
}

Values Function::operator()(std::span<const Value> inputs, std::string_view extra,
                            const RunContext& context) {
  const ContextScope scope(context);
  return (*this)(inputs, extra);
}

namespace {

// Code that falls back runs in eager mode, and what is compiled in it in graph mode again.
class FallbackScope {
 public:
  explicit FallbackScope(bool falls_back)
      : was_eager_(is_eager()), fell_back_(std::exchange(process_state().falls_back, falls_back)) {
    set_eager(falls_back);
  }
  ~FallbackScope() {
    process_state().falls_back = fell_back_;
    set_eager(was_eager_);
  }
  FallbackScope(const FallbackScope&) = delete;
  FallbackScope& operator=(const FallbackScope&) = delete;

 private:
  bool was_eager_, fell_back_;
};

class MayFallBack {
 public:
  explicit MayFallBack(bool may) : before_(std::exchange(thread_state().may_fall_back, may)) {}
  ~MayFallBack() { thread_state().may_fall_back = before_; }
  MayFallBack(const MayFallBack&) = delete;
  MayFallBack& operator=(const MayFallBack&) = delete;

 private:
  bool before_;
};

// What the error that is being handled says in its last line, where a Python exception has its message.
std::string current_message() {
  try {
    throw;
  } catch (const std::exception& exception) {
    const std::string text = exception.what();
    return text.substr(text.find_last_of('\n', text.find_last_not_of('\n')) + 1);
  } catch (...) {
    return {};
  }
}

}  // namespace

bool may_fall_back() { return thread_state().may_fall_back && is_tracing(); }

Values Function::run_op_by_op(std::span<const Value> inputs) {
  const FallbackScope op_by_op(true);
  return maker_(inputs).outputs;
}

Values Function::run_plan(std::span<const Value> inputs, std::string_view extra, const RunContext& context) {
  std::vector<Tensor> tensors;
  for (const Value& input : inputs) {
    if (input.is_concrete()) {  // what is absent here may be needed elsewhere only
      tensors.push_back(input.tensor());
      continue;
    }
    if (input.is_parameter() && input.parameter()->absence() == nullptr)
      input.parameter()->materialize(context.seed);
    tensors.push_back(input.read().value());
  }
  Values values;
  for (Tensor& output : call(tensors, extra, context).value()) values.emplace_back(std::move(output));
  return values;
}

Values Function::operator()(std::span<const Value> inputs, std::string_view extra) {
  if (op_by_op_ && !is_tracing()) return run_op_by_op(inputs);
  if (runs_inline()) return maker_(inputs).outputs;
  std::optional<FallbackScope> compiled;
  if (falls_back()) compiled.emplace(false);
  const RunContext context = default_context();
  const bool may_fall_back = process_state().runs_untraceable && context.stages == nullptr;
  thread_state().looked_at_traced = false;
  const MayFallBack scope(may_fall_back);
  try {
    return run_plan(inputs, extra, context);
  } catch (...) {
    if (!is_left()) throw;
    const std::string message = current_message();
    log::warning(fmt::format("'{}' runs op by op from now on, which is slower: {}", name_,
                             message.substr(0, message.find(" has no value while"))));
    op_by_op_ = true;
  }
  return run_op_by_op(inputs);
}

namespace {

bool is_same(const Value& a, const Value& b) {
  if (a.is_traced() != b.is_traced() || a.is_parameter() || b.is_parameter()) return false;
  if (!a.is_traced()) return a.identity() == b.identity();
  return a.place().trace == b.place().trace && a.place().id == b.place().id;
}

// A tensor that is given at two positions is two inputs: each has a gradient of its own.
Values apart(std::span<const Value> inputs, std::span<const std::size_t> positions) {
  Values made(inputs.begin(), inputs.end());
  for (const std::size_t position : positions) {
    if (position >= inputs.size() || !inputs[position].defined()) continue;
    const auto is_it = [&](const Value& input) {
      return input.defined() && is_same(input, inputs[position]);
    };
    if (std::ranges::count_if(inputs, is_it) > 1)
      made[position] =
          apply("broadcast_to", {inputs[position]}, {{"shape", inputs[position].shape().sizes()}});
  }
  return made;
}

// What gradients are wanted for: the inputs at `positions`, then the parameters.
std::vector<Value> wanted(const GradientOptions& options, std::span<const Value> inputs) {
  std::vector<Value> wrt;
  for (const std::size_t position : options.positions) {
    if (position >= inputs.size())
      throw Exception(
          Code::invalid_argument,
          fmt::format("a gradient for input {} was asked of a function of {}", position, inputs.size()));
    wrt.push_back(inputs[position]);
  }
  for (const ParameterPtr& parameter : options.parameters) wrt.emplace_back(parameter);
  return wrt;
}

// The body's outputs, then the gradients. `history` is the Trace or the Tape on which the outputs were made.
template <class History>
Values with_gradients(History& history, Values outputs, const GradientOptions& options,
                      std::span<const Value> inputs) {
  const std::size_t count = options.losses ? options.losses() : outputs.size();
  if (count == 0) throw Exception(Code::invalid_argument, "the function returned no loss");
  const std::vector<Value> wrt = wanted(options, inputs);
  const std::span<const Value> losses(outputs.data(), options.has_aux ? 1 : count);
  const std::vector<Value> gradients = history.gradient(losses, wrt);
  outputs.insert(outputs.end(), gradients.begin(), gradients.end());
  return outputs;
}

Values trace_gradients(const Body& body, const GradientOptions& options, std::span<const Value> inputs) {
  return with_gradients(*Trace::current(), body(inputs), options, inputs);
}

Values run_gradients(const Body& body, const GradientOptions& options, std::span<const Value> inputs) {
  const std::shared_ptr<Tape> tape = resumed_tape();
  Values outputs;
  {
    const Tape::Scope scope(*tape);
    outputs = body(inputs);
  }
  return with_gradients(*tape, std::move(outputs), options, inputs);
}

// Of `count` outputs, the gradients last.
std::vector<OutputNote> notes_of(const GradientOptions& options, std::size_t count) {
  std::vector<OutputNote> notes(count - options.positions.size() - options.parameters.size());
  for (std::size_t i = 0; i < notes.size(); ++i) notes[i].everywhere = i == 0 || !options.has_aux;
  for (const std::size_t position : options.positions)
    notes.push_back({fmt::format("the gradient of input {}", position)});
  for (const ParameterPtr& parameter : options.parameters)
    notes.push_back({fmt::format("the gradient of '{}'", parameter->name())});
  return notes;
}

}  // namespace

std::shared_ptr<Function> value_and_grad(std::string name, Body body, GradientOptions options) {
  auto maker = [body = std::move(body), options = std::move(options)](std::span<const Value> given) {
    const Values inputs = apart(given, options.positions);
    const Values outputs =
        is_tracing() ? trace_gradients(body, options, inputs) : run_gradients(body, options, inputs);
    const std::size_t count = options.parameters.size();
    return Function::Recipe{outputs, {{outputs.size() - count, count}}, notes_of(options, outputs.size())};
  };
  auto made = std::make_shared<Function>(Function::Private{}, std::move(name), std::move(maker));
  made->differentiates_ = true;
  return made;
}

}  // namespace muster::graph
