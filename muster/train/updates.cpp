#include "muster/train/updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "muster/nn/nn.h"
#include "muster/train/divided_parameters.h"
#include "muster/train/explain.h"
#include "muster/train/job.h"
#include "muster/train/parameter_servers.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/process.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t elements_hashed = 64;  // of each parameter: what drifts apart does so everywhere
constexpr std::int64_t far_apart = 1024;     // steps between reports, once a training is well under way

// 1, 8, 64, 512, and then every 1,024th: mistakes are in a script from its first step.
std::int64_t due_after(std::int64_t step) {
  for (const std::int64_t early : {1, 8, 64, 512})
    if (step < early) return early;
  return (step / far_apart + 1) * far_apart;
}

// Workers have other pieces of a divided parameter. They fit together where all are of one whole: divided
// alike, and begun with the same seed, or with files of one save.
std::uint32_t hash_of_division(const graph::Parameter& parameter) {
  const graph::TensorLayout& layout = parameter.share()->layout;
  const std::string save = parameter.piece_source() ? parameter.piece_source()->save : std::string();
  return static_cast<std::uint32_t>(
      hash_text(fmt::format("{} {} {} {}", to_string(*layout.mesh), to_string(layout), seed(), save)));
}

bool divides_network() { return pipeline_layout().value_or(PipelineLayout{.stages = 2}).divides(); }

// Null where no other worker could say the same: alone, in a forked child.
Session* comparing_session() {
  Session* const session = Session::current();
  if (session == nullptr || session->membership().in_forked_child()) return nullptr;
  return session->membership().world_size() == 1 ? nullptr : session;
}

// Stages of a mesh have other parameters each; what the workers of one of them read is the same.
bool compares_batches_alone() { return context().mesh_stages > 1 && divides_network(); }

// A placed network has other parameters in each worker; one beside it of which nothing is placed has the
// same.
bool is_placed(const WatchedOptimizer& watched) {
  const auto has_home = [](const auto& each) {
    const graph::ParameterPtr parameter = each.lock();
    return parameter != nullptr && parameter->home();
  };
  return divides_network() && std::ranges::any_of(watched.parameters, has_home);
}

// In front of the parameters, which go apart because of it.
void add_batch(cluster::ParameterReport& report) {
  const std::optional<std::uint32_t>& hash = process().updates.batch_hash;
  if (!hash) return;
  report.hashes.insert(report.hashes.begin(), *hash);
  if (!report.names.empty()) report.names.insert(report.names.begin(), std::string(cluster::batch_name));
}

cluster::ParameterReport report_of(const WatchedOptimizer& watched, bool with_names) {
  cluster::ParameterReport report{.step = static_cast<std::uint64_t>(watched.step),
                                  .reduces = process().updates.has_reduced};
  std::uint64_t names = 0;
  const std::size_t count = watched.parameters.size();
  const std::size_t hashes = std::min(count, cluster::parameter_hashes_max - 1);  // beside the batch's
  report.hashes.resize(hashes);
  for (std::size_t i = 0; i < count; ++i) {
    const graph::ParameterPtr parameter = watched.parameters[i].lock();
    if (parameter == nullptr || parameter->absence() != nullptr || !is_equal_in_workers(*parameter)) continue;
    const std::size_t at = i * hashes / count;
    const std::uint32_t hash =
        parameter->share() ? hash_of_division(*parameter)
                           : static_cast<std::uint32_t>(hash_of_sample(parameter->materialize(seed())));
    report.hashes[at] = report.hashes[at] * 31 + hash;
    names = hash_text(parameter->name(), names);
    if (with_names && report.names.size() <= at) report.names.resize(at + 1, parameter->name());
  }
  const std::uint64_t of_process[] = {watched.number, watched.trainings};
  report.series = hash_bytes(of_process, sizeof of_process, names);
  add_batch(report);
  return report;
}

// Each worker that reads says what the one hash is of, as rank 0 may be none of them.
cluster::ParameterReport report_of_batch(const WatchedOptimizer& watched, std::uint32_t hash) {
  const std::uint64_t of_process[] = {watched.number, watched.trainings};
  return {.series = hash_bytes(of_process, sizeof of_process),
          .step = static_cast<std::uint64_t>(watched.step),
          .reduces = process().updates.has_reduced,
          .hashes = {hash},
          .names = {std::string(cluster::batch_name)}};
}

