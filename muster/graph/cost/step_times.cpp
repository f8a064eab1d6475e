#include "muster/graph/cost/step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "muster/graph/execution/runner.h"

namespace muster::graph {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t runs_min = 3;  // the first one is not counted
constexpr std::size_t runs_max = 12;
constexpr Duration runs_limit = 400ms;                     // no further run begins then
constexpr auto between_key = "from one step to the next";  // of KnownTimes

// ---- Made-up numbers --------------------------------------------------------------------------------------

// As far from 0 as keeps what flows through many layers neither tiny nor huge: tiny numbers are slow.
float scale_of(const Shape& shape) {
  if (shape.rank() < 2) return 1;
  const std::int64_t inputs =
      std::max<std::int64_t>(1, shape.elements() / std::max<std::int64_t>(1, shape[0]));
  return std::sqrt(3.0F / static_cast<float>(inputs));
}

// A short row of random numbers, again and again.
void fill_floats(float* to, std::size_t count, float scale) {
  constexpr std::size_t row = 4096;
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < std::min(row, count); ++i) {
    state = state * 1664525U + 1013904223U;
    to[i] = scale * (static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0F);
  }
  for (std::size_t i = row; i < count; i += row) std::copy_n(to, std::min(row, count - i), to + i);
}

Tensor made_up(const TensorType& type, float scale) {
  Tensor made = Tensor::zeros(type.dtype, type.shape);
  if (type.dtype == DType::float32)
    fill_floats(made.data<float>(), static_cast<std::size_t>(made.elements()), scale);
  return made;
}

// What updates write beside their parameter: the state of an optimizer, in which no number is below 0.
std::vector<bool> states_of(const Graph& graph) {
  std::vector<bool> is_state(graph.values.size(), false);
  for (const Node& node : graph.nodes)
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      if (node.op->writes(i)) is_state[node.inputs[i]] = true;
  return is_state;
}

ParameterPtr own_parameter(const Parameter& parameter, bool holds_numbers) {
  const TensorType type = parameter.type();
  auto made = std::make_shared<Parameter>(
      parameter.name(), type,
      [](const Tensor& out, const RandomStream&) { std::memset(out.bytes(), 0, out.size_bytes()); },
      parameter.requires_grad());
  made->divide(parameter.share());
  if (holds_numbers) (void)made->set(made_up(made->held_type(), scale_of(type.shape)));
  return made;
}

// ---- What does not run ------------------------------------------------------------------------------------

bool runs_by_itself(const Op& op) {
  if (op.collective) return false;
  for (const std::string_view other : {"host_call", "while_loop", "served_update", "server_lookup",
                                       "server_note", "send_message", "receive_message"})
    if (op.name == other) return false;
  return true;
}

// The bytes of inputs and outputs, in their order.
struct CallBytes {
  std::vector<std::size_t> inputs, outputs;
};

// What comes in, again and again: elements stay such that others can work with them.
void give_something(const KernelCall& call) {
  const auto& sizes = call.setting<CallBytes>();
  for (std::size_t i = 0; i < sizes.outputs.size(); ++i) {
    const std::size_t from = i < sizes.inputs.size() ? i : 0;
    if (sizes.inputs.empty() || sizes.inputs[from] == 0) {
      std::memset(call.outputs[i], 0, sizes.outputs[i]);
      continue;
    }
    if (call.outputs[i] == call.inputs[from]) continue;
    for (std::size_t done = 0; done < sizes.outputs[i]; done += sizes.inputs[from])
      std::memmove(call.outputs[i] + done, call.inputs[from],
                   std::min(sizes.inputs[from], sizes.outputs[i] - done));
  }
}

// `plan` without what needs others.
CompiledPlan alone(CompiledPlan plan) {
  for (PlannedStep& step : plan.steps) {
    const Node& node = plan.graph.nodes[step.node];
    step.kind = PlannedStep::Kind::compute;
    step.wait_count = 0;
    step.is_async = false;
    if (runs_by_itself(*node.op)) continue;
    auto sizes = std::make_shared<CallBytes>();
    for (const ValueId id : node.inputs)
      sizes->inputs.push_back(size_bytes(plan.graph.values[id], plan.formats[id]));
    for (const ValueId id : node.outputs)
      sizes->outputs.push_back(size_bytes(plan.graph.values[id], plan.formats[id]));
    step.run = &give_something;
    step.prepared = Prepared{std::move(sizes)};
  }
  plan.collectives.clear();
  plan.stage.index = {};  // a stage runs without the others
  plan.first_update = CompiledPlan::no_step;
  plan.has_overlap = plan.has_async_transfers = false;
  return plan;
}

// ---- Running ----------------------------------------------------------------------------------------------

class Times final : public RunObserver {
 public:
  explicit Times(std::size_t steps) : of_steps_(steps) {}
  void ran(const Step& step, TimePoint begin, TimePoint end, const Describe& /*describe*/) override {
    if (step.plan != plan || step.index >= of_steps_.size()) return;
    of_steps_[step.index].push_back(end - begin);
    in_steps_ += end - begin;
  }
  // A run took so long, steps and all.
  void end_run(Duration time) { between_.push_back(time - std::exchange(in_steps_, {})); }
  // The middle one, without the first.
  std::optional<double> of(std::size_t step) const { return middle(of_steps_[step]); }
  double between() const { return middle(between_).value_or(0); }

  const void* plan = nullptr;

