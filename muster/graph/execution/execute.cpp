#include "muster/graph/execution/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "muster/base/state_clock.h"
#include "muster/graph/anomaly.h"
#include "muster/graph/ops/transfer.h"
#include "muster/graph/origin.h"
#include "muster/graph/passes/widen.h"
#include "muster/graph/thread_state.h"
#include "muster/graph/trace.h"

namespace muster::graph {
namespace {

Result<Tensor> elements_of(Parameter& parameter, bool to_write, const RunContext& context) {
  if (parameter.share()) return whole_of(parameter, context);
  return to_write ? parameter.writable(context.seed) : parameter.materialize(context.seed);
}

// What was written to the whole of a divided parameter goes to the piece that is here.
Result<> keep_pieces(const Op& op, std::span<const Value> inputs, const std::vector<Tensor>& written) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (op.writes(i) && inputs[i].is_parameter() && inputs[i].parameter()->share())
      MUSTER_TRY_VOID(inputs[i].parameter()->set(written[i]));
  return {};
}

Result<std::vector<Tensor>> read_all(const Op& op, std::span<const Value> inputs, const RunContext& context) {
  std::vector<Tensor> tensors;
  tensors.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& input = inputs[i];
    if (input.is_traced())
      return fail(Code::invalid_argument,
                  fmt::format("{}: a tensor of a graph that is already made ({}) was used outside it",
                              op.name, to_string(input.type())));
    if (input.is_parameter() && input.parameter()->absence() == nullptr) {
      if (op.writes(i) && op.sharing != Sharing::in_place) input.parameter()->mark_statistic();
      MUSTER_TRY(Tensor tensor, elements_of(*input.parameter(), op.writes(i), context));
      tensors.push_back(std::move(tensor));
      continue;
    }
    MUSTER_TRY(Tensor tensor, input.read());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<Tensor> make_outputs(const Op& op, const std::vector<TensorType>& types,
                                 const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  outputs.reserve(types.size());
  for (const TensorType& type : types) {
    if (op.sharing == Sharing::view || op.sharing == Sharing::in_place)
      outputs.push_back(inputs[0].reshaped(type.shape));
    else
      outputs.emplace_back(type.dtype, type.shape);
  }
  return outputs;
}

// A plan of one op: what does not depend on the elements.
struct OneOp {
  const Op* op = nullptr;
  std::vector<TensorType> inputs;
  Attributes attributes;
  std::vector<TensorType> outputs;
  int threads = 1;
  Chosen chosen = {};       // no kernel: a view
  bool takes_long = false;  // so much that reading the clock is nothing beside it
};

constexpr std::int64_t bytes_that_take_long = 16 << 10;  // a microsecond at least

bool takes_long(const OneOp& plan) {
  std::int64_t bytes = 0;
  for (const auto* types : {&plan.inputs, &plan.outputs})
    for (const TensorType& type : *types) bytes += static_cast<std::int64_t>(type.size_bytes());
  return bytes >= bytes_that_take_long;
}

constexpr std::size_t kept_max = 1024;  // a net of some hundred kinds of calls

std::uint64_t key_of(const Op& op, const std::vector<TensorType>& types) {
  std::uint64_t key = std::hash<const Op*>{}(&op);
  const auto mix = [&](std::uint64_t value) { key = (key ^ value) * 0x9e3779b97f4a7c15u; };
  for (const TensorType& type : types) {
    mix(static_cast<std::uint64_t>(type.dtype));
    for (const std::int64_t size : type.shape) mix(static_cast<std::uint64_t>(size));
  }
  return key;
}

Result<std::shared_ptr<const OneOp>> make_one_op(const Op& op, std::vector<TensorType> types,
                                                 const Attributes& attributes, int threads) {
  auto made = std::make_shared<OneOp>(OneOp{
      .op = &op, .inputs = std::move(types), .attributes = attributes, .outputs = {}, .threads = threads});
  MUSTER_TRY(made->outputs, op.infer({made->inputs, {}, made->attributes}));
  if (op.sharing == Sharing::view) return made;
  made->takes_long = takes_long(*made);
  MUSTER_TRY(made->chosen, choose_kernel(op, {made->inputs, made->outputs, made->attributes, {}, threads}));
  return made;
}

}  // namespace

struct EagerPlans {
  std::unordered_multimap<std::uint64_t, std::shared_ptr<const OneOp>> by_key;
};

namespace {

// Each thread keeps its own, since a kernel's settings serve one call at a time.
EagerPlans& eager_plans() {
  std::shared_ptr<EagerPlans>& plans = thread_state().eager_plans;
  if (plans == nullptr) plans = std::make_shared<EagerPlans>();
  return *plans;
}

Result<std::shared_ptr<const OneOp>> one_op(const Op& op, std::vector<TensorType> types,
                                            const Attributes& attributes, int threads) {
  auto& kept = eager_plans().by_key;
  const std::uint64_t key = key_of(op, types);
  const auto [first, last] = kept.equal_range(key);
  for (auto entry = first; entry != last; ++entry) {
    const OneOp& known = *entry->second;
    if (known.op == &op && known.threads == threads && known.inputs == types &&
        known.attributes == attributes)
      return entry->second;
  }
  MUSTER_TRY(auto made, make_one_op(op, std::move(types), attributes, threads));
  if (kept.size() >= kept_max) kept.clear();
  kept.emplace(key, made);
  return made;
}

// Scratch memory of one op of this thread, kept for its next one. An op that runs inside another one's kernel
// finds none and makes its own.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) {
    if (bytes == 0) return;
    buffer_ = std::move(thread_state().scratch);
    if (buffer_ == nullptr || buffer_->size_bytes() < bytes) buffer_ = Buffer::allocate(bytes);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (buffer_ != nullptr && buffer_->size_bytes() <= kept_bytes_max) thread_state().scratch = buffer_;
  }

