#include "muster/train/run_context.h"

#include <cstring>
#include <map>
#include <optional>

#include "muster/train/aborted_step.h"
#include "muster/train/call_context.h"
#include "muster/train/context.h"
#include "muster/train/front_end.h"
#include "muster/train/group_communicator.h"
#include "muster/train/job.h"
#include "muster/train/pipeline_group.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/process.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

struct AllReduce {
  const void* in;
  void* out;
  std::size_t count;
  DType dtype;
  graph::Reduction reduction;
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
  const auto reduce = [&](collective::Communicator& group) {
    return group.all_reduce(given.in, given.out, given.count, given.dtype, to_collective(given.reduction));
  };
  MUSTER_TRY_VOID(
      call_in_body([&] { return session.recovery().explicit_collective("all_reduce", stages, reduce); }));
  // What the rest of a void step computes with.
  if (step_is_aborted() && given.in != given.out)
    std::memcpy(given.out, given.in, given.count * size_bytes(given.dtype));
  return {};
}

}  // namespace

// `graph` knows no collective and `collective` no tensor: this joins them.
class SessionCommunicator final : public graph::Communicator {
 public:
  std::uint32_t rank() const override { return Session::current()->membership().rank(); }
  std::uint32_t size() const override { return Session::current()->membership().world_size(); }
  Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                      graph::Reduction reduction) override {
    return explicit_all_reduce({}, {in, out, count, dtype, reduction});
  }
  bool shares_memory() const override { return Session::current()->collectives().shares_memory(); }
  std::shared_ptr<Buffer> shared_buffer(std::size_t size_bytes) override {
    return Session::current()->collectives().shared_buffer(size_bytes);
  }
};

// Reductions in a placed data-parallel job: over the workers of the same stage. Their group is formed before
// the first of them, by all workers.
class StageCommunicator final : public graph::Communicator {
 public:
  explicit StageCommunicator(std::uint32_t stages) : stages_(stages) {}
  std::uint32_t rank() const override { return Session::current()->membership().rank() / stages_; }
  std::uint32_t size() const override { return Session::current()->membership().world_size() / stages_; }
  Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                      graph::Reduction reduction) override {
    return explicit_all_reduce(stages_, {in, out, count, dtype, reduction});
  }
  bool shares_memory() const override { return Session::current()->collectives().shares_memory(stages_); }
  std::shared_ptr<Buffer> shared_buffer(std::size_t size_bytes) override {
    return Session::current()->collectives().shared_buffer(size_bytes, stages_);
  }

 private:
  std::uint32_t stages_;
};

// Kept: plans know by the address whose memory they hold, and that of an epoch that is over is memory like
// any other.
struct JobCommunicators {
  std::map<std::uint64_t, SessionCommunicator> of_epochs;
  std::map<std::pair<std::uint64_t, std::uint32_t>, StageCommunicator> of_stages;  // by epoch and stages
  // By their number: a callback may run another network, divided otherwise, between steps of this one.
  std::map<std::uint32_t, PipelineGroup> of_pipelines;
};

namespace {

JobCommunicators& communicators() {
  JobCommunicators*& made = process().communicators;
  if (made == nullptr) made = new JobCommunicators;
  return *made;
}

SessionCommunicator& world() { return communicators().of_epochs[Session::current()->membership().epoch()]; }

bool reduces_over_copies(const PipelineLayout& now) {
  return now.divides() && context().parallel_mode == ParallelMode::data_parallel;
}

// What reductions take part in: all workers, or in a placed job the same stage of all its copies; null where
// there is one copy only.
graph::Communicator* reductions(const PipelineLayout& now) {
  Session* const session = Session::current();
  if (session == nullptr) return nullptr;
  if (!reduces_over_copies(now)) return &world();
  if (now.replicas == 1) return nullptr;
  return &communicators()
              .of_stages.try_emplace({session->membership().epoch(), now.stages}, now.stages)
              .first->second;
}

// All workers come here before their first step, also those that reduce nothing.
Result<> form_groups() {
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  if (!reduces_over_copies(now) || now.replicas == 1) return {};
  if (step_is_aborted()) return {};
  const auto formed = Session::current()->collectives().stage_group(now.stages);
  return formed ? Result<>{} : or_abort(fail(formed.error()));
}

graph::Communicator* stages_of(const PipelineLayout& now) {
  if (!now.divides()) return nullptr;
  std::map<std::uint32_t, PipelineGroup>& made = communicators().of_pipelines;
  const PipelineGroup::Range range{.first = now.replica * now.stages, .size = now.stages};
  const auto found = made.find(now.stages);
  if (found != made.end()) return &found->second;
  const auto added = made.try_emplace(
      now.stages, Session::current()->membership().rank(), range,
      [] { return Session::current()->collectives().communicator(); },
      [](Error error) { return Session::current()->membership().verdict(std::move(error)); });
  return &added.first->second;
}

}  // namespace

graph::Communicator* stages() { return stages_of(pipeline_layout().value_or(PipelineLayout{})); }

// Every run asks, each op of eager mode too.
Result<graph::RunContext> tracing_context() {
  Session* const session = Session::current();
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  graph::RunContext made{.seed = seed(),
                         .communicator = reductions(now),
                         .stages = stages_of(now),
                         .threads = threads(),
                         .interrupted = &look_for_interruption};
  if (session == nullptr) return made;
  // The samples of a batch are dealt out in turn, as data::row_order does. The workers of a replica have them
  // together.
  made.first_sample = made.stages != nullptr ? now.replica : session->membership().rank();
  made.sample_stride = made.stages != nullptr ? now.replicas : session->membership().world_size();
  return made;
}

Result<graph::RunContext> call_context() {
  MUSTER_TRY(graph::RunContext made, tracing_context());
  made.step = process().runs++;
  return made;
}

Result<graph::RunContext> run_context() {
  MUSTER_TRY_VOID(form_groups());
  return call_context();
}

void count_runs_from(std::uint64_t step) { process().runs = step; }
std::uint64_t counted_runs() { return process().runs; }

}  // namespace muster::train
