#include "muster/cluster/node_process.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "muster/base/stacks.h"
#include "muster/cluster/host.h"
#include "muster/cluster/node.h"
#include "muster/cluster/wire.h"
#include "muster/net/net.h"

namespace muster::cluster {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds poll_interval{100};
constexpr milliseconds time_between_looks{1000};
constexpr milliseconds leave_time{2500};  // the machine itself gives up after two seconds
constexpr net::ConnectionLimits limits{.payload_size_bytes = scheduler_payload_limit_bytes,
                                       .unsent_size_bytes = scheduler_payload_limit_bytes};

NodeConfig config_from(const Settings& settings, const Registration& registration) {
  const std::string node_id =
      settings.node_id.empty() ? fmt::format("node-{:016x}", entropy()) : settings.node_id;
  return {.member = {.role = settings.role,
                     .node_id = node_id,
                     .host_key = registration.host_key,
                     .address = registration.address,
                     .data_port = registration.data_port,
                     .local_name = registration.local_name,
                     .pid = registration.pid,
                     .process_space = registration.process_space,
                     .host_name = registration.host_name,
                     .cores_key = registration.cores_key,
                     .incarnation = registration.incarnation,
                     .is_named = !settings.node_id.empty()},
          .worker_num = settings.worker_num,
          .server_num = settings.server_num,
          .topo_timeout = settings.topo_timeout,
          .retry_timeout = settings.retry_timeout,
          .node_timeout = settings.node_timeout,
          .receive_timeout = settings.receive_timeout,
          .scheduler = net::to_string(net::Address{settings.scheduler_host, settings.scheduler_port}),
          .recovers = settings.enable_recovery,
          .strict = settings.strict,
          .traits = registration.traits,
          .secret = new_secret(),
          .fresh = settings.fresh};
}

}  // namespace

// Drives the state machine on a thread of its own. What that thread alone touches comes first, what is shared
// is under the mutex.
class Node::Implementation {
 public:
  Implementation(const Settings& settings, const Registration& registration)
      : role_(settings.role),
        port_(settings.scheduler_port),
        scheduler_ips_(registration.scheduler_ips),
        security_{.security = registration.security,
                  .expected = scheduler_identity(settings),
                  .peer_name = fmt::format("the scheduler at {}",
                                           net::to_string(net::Address{settings.scheduler_host, port_}))},
        patience_(settings.enable_recovery ? settings.node_timeout : milliseconds(0)),
        find_jobs_(registration.find_jobs),
        machine_(config_from(settings, registration), real_clock().now()) {}

  ~Implementation() {
    loop_.post([this] { loop_.stop(); });
    if (thread_.joinable()) thread_.join();
    if (stacks_thread_.joinable()) stacks_thread_.join();
  }

