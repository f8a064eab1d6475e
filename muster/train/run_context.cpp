#include "muster/train/run_context.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "muster/train/aborted_step.h"
#include "muster/train/call_context.h"
#include "muster/train/context.h"
#include "muster/train/front_end.h"
#include "muster/train/job.h"
#include "muster/train/loss_watch.h"
#include "muster/train/named_groups.h"
#include "muster/train/pipeline_group.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/process.h"
#include "muster/train/profile_recorder.h"
#include "muster/train/session.h"
#include "muster/train/step_lines.h"
#include "muster/train/updates.h"

namespace muster::train {
namespace {

struct AllReduce {
  const void* in;
  void* out;
  std::size_t count;
  DType dtype;
  Reduction reduction;
};

// A call that may be made twice needs its input twice.
Result<> explicit_all_reduce(std::optional<std::uint32_t> stages, AllReduce given) {
  Session& session = *Session::current();
  std::vector<std::byte> kept;
  const auto* bytes = static_cast<const std::byte*>(given.in);
  if (given.in == given.out && session.membership().recovers() &&
      (!session.recovery().calls().inside || in_body())) {
    kept.assign(bytes, bytes + given.count * size_bytes(given.dtype));
    given.in = kept.data();
  }
  process().updates.has_reduced = true;
  const auto reduce = [&](Communicator& group) {
    return group.all_reduce(given.in, given.out, given.count, given.dtype, given.reduction);
  };
  MUSTER_TRY_VOID(
      call_in_body([&] { return session.recovery().explicit_collective("all_reduce", stages, reduce); }));
  // What the rest of a void step computes with.
  if (step_is_aborted() && given.in != given.out)
    std::memcpy(given.out, given.in, given.count * size_bytes(given.dtype));
  return {};
}

// A call whose output is no input of it, and may be made twice.
Result<> explicit_call(std::string_view what, std::optional<std::uint32_t> stages, std::span<std::byte> out,
                       const Collectives::GroupCall& call) {
  Session& session = *Session::current();
  MUSTER_TRY_VOID(call_in_body([&] { return session.recovery().explicit_collective(what, stages, call); }));
  zero_if_aborted(out);
  return {};
}

}  // namespace

// All workers, or in a placed job those of the same stage, whose group is formed before the first reduction,
// by all. What it adds to the group of an epoch: a call that loses its epoch is made again in the next one.
class RecoveringGroup final : public Communicator {
 public:
  explicit RecoveringGroup(std::optional<std::uint32_t> stages) : stages_(stages) {}
  std::uint32_t rank() const override { return membership().rank() / stages_.value_or(1); }
  std::uint32_t size() const override { return membership().world_size() / stages_.value_or(1); }
  Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                      Reduction reduction) override {
    return explicit_all_reduce(stages_, {in, out, count, dtype, reduction});
  }
  using Communicator::all_gather;
  Result<> all_gather(const void* in, void* out, std::size_t size_bytes) override {
    return explicit_call("all_gather", stages_, bytes_at(out, size() * size_bytes),
                         [&](Communicator& group) { return group.all_gather(in, out, size_bytes); });
  }
  Result<> reduce_scatter(const void* in, void* out, std::size_t count, DType dtype,
                          Reduction reduction) override {
    return explicit_call(
        "reduce_scatter", stages_, bytes_at(out, count * size_bytes(dtype)),
        [&](Communicator& group) { return group.reduce_scatter(in, out, count, dtype, reduction); });
  }
  Result<> reduce(const void* in, void* out, std::size_t count, DType dtype, Reduction reduction,
                  std::uint32_t root) override {
    return explicit_call(
        "reduce", stages_, bytes_at(out, count * size_bytes(dtype)),
        [&](Communicator& group) { return group.reduce(in, out, count, dtype, reduction, root); });
  }
  Result<> broadcast(void* data, std::size_t size_bytes, std::uint32_t root) override {
    return explicit_call("broadcast", stages_,
                         {},  // what it holds is what the rest of a void step computes with
                         [&](Communicator& group) { return group.broadcast(data, size_bytes, root); });
  }
  Result<> all_to_all(SentPieces in, ReceivedPieces out) override {
    const Collectives::GroupCall call = [&](Communicator& group) { return group.all_to_all(in, out); };
    MUSTER_TRY_VOID(explicit_call("all_to_all", stages_, {}, call));
    for (const auto piece : out) zero_if_aborted(piece);
    return {};
  }
  bool shares_memory() const override { return Session::current()->collectives().shares_memory(stages_); }
  Result<std::shared_ptr<std::byte>> shared_buffer(std::size_t size_bytes) override {
    return Session::current()->collectives().shared_buffer(size_bytes, stages_);
  }

