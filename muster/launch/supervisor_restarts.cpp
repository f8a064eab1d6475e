// How processes of a launcher, or all of them, are started again.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "muster/checkpoint/checkpoint.h"
#include "muster/cluster/cluster.h"
#include "muster/launch/dashboard/job_server.h"
#include "muster/launch/process.h"
#include "muster/launch/runs/run_record.h"
#include "muster/launch/supervision.h"
#include "muster/launch/verdict.h"

namespace muster::launch {
namespace {

std::string behind(const checkpoint::StepPlace& place) {
  return fmt::format("behind step {}{}", place.step,
                     place.call == 0 ? "" : fmt::format(" of call {}", place.call));
}

// How many steps a job of muster.torch.recoverable() has made, as it writes it.
std::string torch_steps(const std::string& recovery_folder) {
  constexpr std::size_t bytes_max = 64;
  const auto file = net::read_small_file(recovery_folder + "/torch/steps", bytes_max);
  return file ? file->text : std::string();
}

}  // namespace

bool Supervisor::has_work_left_besides(const Running& process) const {
  return process.spec->role != "scheduler" ||
         std::any_of(processes_.begin(), processes_.end(), [&](const Running& other) {
           return &other != &process && !other.is_service() && !other.is_over();
         });
}

// Whether it ended after the job had, which bears deaths: it had left the job well, and nothing is lost.
bool Supervisor::is_behind_the_end(const Running& process) const {
  return phase_ == Phase::running && options_.restarts_max > 0 && job_has_ended_ &&
         process.spec->role != "scheduler";
}

void Supervisor::tell_of_end_behind_the_end(const Running& process) {
  if (process.was_asked_to_end) return;
  const std::string text = fmt::format("{} (pid {}) {} when the job had ended: nothing is lost",
                                       place_of(process.spec->label, process.host), process.pid,
                                       describe_exit(*process.wait_status));
  say(text);
  note("warning", process, text);
}

// The scheduler has ended well, so all of its members have left: a process that is started again has no job.
// A script that is no scheduler, though it was started as one, keeps no log of the job.
void Supervisor::note_end_of_job() {
  const auto log = std::filesystem::path(options_.recovery_folder) / cluster::recovery_log_name;
  if (std::error_code ignored; !std::filesystem::exists(log, ignored)) return;
  job_has_ended_ = true;
  for (Running& process : processes_) {
    if (process.restarts.restarts() == 0 || process.is_over()) continue;
    process.restart_at.reset();
    if (!process.has_ended()) late_end_at_ = options_.clock.now() + options_.settle;
  }
}

// Who was started again in the moment in which the job ended; all others end by themselves.
void Supervisor::end_what_came_too_late() {
  if (!late_end_at_ || options_.clock.now() < *late_end_at_ || phase_ != Phase::running) return;
  late_end_at_.reset();
  for (Running& process : processes_) {
    if (process.is_service() || process.restarts.restarts() == 0 || process.has_ended()) continue;
    if (!process.was_asked_to_end)
      say(fmt::format("{} (pid {}) is ended: the job had ended when it came",
                      place_of(process.spec->label, process.host), process.pid));
    process.crew->signal(index_of(process), process.was_asked_to_end ? SIGKILL : SIGTERM);
    process.was_asked_to_end = true;
    late_end_at_ = options_.clock.now() + options_.grace;
  }
}

// Returns whether the process will be started again.
bool Supervisor::plan_restart(Running& process) {
  if (phase_ != Phase::running || options_.restarts_max == 0 || options_.restarts_group) return false;
  if (!is_restartable(process.spec->role, *process.wait_status) || !has_work_left_besides(process))
    return false;
  const std::string end = describe_exit(*process.wait_status);
  const checkpoint::Storage& storage = checkpoint::real_storage();
  const auto newest = checkpoint::newest_point_below(options_.recovery_folder, storage);
  const auto place = checkpoint::step_of_process(options_.recovery_folder, process.pid, storage);
  const std::string last = place ? behind(*place) : "";
  const auto delay = process.restarts.after(
      {.failure = end,
       .place = last,
       .progress = (newest ? to_string(*newest) : "") + last + torch_steps(options_.recovery_folder)});
  if (!delay) return false;
  const auto seconds = std::chrono::duration<double>(*delay).count();
  const std::string text = fmt::format("{} (pid {}) {}: starting it again{} ({} of {})",
                                       place_of(process.spec->label, process.host), process.pid, end,
                                       *delay == Duration::zero() ? "" : fmt::format(" in {:g} s", seconds),
                                       process.restarts.restarts(), options_.restarts_max);
  say(text);
  note("restarted", process, text);
  hint_at_memory(process);
  process.restart_at = options_.clock.now() + *delay;
  return true;
}

// A job is begun anew once: who comes back goes on with it.
ProcessSpec Supervisor::spec_of_return(ProcessSpec spec, std::size_t restarts) {
  spec.environment.insert_or_assign("MUSTER_RESTART_COUNT", std::to_string(restarts));
  if (spec.environment.contains("MS_ROLE"))
    spec.environment.insert_or_assign("MUSTER_FRESH", std::string("0"));
  return spec;
}

void Supervisor::restart_what_is_due() {
  for (Running& process : processes_) {
    if (!process.restart_at || options_.clock.now() < *process.restart_at) continue;
    process.restart_at.reset();
    process.last_wait_status = *process.wait_status;
    process.wait_status.reset();
    outputs_.forget(index_of(process));
    process.crew->start(index_of(process), spec_of_return(*process.spec, process.restarts.restarts()));
  }
}

// On the page of the job.
void Supervisor::restart_what_is_asked_for() {
  for (JobServer* const server : options_.servers)
    if (const auto rank = server->take_restart()) restart_asked(*rank);
}

// Its process is killed, and started again as any that dies.
void Supervisor::restart_asked(std::uint32_t rank) {
  const std::string label = fmt::format("worker {}", rank);
  const auto process = std::ranges::find_if(processes_, [&](const Running& each) {
    return each.spec->role == "worker" && each.spec->label == label;
  });
  std::string refusal;
  if (process == processes_.end())
    refusal = "this launcher has not started it";
  else if (phase_ != Phase::running || process->has_ended())
    refusal = "it does not run now";
  else if (process->restarts.restarts() >= options_.restarts_max)
    refusal = fmt::format("it has been started again {} times, as often as --max-restarts allows",
                          process->restarts.restarts());
  if (!refusal.empty()) {
    const std::string text = fmt::format("{} is not restarted: {}", label, refusal);
    say(text);
    if (options_.record != nullptr) options_.record->note("warning", label, text);
    return;
  }
  say(fmt::format("{} (pid {}) is killed: its restart was asked for on the page", label, process->pid));
  process->crew->signal(index_of(*process), SIGKILL);
}

// As torchrun does: the first failure ends all, and all begin again. Returns whether they will.
bool Supervisor::plan_group_restart(Running& process) {
  if (phase_ != Phase::running || !options_.restarts_group) return false;
  const std::string who = place_of(process.spec->label, process.host);
  if (group_restarts_ == options_.restarts_max) {
    say(fmt::format("all processes have been started again {} times, as often as --max-restarts allows",
                    group_restarts_));
    return false;
  }
  ++group_restarts_;
  const std::string text =
      fmt::format("{} (pid {}) {}: ending all processes and starting them again ({} of {})", who, process.pid,
                  describe_exit(*process.wait_status), group_restarts_, options_.restarts_max);
  say(text);
  note("restarted", process, text);
  hint_at_memory(process);
  enter(Phase::regrouping, 0);
  deadline_ = options_.clock.now() + options_.grace;
  signal_all(SIGTERM, true);
  return true;
}

void Supervisor::restart_group_when_ended() {
  const bool have_ended = std::all_of(processes_.begin(), processes_.end(),
                                      [](const Running& process) { return process.has_ended(); });
  if (phase_ != Phase::regrouping || !have_ended) return;
  phase_ = Phase::running;
  for (Running& process : processes_) {
    process.last_wait_status = *process.wait_status;
    process.wait_status.reset();
    process.was_asked_to_end = false;
    outputs_.forget(index_of(process));
  }
  for (const bool is_service : {true, false})
    for (Running& process : processes_)
      if (process.is_service() == is_service && phase_ == Phase::running)
        process.crew->start(index_of(process), spec_of_group(*process.spec));
}

// torchrun's variables, which scripts of its users read.
ProcessSpec Supervisor::spec_of_group(ProcessSpec spec) const {
  if (!options_.restarts_group) return spec;
  spec.environment.insert_or_assign("TORCHELASTIC_RESTART_COUNT", std::to_string(group_restarts_));
  spec.environment.insert_or_assign("TORCHELASTIC_MAX_RESTARTS", std::to_string(options_.restarts_max));
  return spec;
}

}  // namespace muster::launch
