#include "muster/train/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "muster/base/cores.h"
#include "muster/graph/random_streams.h"
#include "muster/train/call_context.h"
#include "muster/train/cost_watch.h"
#include "muster/train/explain.h"
#include "muster/train/found_jobs.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/predictions.h"
#include "muster/train/process.h"
#include "muster/train/profile.h"
#include "muster/train/ps_context.h"
#include "muster/train/run_context.h"
#include "muster/train/served_parameters.h"
#include "muster/train/session.h"
#include "muster/train/updates.h"

namespace muster::train {
namespace {

int choose_threads() {
  if (const auto chosen = real_environment().get("OMP_NUM_THREADS"))
    if (const int count = std::atoi(chosen->c_str()); count > 0) return count;
  Session* const session = Session::current();
  const std::uint32_t workers =
      session == nullptr ? explained_workers() : session->membership().workers_on_its_cores();
  return std::max(1, allowed_cores() / static_cast<int>(workers));
}

std::optional<Failure> serve(const cluster::Settings& settings, const InitOptions& options) {
  log::set_name("scheduler");
  return cluster::run_scheduler(
      settings,
      {.seed = {}, .interrupted = options.interrupted, .holders = [&settings](std::uint64_t job_id) {
         return holders_of(settings.recovery_path, job_id);
       }});
}

Result<const Membership*> require_membership(std::string_view call) {
  Session* const session = Session::current();
  if (session == nullptr)
    return fail(Code::invalid_argument,
                fmt::format("{}: this process is in no cluster; call init() first", call));
  if (session->membership().in_forked_child())
    return fail(Code::refused, fmt::format("{}: a forked child is not the worker that its parent is", call));
  return &session->membership();
}

bool trains_alone() { return process().trains_alone || explain_mode() != ExplainMode::off; }

// `alone`: the answer in a process that is the only worker.
Result<std::uint32_t> ask(std::string_view call, std::uint32_t (Membership::*get)() const,
                          std::uint32_t alone) {
  if (trains_alone()) return alone;
  return require_membership(call).map([get](const Membership* membership) { return (membership->*get)(); });
}

Result<> init_alone(const Environment& environment) {
  MUSTER_TRY(const std::vector<std::string> warnings, cluster::check_alone(environment));
  for (const std::string& warning : warnings) log::warning(warning);
  process().trains_alone = true;
  return {};
}

// What `muster profile` and `muster run --profile` ask of a program; a script's front end does it itself.
class ProfileOfProgram {
 public:
  ProfileOfProgram() {
    if (!folder_) return;
    report_use(real_environment());
    ::unsetenv("MUSTER_PROFILE");  // no processes of this one record, too
    start_profile().value();
    is_open_ = true;
    std::atexit([] {  // destructors do not run where the body calls exit()
      if (is_open_)
        log::warning(
            "the profile is lost: the program called exit() within train::run; return from its function "
            "instead");
    });
  }
  ProfileOfProgram(const ProfileOfProgram&) = delete;
  ProfileOfProgram& operator=(const ProfileOfProgram&) = delete;
  ~ProfileOfProgram() {
    if (!folder_) return;
    is_open_ = false;
    const auto path = stop_profile(*folder_);
    if (!path)
      log::warning("the profile is lost: " + path.error().message);
    else if (rank_ == 0)
      fmt::print("profile of rank 0 written; the tables: muster profile {}\n", *folder_);
  }

 private:
  const std::optional<std::string> folder_ = real_environment().get("MUSTER_PROFILE");
  const std::uint32_t rank_ = rank();
  static inline bool is_open_ = false;
};

int fail_with(const std::string& reason, int exit_code) {
  log::error(reason);
  note_reason(reason);
  return exit_code;
}

}  // namespace

Result<Role, Failure> init(const Environment& environment, const InitOptions& options) {
  if (Session::current() != nullptr || process().trains_alone) return process().role;
  graph::set_context_provider(&call_context);
  watch_places();
  watch_served_parameters();
  watch_updates();
  watch_numbers(environment);
  if (explain_mode() != ExplainMode::off) return Role::worker;
  if (cluster::is_alone(environment)) {
    const Result<> alone = init_alone(environment);
    if (!alone) return tl::unexpected(cluster::failure_from(alone.error()));
    watch_costs();
    return Role::worker;
  }
  auto settings = cluster::read_settings(environment);
  if (!settings) return tl::unexpected(cluster::failure_from(settings.error()));
  settings->security = chosen_security(settings->security, ps_context());
  for (const std::string& note : settings->notes) log::info(note);
  for (const std::string& warning : settings->warnings) log::warning(warning);
  auto failure = settings->role == Role::scheduler ? serve(*settings, options)
                                                   : Session::open(*settings, options.interrupted);
  if (failure) return tl::unexpected(*std::move(failure));
  process().choices.threads = 0;  // anew: now it is known how many workers share the cores
  process().role = settings->role;
  if (process().role == Role::worker) watch_costs();
  return process().role;
}

int run(const std::function<void()>& body) {
  const auto role = init();
  if (!role) return fail_with(role.error().message, role.error().exit_code);
  if (*role != Role::worker) return 0;
  const ProfileOfProgram profile;
  try {
    body();
    return 0;
  } catch (const std::exception& exception) {
    const auto failure = job_failure();
    return fail_with(exception.what(), failure ? failure->exit_code : 1);
  } catch (...) {
    return fail_with("the program threw what is no std::exception", 1);
  }
}

Result<std::uint32_t> get_rank() { return ask("get_rank", &Membership::rank, 0); }
Result<std::uint32_t> get_group_size() {
  return ask("get_group_size", &Membership::world_size, explained_workers());
}
Result<std::uint32_t> get_local_rank() { return ask("get_local_rank", &Membership::local_rank, 0); }
Result<std::uint32_t> get_local_rank_size() { return ask("get_local_rank_size", &Membership::local_size, 1); }

// A forked child is no worker: it gets the error of get_rank(), not its parent's rank.
std::uint32_t rank() { return Session::current() == nullptr ? 0 : get_rank().value(); }
std::uint32_t world_size() {
  return Session::current() == nullptr ? explained_workers() : get_group_size().value();
}

std::optional<Failure> job_failure() {
  Session* const session = Session::current();
  return session == nullptr ? std::nullopt : session->membership().failure();
}

bool job_recovers() {
  Session* const session = Session::current();
  return session != nullptr && session->membership().recovers();
}

void note_reason(const std::string& reason) {
  if (Session* const session = Session::current()) session->membership().note_reason(reason);
}

void leave_job(int exit_status) {
  if (Session* const session = Session::current()) session->leave(exit_status);
}

std::uint64_t seed() {
  if (const auto chosen = process().choices.seed) return *chosen;
  if (Session* const session = Session::current()) return session->membership().roster().seed;
  return process().drawn_seed;
}

void set_seed(std::uint64_t seed) {
  process().choices.seed = seed;
  count_runs_from(0);
  graph::begin_random_streams();
}

int threads() {
  int& chosen = process().choices.threads;
  if (chosen == 0) chosen = choose_threads();
  return chosen;
}

}  // namespace muster::train