 private:
  static Membership& membership() { return Session::current()->membership(); }

  std::optional<std::uint32_t> stages_;
};

// Kept: plans know by the address whose memory they hold, and that of an epoch that is over is memory like
// any other.
struct JobCommunicators {
  std::map<std::pair<std::uint64_t, std::optional<std::uint32_t>>, RecoveringGroup> of_epochs;  // and stages
  // By their number: a callback may run another network, divided otherwise, between steps of this one.
  std::map<std::uint32_t, PipelineGroup> of_pipelines;
};

namespace {

JobCommunicators& communicators() {
  JobCommunicators*& made = process().communicators;
  if (made == nullptr) made = new JobCommunicators;
  return *made;
}

RecoveringGroup& group_of(std::optional<std::uint32_t> stages) {
  const std::uint64_t epoch = Session::current()->membership().epoch();
  return communicators().of_epochs.try_emplace({epoch, stages}, stages).first->second;
}

bool reduces_over_copies(const PipelineLayout& now) {
  return now.divides() && context().parallel_mode == ParallelMode::data_parallel;
}

// What reductions take part in: all workers, or in a placed job the same stage of all its copies; null where
// there is one copy only.
Communicator* reductions(const PipelineLayout& now) {
  if (Session::current() == nullptr) return nullptr;
  if (!reduces_over_copies(now)) return &group_of({});
  return now.replicas == 1 ? nullptr : &group_of(now.stages);
}

// All workers come here before their first step, also those that reduce nothing.
Result<> form_groups() {
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  if (!reduces_over_copies(now) || now.replicas == 1) return {};
  if (step_is_aborted()) return {};
  const auto formed = Session::current()->collectives().stage_group(now.stages);
  return formed ? Result<>{} : or_abort(fail(formed.error()));
}

Communicator* stages_of(const PipelineLayout& now) {
  if (!now.divides()) return nullptr;
  std::map<std::uint32_t, PipelineGroup>& made = communicators().of_pipelines;
  const PipelineGroup::Range range{.first = now.pipeline * now.stages, .size = now.stages};
  const auto found = made.find(now.stages);
  if (found != made.end()) return &found->second;
  const auto added = made.try_emplace(
      now.stages, Session::current()->membership().rank(), range,
      [] { return Session::current()->collectives().communicator(); },
      [](Error error) { return Session::current()->membership().verdict(std::move(error)); });
  return &added.first->second;
}

}  // namespace

graph::RunObserver* observer() {
  if (graph::RunObserver* const recorder = process().profile.active.load(std::memory_order_relaxed))
    return recorder;
  if (StepLines* const lines = process().step_lines; lines != nullptr && lines->is_recording()) return lines;
  return process().cost_watch.load(std::memory_order_relaxed);
}

Communicator* stages() { return stages_of(pipeline_layout().value_or(PipelineLayout{})); }

// Every run asks, each op of eager mode too.
Result<graph::RunContext> tracing_context() {
  Session* const session = Session::current();
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  graph::RunContext made{.seed = seed(),
                         .communicator = reductions(now),
                         .group = &find_named_group,
                         .stages = stages_of(now),
                         .threads = threads(),
                         .observer = observer(),
                         .interrupted = &look_for_interruption};
  if (session == nullptr || context().shares_batch) return made;
  // The samples of a batch are dealt out in turn, as data::row_order does. The workers of a replica have them
  // together.
  made.first_sample = made.stages != nullptr ? now.replica : session->membership().rank();
  made.sample_stride = made.stages != nullptr ? now.replicas : session->membership().world_size();
  return made;
}

Result<graph::RunContext> call_context() {
  if (process().runs >= process().updates.look_at) look_for_updates();
  note_counted_steps();
  MUSTER_TRY(graph::RunContext made, tracing_context());
  made.step = process().runs++;
  return made;
}

Result<graph::RunContext> run_context() {
  MUSTER_TRY_VOID(form_groups());
  return call_context();
}

void count_runs_from(std::uint64_t step) {
  process().runs = step;
  process().updates.look_at = 0;
}
std::uint64_t counted_runs() { return process().runs; }

}  // namespace muster::train