  void start() {
    // Signals are for the program's own threads.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { serve(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // Waits until `done` holds under the mutex; false when interrupted before.
  template <class Done>
  bool wait_until(const Interrupted& interrupted, Done done) {
    std::unique_lock lock(mutex_);
    while (!done()) {
      changed_.wait_for(lock, poll_interval);
      if (done() || !interrupted) continue;
      lock.unlock();
      if (interrupted()) return false;
      lock.lock();
    }
    return true;
  }

  std::optional<Failure> wait_for_roster(const Interrupted& interrupted) {
    if (!wait_until(interrupted, [&] { return current_roster_.load() || job_ended_; })) {
      loop_.post([this] { step(node_event::Interrupted{}); });
      wait_for_left();
    }
    const std::lock_guard lock(mutex_);
    if (failure_) return failure_;
    if (!current_roster_.load()) return Failure{Code::aborted, "the job ended before it had formed", 1};
    return std::nullopt;
  }

  std::optional<Failure> wait_for_end(const Interrupted& interrupted) {
    if (!wait_until(interrupted, [&] { return job_ended_; })) {
      leave(exit_code_interrupted, "interrupted");
      return Failure{Code::aborted, "interrupted", exit_code_interrupted};
    }
    return failure();
  }

  void leave(int exit_status, std::string reason, const std::function<void()>& meanwhile = {}) {
    if (leaving_.exchange(true)) return;
    loop_.post([this, exit_status, reason = std::move(reason)] {
      step(node_event::Leave{exit_status, reason});
    });
    if (std::this_thread::get_id() == thread_.get_id()) return;
    wait_for_left(meanwhile);
    end_thread();
  }
  bool has_scheduler() const { return has_scheduler_.load(std::memory_order_relaxed); }
  bool has_left() const {
    const std::lock_guard lock(mutex_);
    return left_;
  }

  void replaced(std::string reason) {
    if (leaving_.exchange(true)) return;
    loop_.post([this, reason = std::move(reason)] { step(node_event::Replaced{reason}); });
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, leave_time, [&] { return job_ended_; });
    }
    end_thread();
  }

  void set_callback(std::function<void(const Failure&)> callback) {
    {
      const std::lock_guard lock(mutex_);
      callback_ = std::move(callback);
    }
    loop_.post([this] { call_back(); });
  }

  std::optional<Failure> failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  // Never null after `join`. No lock is needed, which a forked child could find taken.
  std::shared_ptr<const Roster> roster() const { return *current_roster_.load(std::memory_order_acquire); }
  // Written before `join` returns, and never after.
  std::uint32_t rank() const { return rank_; }
  Role role() const { return role_; }
  void report_step(std::uint64_t step) { last_step_.store(step, std::memory_order_relaxed); }
  void report_slower(bool is_slower) {
    if (is_slower_.exchange(is_slower, std::memory_order_relaxed) != is_slower)
      loop_.post([this] { step(node_event::Tick{}); });
  }
  void report_progress(Progress progress) {
    calls_.store(progress.calls, std::memory_order_relaxed);
    collectives_.store(progress.collectives, std::memory_order_relaxed);
    const bool had_point = has_point_.exchange(progress.has_point, std::memory_order_relaxed);
    const std::uint64_t kept = kept_calls_.exchange(progress.kept_calls, std::memory_order_relaxed);
    if ((progress.has_point && !had_point) || progress.kept_calls > kept)
      loop_.post([this] { step(node_event::Tick{}); });
  }
  void set_hooks(EpochHooks hooks) {
    loop_.post([this, hooks = std::move(hooks)] {
      hooks_ = hooks;
      ask_endpoint();
    });
  }
  void set_reports(std::function<Activity()> activity, std::function<ProcessStats()> stats) {
    loop_.post([this, activity = std::move(activity), stats = std::move(stats)] {
      activity_ = activity;
      stats_ = stats;
    });
  }
  void set_stacks_keeper(std::function<void(const std::string&)> keep) {
    loop_.post([this, keep = std::move(keep)] { keep_stacks_ = keep; });
  }
  void report_parameters(ParameterReport report) {
    loop_.post([this, event = node_event::Parameters{std::move(report)}] { step(event); });
  }
  void report_link_lost(std::uint64_t epoch, std::string reason) {
    loop_.post([this, lost = node_event::LinkLost{epoch, std::move(reason)}] { step(lost); });
  }
  bool is_forked() const { return fork_count_ != net::fork_count(); }

 private:
  void serve() {
    ::pthread_setname_np(::pthread_self(), "muster-node");
    set_timer();
    loop_.run();
    connection_.reset();
    const std::lock_guard lock(mutex_);
    is_idle_ = true;
    changed_.notify_all();
  }

  // The process may end next, and OpenSSL's own clean-up with it, beside which no thread may use a
  // connection. Where it hangs in a hook, it is left behind.
  void end_thread() {
    loop_.post([this] { loop_.stop(); });
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, leave_time, [&] { return is_idle_; })) return;
    }
    thread_.join();
  }

  void wait_for_left(const std::function<void()>& meanwhile = {}) {
    const TimePoint until = real_clock().now() + leave_time + patience_;
    std::unique_lock lock(mutex_);
    while (!left_ && real_clock().now() < until) {
      changed_.wait_for(lock, poll_interval, [&] { return left_; });
      if (left_ || !meanwhile) continue;
      lock.unlock();
      meanwhile();
      lock.lock();
    }
  }

  ProcessStats stats() const {
    ProcessStats stats = stats_ ? stats_() : ProcessStats{};
    read_process_load(stats);
    return stats;
  }

  void step(const NodeEvent& event) {
    const NodeReport report{
        last_step_.load(std::memory_order_relaxed),
        {calls_.load(std::memory_order_relaxed), collectives_.load(std::memory_order_relaxed),
         has_point_.load(std::memory_order_relaxed), kept_calls_.load(std::memory_order_relaxed)},
        activity_ ? activity_() : Activity{},
        stats(),
        is_slower_.load(std::memory_order_relaxed)};
    for (const NodeAction& action : machine_.step(event, report, real_clock().now()))
      std::visit([this](const auto& a) { apply(a); }, action);
    has_scheduler_.store(machine_.is_registered(), std::memory_order_relaxed);
    set_timer();
  }

  void set_timer() {
    loop_.set_timer(machine_.deadline(), [this] { step(node_event::Tick{}); });
  }

  void apply(const node_action::Connect&) {
    if (const auto reason = hooks_.replaced ? hooks_.replaced() : std::nullopt)
      return loop_.post([this, event = node_event::Replaced{*reason}] { step(event); });
    find_jobs();
    const std::string& ip = scheduler_ips_[attempts_++ % scheduler_ips_.size()];
    connection_ = net::Connection::connect(loop_, {ip, port_}, limits,
                                           {.opened = [this] { step(node_event::Connected{found_}); },
                                            .received = [this](const net::Frame& frame) { received(frame); },
                                            .closed =
                                                [this](const Error& error) {
                                                  connection_.reset();
                                                  step(node_event::Disconnected{error.message, error.code});
                                                }},
                                           security_);
  }

  // Before it connects: a scheduler does not wait long for who has connected.
  void find_jobs() {
    const TimePoint now = real_clock().now();
    const bool is_member = current_roster_.load() != nullptr;
    if (!find_jobs_ || is_member || (looked_at_ && now < *looked_at_ + time_between_looks)) return;
    looked_at_ = now;
    found_ = find_jobs_();
  }

  void received(const net::Frame& frame) {
    auto message = decode_message(frame);
    if (message) return step(node_event::Received{*std::move(message)});
    connection_.reset();
    step(node_event::Disconnected{message.error().message, message.error().code});
  }

  void apply(const node_action::Disconnect&) {
    if (connection_) connection_->finish();
    connection_.reset();
  }

  void apply(const node_action::Send& send) {
    if (connection_)
      connection_->send(std::make_shared<const std::vector<std::byte>>(encode_message(send.message)));
  }

  void apply(const node_action::Watch& watch) {
    loop_.watch_process(watch.pid, [this, watch](WaitStatus status) {
      step(node_event::Exited{watch.role, watch.rank, watch.incarnation, status});
    });
  }

  // Steps that are made again from here on count in the next epoch, however few they are.
  void apply(const node_action::AskEndpoint& ask) {
    report_step(no_step);
    asked_ = ask.reason;
    ask_endpoint();
  }

  // Once both the question and the hooks are there.
  void ask_endpoint() {
    if (!asked_ || !hooks_.lost) return;
    const Failure reason = *std::exchange(asked_, std::nullopt);
    loop_.post([this, answer = node_event::Endpoint{hooks_.lost(reason)}] { step(answer); });
  }

  void apply(const node_action::Log& line) { log::write(line.level, line.text); }

  void apply(const node_action::Formed& formed) {
    bool is_first = false;
    {
      const std::lock_guard lock(mutex_);
      is_first = rosters_.empty();
      current_roster_.store(&rosters_.emplace_back(formed.roster), std::memory_order_release);
      if (is_first) rank_ = formed.rank;
      changed_.notify_all();
    }
    if (!is_first && hooks_.formed) hooks_.formed(formed.roster);
  }

  void apply(const node_action::PeerLeft& left) {
    if (hooks_.left) hooks_.left(left.epoch, left.rank);
  }

  // On a thread of its own, since heartbeats go on meanwhile. Who asks during that gets the same ones.
  void apply(const node_action::TakeStacks& take) {
    wants_stacks_ = wants_stacks_ || take.is_answered;
    if (stacks_thread_.joinable()) return;
    stacks_thread_ = std::thread([this, keep = keep_stacks_] {
      std::string text = take_stacks();
      if (keep) keep(text);
      loop_.post([this, text = std::move(text)] {
        stacks_thread_.join();
        if (std::exchange(wants_stacks_, false)) step(node_event::Stacks{text});
      });
    });
  }

  void apply(const node_action::JobEnded& ended) {
    {
      const std::lock_guard lock(mutex_);
      job_ended_ = true;
      failure_ = ended.failure;
      changed_.notify_all();
    }
    call_back();
  }

  void apply(const node_action::Left&) {
    const std::lock_guard lock(mutex_);
    left_ = true;
    changed_.notify_all();
  }

  void call_back() {
    std::function<void(const Failure&)> callback;
    std::optional<Failure> reason;
    {
      const std::lock_guard lock(mutex_);
      if (!failure_) return;
      reason = failure_;
      std::swap(callback, callback_);
    }
    if (callback) callback(*reason);
  }

  const std::uint32_t fork_count_ = net::fork_count();
  const Role role_;
  const std::uint16_t port_;
  const std::vector<std::string> scheduler_ips_;
  const net::ConnectionSecurity security_;
  const milliseconds patience_;  // of who leaves, with a scheduler that may come back
  const std::function<std::vector<FoundJob>()> find_jobs_;
  NodeMachine machine_;
  net::Loop loop_;
  std::unique_ptr<net::Connection> connection_;
  std::size_t attempts_ = 0;
  std::vector<FoundJob> found_;
  std::optional<TimePoint> looked_at_;
  EpochHooks hooks_;
  std::function<Activity()> activity_;
  std::function<ProcessStats()> stats_;
  std::function<void(const std::string&)> keep_stacks_;
  bool wants_stacks_ = false;  // the scheduler does, of those that are being taken
  std::thread stacks_thread_;
  std::optional<Failure> asked_;  // where this process will be reached, because of this

  std::atomic<std::uint64_t> last_step_{no_step};
  std::atomic<bool> is_slower_{false};
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> collectives_{0};
  std::atomic<bool> has_point_{false};
  std::atomic<std::uint64_t> kept_calls_{0};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> has_scheduler_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const Roster>> rosters_;  // all of them: who holds a reference keeps a roster
  std::atomic<const std::shared_ptr<const Roster>*> current_roster_{nullptr};
  std::uint32_t rank_ = 0;
  std::optional<Failure> failure_;
  bool job_ended_ = false;
  bool left_ = false;
  bool is_idle_ = false;  // the thread makes nothing any more
  std::function<void(const Failure&)> callback_;
  std::thread thread_;
};

