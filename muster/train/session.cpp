#include "muster/train/session.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>

#include "muster/train/activity_scope.h"
#include "muster/train/call_context.h"
#include "muster/train/explain.h"
#include "muster/train/found_jobs.h"
#include "muster/train/front_end.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/program.h"
#include "muster/train/ps_context.h"
#include "muster/train/recovering_call.h"
#include "muster/train/run_context.h"

namespace muster::train {
namespace {

using namespace std::chrono_literals;

constexpr auto patience_for_verdict = 1s;
constexpr int links_lost_max = 3;
constexpr auto patience_for_new_epoch = 10s;  // that was asked for

// Never destroyed: threads and exit handlers may look at it until the very end of the process.
Session* open_session = nullptr;
Role open_role = Role::worker;
std::atomic<const checkpoint::RunStore*> open_store{nullptr};  // the session's, for the node's thread
std::optional<std::uint64_t> chosen_seed;

void leave_at_exit(int status, void*) {
  if (open_session != nullptr) open_session->leave(status);
}

int allowed_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

// 0: not yet chosen; init() chooses anew, since it finds out how many workers share the cores.
int chosen_threads = 0;

int choose_threads() {
  if (const auto chosen = real_environment().get("OMP_NUM_THREADS"))
    if (const int count = std::atoi(chosen->c_str()); count > 0) return count;
  const int workers = open_session == nullptr ? 1 : static_cast<int>(open_session->local_size());
  return std::max(1, allowed_cores() / workers);
}

std::optional<Failure> serve(const cluster::Settings& settings, const InitOptions& options) {
  log::set_name("scheduler");
  return cluster::run_scheduler(
      settings,
      {.seed = {}, .interrupted = options.interrupted, .holders = [&settings](std::uint64_t job_id) {
         return holders_of(settings.recovery_path, job_id);
       }});
}

}  // namespace

Session::Session(std::unique_ptr<Watch> watch, std::unique_ptr<cluster::Node> node,
                 std::unique_ptr<Epochs> epochs, std::string recovery_path)
    : watch_(std::move(watch)),
      epochs_(std::move(epochs)),
      node_(std::move(node)),
      recovery_path_(std::move(recovery_path)),
      pid_(getpid()) {}

Session::~Session() = default;

Session* Session::current() { return open_session; }

std::uint32_t Session::workers_here(std::uint32_t count) const {
  const std::vector<cluster::Member>& workers = roster().workers;
  return static_cast<std::uint32_t>(
      std::count_if(workers.begin(), workers.begin() + count, [&](const cluster::Member& worker) {
        return cluster::host_of(worker) == cluster::host_of(workers[rank()]);
      }));
}

Error Session::verdict(Error error) const {
  if (was_interrupted_.load(std::memory_order_acquire)) return interruption_;
  // Whatever is wrong with the way to the others, a new epoch makes a new one.
  const bool link_failed = error.code == Code::timeout || error.code == Code::refused ||
                           error.code == Code::corrupt || error.code == Code::io;
  if (link_failed && recovers() && !in_forked_child()) error.code = Code::peer_lost;
  if (error.code != Code::peer_lost) return error;
  return epochs_->wait_until_over(patience_for_verdict).value_or(std::move(error));
}

Result<> Session::explained(Result<Communicator*> group, const GroupCall& call) const {
  return group.and_then([&](Communicator* made) { return call(*made); }).map_error([&](Error error) {
    return verdict(std::move(error));
  });
}

bool Session::stage_shares_memory(std::uint32_t stages) const {
  if (!epochs_->has_stage_group(stages) || in_forked_child()) return false;
  const std::vector<cluster::Member>& workers = roster().workers;
  for (std::uint32_t other = rank() % stages; other < workers.size(); other += stages)
    if (other != rank() && workers[other].host_key == workers[rank()].host_key) return true;
  return false;
}

Result<std::shared_ptr<std::byte>> Session::shared_buffer(std::size_t size_bytes,
                                                          std::optional<std::uint32_t> stages) {
  return (stages ? stage_group(*stages) : communicator()).and_then([&](Communicator* group) {
    return group->shared_buffer(size_bytes);
  });
}

bool Session::lost_epoch(const Error& error) {
  if (error.code != Code::peer_lost || in_forked_child() || !recovers()) return false;
  if (!epochs_->wait_until_over(patience_for_verdict)) {
    if (++links_lost_ > links_lost_max) return false;  // again and again at one step: another try is no help
    node_->report_link_lost(epoch(), error.message);
    epochs_->wait_until_over(patience_for_new_epoch);
  }
  return epochs_->wait_until_over({}).has_value() && !failure();
}

void Session::report_step(std::uint64_t step) {
  node_->report_step(step);
  if (step <= highest_step_.load(std::memory_order_relaxed)) return;
  highest_step_.store(step, std::memory_order_relaxed);
  links_lost_ = 0;
}

Result<> Session::next_epoch() {
  MUSTER_TRY_VOID(epochs_->next(&look_for_interruption));
  log::info(fmt::format("epoch {}: all {} workers are here", epoch(), world_size()));
  return {};
}

Result<> Session::explicit_collective(std::string_view what, std::optional<std::uint32_t> stages,
                                      const GroupCall& call) {
  const auto make = [&] { return stages ? call_stage_group(*stages, call) : call_all(call); };
  // A callback's, before all have agreed where they go on.
  if (const RecoveringCall* in_flight_call = RecoveringCall::current();
      in_flight_call && in_flight_call->is_rendezvous_due())
    return fail(Code::peer_lost, fmt::format("a worker was lost before {}", what));
  if (!recovers() || is_in_call_) return make();
  while (true) {
    if (roster().finished_collectives > progress_.collectives)
      return fail(Code::refused,
                  fmt::format("{}, the collective call number {} of this script, cannot be made: the other "
                              "workers have passed it before this one came back. Only calls inside of train, "
                              "eval and muster.recoverable can be made up for",
                              what, progress_.collectives + 1));
    const Result<> done = meet().and_then(make);
    if (done) break;
    if (!lost_epoch(done.error())) return done;
    MUSTER_TRY_VOID(next_epoch());
  }
  ++progress_.collectives;
  node_->report_progress(progress_);
  return {};
}

// Where somebody came back it may lack what the others have; outside of calls, too, it is given that before
// anything else is done together.
Result<> Session::meet() {
  if (met_in_epoch_ == epoch()) return {};
  return RecoveringCall::meet(*recovery_of_session());
}

Result<checkpoint::RunStore*> Session::run_store() {
  if (!run_store_) {
    MUSTER_TRY(auto made, checkpoint::RunStore::open({.folder = recovery_path_,
                                                      .job = fmt::format("{:016x}", roster().job_id),
                                                      .world = world_size(),
                                                      .rank = rank(),
                                                      .epoch = roster().epoch,
                                                      .fresh = fresh_}));
    run_store_.emplace(std::move(made));
    open_store.store(&*run_store_, std::memory_order_release);
    keep_seed(run_store_->folder(), roster().seed);
    step_mark_ = std::make_unique<checkpoint::StepMark>(run_store_->folder(), pid_);
  }
  return &*run_store_;
}

void Session::mark_step(const checkpoint::StepPlace& place) {
  if (step_mark_ != nullptr) step_mark_->set(place);
  if (has_first_point()) node_->report_progress(progress_);
}

bool Session::has_first_point() {
  if (progress_.has_point || !run_store_ || run_store_->points().empty()) return false;
  return progress_.has_point = true;
}

void Session::report_finished_calls(std::uint64_t calls) {
  if (calls <= progress_.calls) return;
  progress_.calls = calls;
  node_->report_progress(progress_);
}

// The end may be the first point that the disk has taken: that of the start is saved beside the steps.
void Session::report_kept_calls(std::uint64_t calls) {
  if (!has_first_point() && calls <= progress_.kept_calls) return;
  progress_.kept_calls = std::max(calls, progress_.kept_calls);
  node_->report_progress(progress_);
}

void Session::look_for_interruption_of_wait() {
  if (in_forked_child() || was_interrupted_.load(std::memory_order_relaxed)) return;
  const Result<> looked = look_for_interruption();
  if (looked) return;
  interruption_ = looked.error();
  was_interrupted_.store(true, std::memory_order_release);
  epochs_->end({Code::peer_lost, fmt::format("worker {} was interrupted while it waited for the others ({})",
                                             rank(), interruption_.message)});
}

bool Session::in_forked_child() const { return getpid() != pid_; }

void Session::note_reason(std::string reason) { reason_ = std::move(reason); }

namespace {
Result<> look_whether_left(const cluster::Node& node) {
  if (!node.has_left()) return {};
  return fail(Code::peer_lost, "this worker has left the job");
}
}  // namespace

// While somebody may still need this worker: where a worker comes back, it is given what it lacks. Once in an
// epoch; what goes wrong in it costs this worker nothing.
void Session::serve_before_leaving() {
  if (is_in_call_ || !recovers()) return;
  const bool is_over = epochs_->wait_until_over({}).has_value();
  if (is_over && !epochs_->next([this] { return look_whether_left(*node_); })) return;
  if (std::exchange(served_in_epoch_, epoch()) == epoch()) return;
  set_while_waiting([] {
    if (const auto stays = look_whether_left(*open_session->node_); !stays)
      open_session->epochs_->end(stays.error());
  });
  if (const auto met = meet(); !met) log::debug(met.error().message);
  set_while_waiting(nullptr);
}

void Session::leave(int exit_status) {
  if (in_forked_child()) return;
  set_while_waiting(nullptr);  // a language above may be gone
  watch_->stand_down();
  if (reason_.empty() && exit_status != 0) reason_ = fmt::format("exited with status {}", exit_status);
  if (exit_status == 0 && run_store_)
    if (const auto done = run_store_->set_done(); !done) log::warning(done.error().message);
  // What it ends with is kept nowhere: this is not the worker that is done.
  if (const auto lost = exit_status == 0 && run_store_ ? run_store_->lost() : std::nullopt)
    node_->replaced(*lost);
  else
    node_->leave(exit_status, reason_, [this] { serve_before_leaving(); });
  // Whoever still waits for this worker would wait in vain; what it has sent still arrives.
  epochs_->leave(
      {Code::peer_lost, fmt::format("worker {} has left the job, with status {}", rank(), exit_status)});
}

std::optional<Failure> Session::join(const cluster::Settings& settings, const InitOptions& options) {
  auto registration = cluster::describe_host(settings, options.interrupted);
  if (!registration) return cluster::failure_from(registration.error());
  auto listener = collective::Listener::open(registration->address);
  if (!listener) return cluster::failure_from(listener.error());
  registration->data_port = listener->port();
  registration->local_name = listener->local_name();
  if (settings.enable_recovery && settings.role == Role::worker)
    registration->find_jobs = [path = settings.recovery_path] { return jobs_found_in(path); };
  for (cluster::Trait& trait : program_traits()) registration->traits.push_back(std::move(trait));
  auto watch = std::make_unique<Watch>();
  auto joined = cluster::Node::join(settings, *registration, options.interrupted);
  if (!joined) return std::move(joined).error();
  auto node = *std::move(joined);
  log::set_name(fmt::format("{} {}", to_string(settings.role), node->rank()));
  if (settings.role == Role::server) return node->wait(options.interrupted);

  auto epochs = std::make_unique<Epochs>(node->roster(), *std::move(listener),
                                         Epochs::Options{.rank = node->rank(),
                                                         .address = registration->address,
                                                         .connect_timeout = settings.topo_timeout,
                                                         .call_timeout = settings.receive_timeout,
                                                         .security = registration->security});
  watch->attach(*epochs);
  node->on_failure([watch = watch.get()](const Failure& failure) { watch->job_failed(failure); });
  node->on_epoch(
      {.lost =
           [epochs = epochs.get()](const Failure& reason) {
             return epochs->lost({Code::peer_lost, reason.message});
           },
       .formed = [epochs = epochs.get()](
                     std::shared_ptr<const cluster::Roster> roster) { epochs->formed(std::move(roster)); },
       .left = [epochs = epochs.get()](std::uint64_t epoch,
                                       std::uint32_t rank) { epochs->left(epoch, rank); },
       .replaced =
           [] {
             const auto* store = open_store.load(std::memory_order_acquire);
             return store != nullptr ? store->lost() : std::nullopt;
           }});
  node->on_beat([epochs = epochs.get()] {
    cluster::Activity activity = activity_of_main_thread();
    epochs->tell(activity);
    return activity;
  });
  // Where processes may come back, the others may be anywhere in their scripts.
  if (!node->roster()->recovers) {
    if (const auto connected = epochs->communicator(); !connected) {
      // A peer that died meanwhile: the cluster knows who and how, and says so in a moment.
      const auto reason = watch->wait_for_failure(patience_for_verdict);
      Failure failure = reason.value_or(cluster::failure_from(connected.error()));
      watch->stand_down();
      node->leave(failure.exit_code, failure.message);
      return failure;
    }
  }
  open_session = new Session(std::move(watch), std::move(node), std::move(epochs), settings.recovery_path);
  open_session->strict_ = settings.strict;
  open_session->fresh_ = settings.fresh;
  chosen_threads = 0;
  set_while_waiting([] { open_session->look_for_interruption_of_wait(); });
  set_activity(cluster::WorkPhase::script);
  on_exit(leave_at_exit, nullptr);
  return std::nullopt;
}

Result<Role, Failure> init(const Environment& environment, const InitOptions& options) {
  if (open_session != nullptr) return open_role;
  graph::set_context_provider(&call_context);
  watch_places();
  if (explain_mode() != ExplainMode::off) return Role::worker;
  auto settings = cluster::read_settings(environment);
  if (!settings) return tl::unexpected(cluster::failure_from(settings.error()));
  settings->security = chosen_security(settings->security, ps_context());
  for (const std::string& note : settings->notes) log::info(note);
  for (const std::string& warning : settings->warnings) log::warning(warning);
  auto failure =
      settings->role == Role::scheduler ? serve(*settings, options) : Session::join(*settings, options);
  if (failure) return tl::unexpected(*std::move(failure));
  open_role = settings->role;
  return open_role;
}

namespace {

Result<Session*> require_session(std::string_view call) {
  if (open_session != nullptr && open_session->in_forked_child())
    return fail(Code::refused, fmt::format("{}: a forked child is not the worker that its parent is", call));
  if (open_session != nullptr) return open_session;
  return fail(Code::invalid_argument,
              fmt::format("{}: this process is in no cluster; call init() first", call));
}

// `alone`: the answer in a process that is explained.
Result<std::uint32_t> ask(std::string_view call, std::uint32_t (Session::*get)() const, std::uint32_t alone) {
  if (explain_mode() != ExplainMode::off) return alone;
  return require_session(call).map([get](Session* session) { return (session->*get)(); });
}

}  // namespace

Result<std::uint32_t> get_rank() { return ask("get_rank", &Session::rank, 0); }
Result<std::uint32_t> get_group_size() { return ask("get_group_size", &Session::world_size, 1); }
Result<std::uint32_t> get_local_rank() { return ask("get_local_rank", &Session::local_rank, 0); }
Result<std::uint32_t> get_local_rank_size() { return ask("get_local_rank_size", &Session::local_size, 1); }

std::uint64_t seed() {
  if (chosen_seed) return *chosen_seed;
  if (open_session != nullptr) return open_session->roster().seed;
  static const std::uint64_t drawn = entropy();
  return drawn;
}

void set_seed(std::uint64_t seed) {
  chosen_seed = seed;
  count_runs_from(0);
}

int threads() {
  if (chosen_threads == 0) chosen_threads = choose_threads();
  return chosen_threads;
}

}  // namespace muster::train