// What was read is reported once: later only some of the workers may have read it, since others came back.
void forget_sources(const WatchedOptimizer& watched) {
  for (const auto& each : watched.parameters)
    if (const graph::ParameterPtr parameter = each.lock()) parameter->set_piece_source({});
}

// The step that `watched` has done; nothing where it has no elements yet.
std::optional<std::int64_t> step_of(const WatchedOptimizer& watched) {
  if (watched.calls != nullptr) return *watched.calls;
  const graph::ParameterPtr step = watched.global_step.lock();
  if (step == nullptr || step->absence() != nullptr || !step->materialized()) return std::nullopt;
  return *step->storage().data<std::int32_t>();
}

// What was gone back behind is done once more: its reports must not meet those of the first time.
void follow(WatchedOptimizer& watched, std::int64_t step) {
  if (step < watched.step) {
    ++watched.trainings;
    watched.due = due_after(step);
  }
  watched.step = step;
}

void report(const WatchedOptimizer& watched, Membership& membership) {
  if (compares_batches_alone()) {
    const std::optional<std::uint32_t>& hash = process().updates.batch_hash;
    if (hash) membership.report_parameters(report_of_batch(watched, *hash));
  } else if (!is_placed(watched)) {
    membership.report_parameters(report_of(watched, membership.rank() == 0));
    forget_sources(watched);
  }
}

void look(WatchedOptimizer& watched, Session& session) {
  const auto step = step_of(watched);
  if (!step) return;
  follow(watched, *step);
  if (*step < watched.due) return;
  if (*step == watched.due) report(watched, session.membership());
  watched.due = due_after(*step);
}

void begin_epoch_if_new(std::uint64_t epoch) {
  UpdateWatch& updates = process().updates;
  if (std::exchange(updates.epoch, epoch) == epoch) return;
  for (WatchedOptimizer& watched : updates.optimizers) {
    watched.trainings = 0;
    watched.step = 0;
    watched.due = due_after(step_of(watched).value_or(0));
  }
}

void note_seen(const nn::Optimizer& optimizer) {
  auto& seen = process().updates.seen;
  std::erase_if(seen, [](const SeenOptimizer& each) { return each.global_step.expired(); });
  const auto is_it = [&](const SeenOptimizer& each) {
    return each.global_step.lock() == optimizer.global_step();
  };
  if (std::ranges::any_of(seen, is_it)) return;
  const auto& parameters = optimizer.updated_parameters();
  seen.push_back(
      {.global_step = optimizer.global_step(), .parameters = {parameters.begin(), parameters.end()}});
}

std::int64_t count_in(const graph::ParameterPtr& step) {
  const bool is_here = step != nullptr && step->absence() == nullptr && step->materialized();
  return is_here ? *step->storage().data<std::int32_t>() : 0;
}

// Null where a construct in Python counts no steps and the job recovers: its calls are in no recovery point,
// and who came back would be compared with others at another step.
WatchedOptimizer* watched(const nn::Optimizer& optimizer, bool counts, Session& session) {
  UpdateWatch& updates = process().updates;
  std::erase_if(updates.optimizers, [](const auto& each) { return each.global_step.expired(); });
  const auto known = std::ranges::find_if(updates.optimizers, [&](const auto& each) {
    return each.global_step.lock() == optimizer.global_step();
  });
  if (known != updates.optimizers.end()) return &*known;
  if (!counts && session.membership().recovers()) return nullptr;
  WatchedOptimizer made{.global_step = optimizer.global_step(), .number = updates.count++};
  for (const graph::ParameterPtr& parameter : optimizer.updated_parameters())
    made.parameters.push_back(parameter);
  if (!counts) made.calls = std::make_shared<std::int64_t>(0);
  made.due = due_after(step_of(made).value_or(0));
  updates.optimizers.push_back(std::move(made));
  return &updates.optimizers.back();
}