namespace {
Failure forked_failure() {
  return {Code::invalid_argument, "a forked child is not part of the job: only the process that joined it is",
          1};
}
}  // namespace

Result<Registration> describe_host(const Settings& settings, const Interrupted& interrupted) {
  return registration_here(settings, interrupted, real_clock());
}

Node::Node(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}

Node::~Node() {
  // A forked child has no thread to join; the parent's descriptors are closed there already.
  if (implementation_->is_forked()) static_cast<void>(implementation_.release());
}

Result<std::unique_ptr<Node>, Failure> Node::join(const Settings& settings, Registration registration,
                                                  Interrupted interrupted) {
  if (registration.scheduler_ips.empty()) {
    auto ips = resolve_scheduler(settings, interrupted, real_clock());
    if (!ips) return tl::unexpected(failure_from(ips.error()));
    registration.scheduler_ips = *std::move(ips);
  }
  auto implementation = std::make_unique<Implementation>(settings, registration);
  implementation->start();
  if (auto failure = implementation->wait_for_roster(interrupted)) return tl::unexpected(*std::move(failure));
  log::set_name(fmt::format("{} {}", to_string(settings.role), implementation->rank()));
  return std::unique_ptr<Node>(new Node(std::move(implementation)));
}

std::shared_ptr<const Roster> Node::roster() const { return implementation_->roster(); }
Role Node::role() const { return implementation_->role(); }
std::uint32_t Node::rank() const { return implementation_->rank(); }
void Node::report_step(std::uint64_t step) { implementation_->report_step(step); }
void Node::report_slower(bool is_slower) { implementation_->report_slower(is_slower); }
void Node::report_progress(Progress progress) { implementation_->report_progress(progress); }