  std::byte* data() const { return buffer_ == nullptr ? nullptr : buffer_->data(); }

 private:
  static constexpr std::size_t kept_bytes_max = 16 << 20;

  std::shared_ptr<Buffer> buffer_;
};

Result<> run_kernel(const OneOp& plan, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                    const RunContext& context) {
  std::vector<std::byte*> addresses;
  addresses.reserve(inputs.size() + outputs.size());
  for (const Tensor& tensor : inputs) addresses.push_back(tensor.bytes());
  for (const Tensor& tensor : outputs) addresses.push_back(tensor.bytes());
  const Scratch scratch(plan.chosen.prepared.scratch_bytes);
  std::optional<Error> failure;
  plan.chosen.kernel->run({.inputs = addresses.data(),
                           .outputs = addresses.data() + inputs.size(),
                           .settings = plan.chosen.prepared.settings.get(),
                           .scratch = scratch.data(),
                           .threads = context.threads,
                           .communicator = context.communicator,
                           .context = &context,
                           .failure = &failure});
  if (failure) return fail(*std::move(failure));
  return {};
}

RunObserver::Description describe(const OneOp& plan) {
  RunObserver::Description made{
      .text = fmt::format("{} [{}], by itself", plan.op->name, plan.chosen.kernel->name)};
  for (const auto* types : {&plan.inputs, &plan.outputs})
    for (const TensorType& type : *types) made.bytes += type.size_bytes();
  if (plan.op->flops != nullptr)
    made.flops =
        plan.op->flops({.inputs = plan.inputs, .outputs = plan.outputs, .attributes = plan.attributes});
  return made;
}

Result<> run(const OneOp& plan, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
             const RunContext& context) {
  if (context.observer == nullptr) return run_kernel(plan, inputs, outputs, context);
  const TimePoint begin = real_clock().now();
  const Result<> done = run_kernel(plan, inputs, outputs, context);
  const bool talks = plan.op->collective || plan.op == &send_op() || plan.op == &receive_op();
  context.observer->ran({.op = plan.op->name, .talks = talks}, begin, real_clock().now(),
                        [&plan] { return describe(plan); });
  return done;
}

// Before the op runs, which may write over them.
std::vector<LookedAt> looked_at(const std::vector<Tensor>& tensors) {
  std::vector<LookedAt> made;
  for (const Tensor& tensor : tensors)
    made.push_back(
        {{tensor.dtype(), tensor.shape()}, numbers_of(tensor.bytes(), tensor.dtype(), tensor.elements())});
  return made;
}

// Where anomalies are detected, what comes out is looked at.
Result<> run_watched(const OneOp& plan, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                     const RunContext& context) {
  if (!process_state().detects_anomalies) return run(plan, inputs, outputs, context);
  const std::vector<LookedAt> given = looked_at(inputs);
  MUSTER_TRY_VOID(run(plan, inputs, outputs, context));
  for (const Tensor& output : outputs) {
    const LookedAt made = looked_at({output})[0];
    if (is_anomaly(made.numbers, given))
      return fail(anomaly_of(*plan.op, current_origin(), made, output.bytes(), given));
  }
  return {};
}

bool takes(const Kernel& kernel, const Signature& signature) {
  const auto is_taken = [&](const TensorType& type) { return kernel.takes.contains(type.dtype); };
  return std::all_of(signature.inputs.begin(), signature.inputs.end(), is_taken) &&
         std::all_of(signature.outputs.begin(), signature.outputs.end(), is_taken);
}

}  // namespace

Result<Chosen> choose_kernel(const Op& op, const Signature& signature) {
  for (const Kernel& kernel : op.kernels) {
    if (!takes(kernel, signature) || !kernel.usable(signature)) continue;
    Prepared prepared = kernel.prepare(signature);
    if (!prepared.declined) return Chosen{&kernel, std::move(prepared)};
  }
  if (can_be_widened(signature))
    if (auto chosen = choose_widened(op, signature)) return chosen;
  std::string types;
  for (const TensorType& type : signature.inputs) types += (types.empty() ? "" : ", ") + to_string(type);
  return fail(Code::not_provided, fmt::format("{} has no kernel for {}", op.name, types));
}

Result<Tensor> whole_of(Parameter& parameter, const RunContext& context) {
  if (!falls_back()) return fail(Code::invalid_argument, parameter.division_text());
  return gathered(parameter, context);
}

Result<Values> execute(const Op& op, std::span<const Value> inputs, const Attributes& attributes,
                       const RunContext& context) {
  MUSTER_TRY(const std::vector<Tensor> tensors, read_all(op, inputs, context));
  std::vector<TensorType> input_types;
  for (const Value& input : inputs) input_types.push_back(input.type());
  MUSTER_TRY(const auto plan, one_op(op, std::move(input_types), attributes, context.threads));
  std::vector<Tensor> outputs = make_outputs(op, plan->outputs, tensors);
  if (plan->chosen.kernel != nullptr) {
    std::optional<ComputingScope> computing;
    if (plan->takes_long) computing.emplace();
    MUSTER_TRY_VOID(run_watched(*plan, tensors, outputs, context));
  }
  MUSTER_TRY_VOID(keep_pieces(op, inputs, tensors));
  Values values;
  for (Tensor& output : outputs) values.emplace_back(std::move(output));
  return values;
}

}  // namespace muster::graph