 private:
  static std::optional<double> middle(std::vector<Duration> times) {
    if (times.size() < 2) return std::nullopt;
    times.erase(times.begin());
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, middle);
    return std::chrono::duration<double>(*middle).count();
  }

  std::vector<std::vector<Duration>> of_steps_;
  std::vector<Duration> between_;  // by run
  Duration in_steps_{};            // of the run under way
};

std::string key_of(const CompiledPlan& plan, const PlannedStep& step) {
  const Node& first = plan.graph.nodes[step.node];
  std::string key =
      fmt::format("{} {} {}{}", first.op->name, step.kernel, plan.threads, to_string(first.attributes));
  for (const Node& node : plan.nodes_of(step))
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      key += '|';
      for (const ValueId id : *ids) {
        key += to_string(plan.graph.values[id]);
        if (plan.formats[id] != nullptr) key += plan.formats[id]->name();
      }
    }
  return key;
}

// The plan that workers beside this one run meanwhile.
class Copies {
 public:
  // Each compiles for itself: kernels keep what serves one call at a time.
  Copies(const Graph& graph, const PlanOptions& options, std::span<const Tensor> inputs, std::size_t count)
      : together_(static_cast<std::ptrdiff_t>(count) + 1) {
    for (std::size_t i = 0; i < count; ++i)
      threads_.emplace_back([this, &graph, &options, inputs] { work(graph, options, inputs); });
  }
  ~Copies() {
    last_ = begun_ + 1;
    together_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  // All begin their next run together.
  void begin() {
    ++begun_;
    together_.arrive_and_wait();
  }

 private:
  void work(const Graph& graph, const PlanOptions& options, std::span<const Tensor> inputs) {
    ReplacedParameters own;
    std::optional<CompiledPlan> plan;
    std::optional<Runner> runner;
    if (Result<CompiledPlan> made = compile(with_own_parameters(graph, own), options)) {
      plan.emplace(alone(*std::move(made)));
      runner.emplace(*plan);
    }
    // By number: a thread that is late must not take the end of the last run for that of this one.
    for (std::size_t run = 1;; ++run) {
      together_.arrive_and_wait();
      if (run == last_) return;
      if (runner) (void)runner->run(inputs, {.seed = 1, .threads = options.threads});
    }
  }

  std::size_t begun_ = 0;              // of the thread that has made it
  std::atomic<std::size_t> last_ = 0;  // behind it nothing runs; 0: not yet known
  std::barrier<> together_;
  std::vector<std::thread> threads_;
};

Result<std::size_t> run_some(Runner& runner, std::span<const Tensor> inputs, Times& times, int threads,
                             Copies& copies) {
  const TimePoint begin = real_clock().now();
  std::size_t runs = 0;
  for (; runs < runs_min || (runs < runs_max && real_clock().now() - begin < runs_limit); ++runs) {
    copies.begin();
    const TimePoint begun = real_clock().now();
    MUSTER_TRY_VOID(runner.run(inputs, {.seed = 1, .threads = threads, .observer = &times}));
    times.end_run(real_clock().now() - begun);
  }
  return runs;
}

}  // namespace

std::optional<double> KnownTimes::find(const std::string& key) const {
  const auto found = times_.find(key);
  if (found == times_.end()) return std::nullopt;
  return found->second.seconds / static_cast<double>(found->second.count);
}

void KnownTimes::add(const std::string& key, double seconds) {
  Sum& sum = times_[key];
  sum.seconds += seconds;
  ++sum.count;
}

Graph with_own_parameters(const Graph& graph, ReplacedParameters& known, bool holds_numbers) {
  Graph made = graph;
  made.own_gradients.clear();
  const std::vector<bool> is_state = states_of(graph);
  for (auto& [id, parameter] : made.parameters) {
    ParameterPtr& own = known[parameter.get()];
    if (own == nullptr) own = own_parameter(*parameter, holds_numbers && !is_state[id]);
    parameter = own;
  }
  return made;
}

Result<TimedPlan> time_steps(const Graph& graph, const PlanOptions& options, std::span<const Tensor> inputs,
                             const TimingOptions& timing) {
  ReplacedParameters own;
  TimedPlan made;
  MUSTER_TRY(made.plan, compile(with_own_parameters(graph, own), options));
  const std::vector<PlannedStep>& steps = made.plan.steps;
  made.seconds.resize(steps.size());
  std::vector<std::string> keys;
  bool all_known = timing.known != nullptr;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    keys.push_back(key_of(made.plan, steps[i]));
    if (!runs_by_itself(*made.plan.graph.nodes[steps[i].node].op)) continue;
    if (all_known) made.seconds[i] = timing.known->find(keys[i]);
    all_known = all_known && made.seconds[i].has_value();
  }
  const auto count = static_cast<double>(steps.size());
  if (all_known) {
    made.between_s = count * timing.known->find(between_key).value_or(0);
    return made;
  }

  const CompiledPlan runnable = alone(made.plan);
  Runner runner(runnable);
  Times times(steps.size());
  times.plan = &runnable;
  Copies copies(graph, options, inputs, std::max<std::size_t>(1, timing.copies) - 1);
  MUSTER_TRY(made.runs, run_some(runner, inputs, times, options.threads, copies));
  made.between_s = times.between();
  if (timing.known != nullptr && count > 0) timing.known->add(between_key, made.between_s / count);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!runs_by_itself(*made.plan.graph.nodes[steps[i].node].op)) continue;
    made.seconds[i] = times.of(i);
    if (timing.known != nullptr && made.seconds[i]) timing.known->add(keys[i], *made.seconds[i]);
  }
  return made;
}

}  // namespace muster::graph