void Node::report_parameters(ParameterReport report) {
  if (!implementation_->is_forked()) implementation_->report_parameters(std::move(report));
}

void Node::on_beat(std::function<Activity()> activity, std::function<ProcessStats()> stats) {
  if (!implementation_->is_forked()) implementation_->set_reports(std::move(activity), std::move(stats));
}

void Node::on_stacks(std::function<void(const std::string&)> keep) {
  if (!implementation_->is_forked()) implementation_->set_stacks_keeper(std::move(keep));
}

void Node::on_epoch(EpochHooks hooks) {
  if (!implementation_->is_forked()) implementation_->set_hooks(std::move(hooks));
}

void Node::report_link_lost(std::uint64_t epoch, std::string reason) {
  if (!implementation_->is_forked()) implementation_->report_link_lost(epoch, std::move(reason));
}

void Node::on_failure(std::function<void(const Failure&)> callback) {
  if (!implementation_->is_forked()) implementation_->set_callback(std::move(callback));
}

std::optional<Failure> Node::failure() const {
  return implementation_->is_forked() ? forked_failure() : implementation_->failure();
}

void Node::replaced(std::string reason) {
  if (!implementation_->is_forked()) implementation_->replaced(std::move(reason));
}

void Node::leave(int exit_status, std::string reason, const std::function<void()>& meanwhile) {
  if (!implementation_->is_forked()) implementation_->leave(exit_status, std::move(reason), meanwhile);
}

bool Node::has_scheduler() const { return implementation_->has_scheduler(); }
bool Node::has_left() const { return !implementation_->is_forked() && implementation_->has_left(); }

std::optional<Failure> Node::wait(Interrupted interrupted) {
  return implementation_->is_forked() ? forked_failure() : implementation_->wait_for_end(interrupted);
}

}  // namespace muster::cluster