// One of now, or one in each run of the plan.
void count_call(const std::shared_ptr<std::int64_t>& calls) {
  graph::Trace* const trace = graph::Trace::current();
  if (trace == nullptr) {
    ++*calls;
    return;
  }
  trace->before_run([calls](bool /*is_first*/) -> Result<> {
    ++*calls;
    return {};
  });
}

void observe(const nn::Optimizer& optimizer, bool counts) {
  require_init("an optimizer").value();
  if (counts) process().numbers.global_step = optimizer.global_step();
  note_seen(optimizer);
  if (world_size() > 1) divide_optimizer(optimizer).value();  // a Model has done so before
  Session* const session = comparing_session();
  if (session == nullptr) return;
  process().updates.look_at = 0;
  const WatchedOptimizer* const found = watched(optimizer, counts, *session);
  if (!counts && found != nullptr && found->calls != nullptr) count_call(found->calls);
}

}  // namespace

Result<> require_init(std::string_view what) {
  const bool has_joined = Session::current() != nullptr || process().trains_alone;
  if (has_joined || explain_mode() != ExplainMode::off) return {};
  const auto role = real_environment().get("MS_ROLE");
  if (!role) return {};
  return fail(
      Code::invalid_argument,
      fmt::format("{} is called in a process of a job (MS_ROLE={}) that has not joined it: each process "
                  "would train alone. Call muster.init() (mindspore.communication.init()) before it; "
                  "to train alone on purpose, unset MS_ROLE",
                  what, *role));
}

std::uint64_t hash_of_sample(const Tensor& values, std::uint64_t seed) {
  const std::size_t size = size_bytes(values.dtype());
  const auto count = static_cast<std::size_t>(values.elements());
  const std::size_t taken = std::min(count, elements_hashed);
  std::byte sample[elements_hashed * sizeof(double)];
  for (std::size_t i = 0; i < taken; ++i)
    std::memcpy(sample + i * size, values.bytes() + i * count / taken * size, size);
  return hash_bytes(sample, taken * size, seed);
}

std::map<graph::ParameterPtr, std::int64_t> steps_of_optimizers() {
  std::map<graph::ParameterPtr, std::int64_t> steps;
  for (const SeenOptimizer& each : process().updates.seen)
    if (const graph::ParameterPtr step = each.global_step.lock()) steps[step] = count_in(step);
  return steps;
}

std::int64_t steps_of_all_optimizers() {
  std::int64_t sum = 0;
  for (const SeenOptimizer& each : process().updates.seen) sum += count_in(each.global_step.lock());
  return sum;
}

bool has_been_updated(const graph::Parameter& parameter) {
  return std::ranges::any_of(process().updates.seen, [&](const SeenOptimizer& each) {
    const auto is_it = [&](const auto& updated) { return updated.lock().get() == &parameter; };
    return count_in(each.global_step.lock()) > 0 && std::ranges::any_of(each.parameters, is_it);
  });
}

void note_batch(std::span<const Tensor> batch) {
  std::optional<std::uint32_t>& noted = process().updates.batch_hash;
  noted.reset();
  if (!context().shares_batch || batch.empty()) return;
  if (context().mesh_stages != 1 && !divides_network()) return;
  std::uint64_t hash = 0;
  for (const Tensor& column : batch) {
    if (column.absence() != nullptr) return;  // another worker reads
    hash = hash_of_sample(column, hash);
  }
  noted = static_cast<std::uint32_t>(hash);
}

void watch_updates() { nn::set_update_observer(&observe); }

void look_for_updates() {
  UpdateWatch& updates = process().updates;
  updates.look_at = never;
  Session* const session = updates.optimizers.empty() ? nullptr : comparing_session();
  if (session == nullptr) return;
  begin_epoch_if_new(session->membership().epoch());
  std::int64_t soonest = far_apart;
  for (WatchedOptimizer& watched : updates.optimizers) {
    look(watched, *session);
    soonest = std::min(soonest, watched.due - watched.step);
  }
  updates.look_at = process().runs + static_cast<std::uint64_t>(std::max<std::int64_t>(soonest, 1));
}

}  // namespace muster::train
