#include "muster/cluster/scheduler_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "muster/base/termination.h"
#include "muster/cluster/host.h"
#include "muster/cluster/recovery_log.h"
#include "muster/cluster/scheduler.h"
#include "muster/cluster/wire.h"
#include "muster/net/net.h"

namespace muster::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds poll_interval{100};
constexpr milliseconds holders_patience = seconds(120);  // NFS servers give up a dead host after 90
constexpr milliseconds holders_interval{200};
constexpr milliseconds goodbye_time{300};  // for nodes to close their connections at the end
// A silent unauthenticated peer is a descriptor and a few bytes, and as many as these cost less than turning
// them out, since they come back at once. With TLS each may have a session. Half of the descriptors are for
// members.
constexpr std::size_t unauthenticated_max = 4096, unauthenticated_max_with_tls = 1024;

net::ConnectionLimits connection_limits(bool has_tls, const Settings& settings) {
  constexpr std::size_t descriptors_of_node =
      2;  // its connection, and its process where that is on this host
  return {.payload_size_bytes = node_payload_limit_bytes,
          .unsent_size_bytes = 2 * scheduler_payload_limit_bytes,
          .unauthenticated = {.count = has_tls ? unauthenticated_max_with_tls : unauthenticated_max},
          .members = descriptors_of_node * (std::size_t{settings.worker_num} + settings.server_num)};
}

std::string address_of(const Settings& settings) {
  return net::to_string(net::Address{settings.scheduler_host, settings.scheduler_port});
}

SchedulerConfig config_from(const Settings& settings, const SchedulerOptions& options,
                            const RecoveryLog* log) {
  SchedulerConfig config{.worker_num = settings.worker_num,
                         .server_num = settings.server_num,
                         .topo_timeout = settings.topo_timeout,
                         .node_timeout = settings.node_timeout,
                         .job_id = entropy() | 1,
                         .seed = options.seed.value_or(entropy()),
                         .pid = ::getpid(),
                         .process_space = net::process_space(),
                         .recovers = settings.enable_recovery,
                         .strict = settings.strict,
                         .restarts_failed = settings.max_restarts > 0,
                         .stuck_limit = settings.stuck_limit,
                         .address = address_of(settings),
                         .fresh = settings.fresh,
                         .adopted_epoch = wall_clock_us() / 1000};
  if (log == nullptr || settings.fresh) return config;
  config.job_id = log->saved()->job.job_id;
  config.seed = log->saved()->job.seed;
  config.ended_job_id = log->saved()->job.ended_job_id;
  if (log->saved()->roster) config.saved = log->saved();
  return config;
}

// Why the job of this log is not this scheduler's: its processes live and look for theirs elsewhere, where it
// may come again.
std::optional<std::string> held_elsewhere(const std::optional<SavedJob>& saved, const Settings& settings,
                                          const SchedulerOptions& options) {
  const std::string here = address_of(settings);
  if (!saved || !saved->is_unfinished() || saved->scheduler.empty() || saved->scheduler == here)
    return std::nullopt;
  const auto holders = options.holders ? options.holders(saved->job.job_id) : std::nullopt;
  if (!holders) return std::nullopt;
  return fmt::format(
      "MS_RECOVERY_PATH='{}' is in use by job {:016x} ({}), whose scheduler is away and has to be started "
      "again at {}; this one is at {}. Give this job another folder; or, to go on with that one here, end "
      "its processes",
      settings.recovery_path, saved->job.job_id, *holders, saved->scheduler, here);
}

// A host that has died may keep its locks for a while: that is waited for. Meanwhile the path is free for the
// scheduler that belongs there.
Result<RecoveryLog> open_own_log(const Settings& settings, const SchedulerOptions& options) {
  const TimePoint deadline = real_clock().now() + std::min(settings.topo_timeout, holders_patience);
  for (bool is_first = true;; is_first = false) {
    std::optional<std::string> reason;
    {
      MUSTER_TRY(auto log, RecoveryLog::open(settings.recovery_path, real_clock()));
      reason = held_elsewhere(log.saved(), settings, options);
      if (!reason) return log;
    }
    if (real_clock().now() >= deadline) return fail(Code::refused, *std::move(reason));
    if (options.interrupted && options.interrupted()) return fail(Code::aborted, "interrupted: " + *reason);
    if (is_first) log::warning(*reason);
    std::this_thread::sleep_for(holders_interval);
  }
}

// The log of an unfinished job to go on with, or of a new one. What is given up stays until that has formed.
Result<std::unique_ptr<RecoveryLog>> open_log(const Settings& settings, const SchedulerOptions& options) {
  MUSTER_TRY(auto opened, open_own_log(settings, options));
  auto log = std::make_unique<RecoveryLog>(std::move(opened));
  if (settings.fresh) return log;
  if (!log->saved() || !log->saved()->is_unfinished()) {
    const bool ended_well = log->saved() && log->saved()->ended_well;
    MUSTER_TRY_VOID(log->start({.job = {.job_id = entropy() | 1,
                                        .seed = options.seed.value_or(entropy()),
                                        .worker_num = settings.worker_num,
                                        .server_num = settings.server_num,
                                        .ended_job_id = ended_well ? log->saved()->job.job_id : 0},
                                .scheduler = address_of(settings)}));
    return log;
  }
  SavedJob saved = *log->saved();
  saved.scheduler = address_of(settings);
  const auto differs = [&](std::string_view variable, std::uint32_t there, std::uint32_t here) {
    return fail(
        Code::invalid_argument,
        fmt::format("{} is {}, and the unfinished job {:016x} in MS_RECOVERY_PATH='{}' has {}: set {} to {} "
                    "to go on with it, or MUSTER_FRESH=1 to begin anew: with resume='last' in the script "
                    "from the newest checkpoint",
                    variable, here, saved.job.job_id, settings.recovery_path, there, variable, there));
  };
  if (saved.job.worker_num != settings.worker_num)
    return differs("MS_WORKER_NUM", saved.job.worker_num, settings.worker_num);
  if (saved.job.server_num != settings.server_num)
    return differs("MS_SERVER_NUM", saved.job.server_num, settings.server_num);
  MUSTER_TRY_VOID(log->start(saved));
  log::warning(fmt::format("resuming job {:016x} {} epoch {}; delete '{}' of every process to start fresh",
                           saved.job.job_id, saved.failure ? "after" : "in", saved.roster->epoch,
                           settings.recovery_path));
  return log;
}

std::vector<std::byte> refusal_frame(const std::string& reason) {
  return encode_message(
      {.body = message::Refuse{
           {Code::refused, "the scheduler refused this process: " + reason, exit_code_refused}}});
}

// Whether a process registers as what its certificate says; without certificates every process is trusted.
// Who has a certificate for a node is that node: it takes no seat that any process may have.
Result<> check_claim(const net::Connection& connection, Message& message) {
  auto* request = std::get_if<message::Register>(&message.body);
  const net::PeerNames* names = connection.peer_names();
  if (request == nullptr || names == nullptr) return {};
  net::Identity claimed = identity_of(request->member);
  claimed.hosts.push_back(connection.peer().ip);
  MUSTER_TRY_VOID(net::check_identity(*names, claimed));
  if (!names->node_ids.empty()) request->member.is_named = true;
  return {};
}

// Drives the state machine with sockets, watched processes and the clock.
class SchedulerDriver {
 public:
  // `log` is null without recovery.
  SchedulerDriver(const Settings& settings, const SchedulerOptions& options, std::unique_ptr<RecoveryLog> log,
                  std::shared_ptr<const net::Security> security)
      : settings_(settings),
        options_(options),
        log_(std::move(log)),
        security_(std::move(security)),
        machine_(config_from(settings, options, log_.get()), real_clock().now()) {}

  Result<> listen() {
    MUSTER_TRY(const auto ips, listening_ips(settings_, options_.interrupted, real_clock()));
    if (security_ == nullptr)
      if (const std::string warning = warn_of_open_network(ips); !warning.empty()) log::warning(warning);
    const auto limits = connection_limits(security_ != nullptr, settings_);
    for (const std::string& ip : ips) {
      MUSTER_TRY(auto listener, net::ConnectionListener::open(
                                    loop_, {ip, settings_.scheduler_port}, limits,
                                    [this](auto connection) { accept(std::move(connection)); },
                                    {.security = security_, .plain_refusal = refusal_frame}, screening()));
      listeners_.push_back(std::move(listener));
    }
    return {};
  }

  std::optional<Failure> run() {
    bool interrupted = false;
    Termination termination;
    set_timer();
    while (!machine_.ended()) {
      loop_.run_for(poll_interval);
      if (!interrupted && options_.interrupted && options_.interrupted()) {
        interrupted = true;
        step(scheduler_event::Interrupted{});
      }
      termination.look(machine_.is_needed(), real_clock().now());
    }
    say_goodbye();
    if (machine_.failure() && termination.is_asked(real_clock().now())) termination.end_process();
    return machine_.failure();
  }

 private:
  net::Screening screening() {
    return {.may_begin = [](const net::Frame& frame) -> Result<> {
              MUSTER_TRY_VOID(decode_message(frame));
              return {};
            },
            .turned_away =
                [this](const std::vector<net::RejectedPeer>& rejected_peers) {
                  for (const net::RejectedPeer& rejected_peer : rejected_peers)
                    step(scheduler_event::Rejected{0, rejected_peer.ip, for_others(rejected_peer.reason),
                                                   rejected_peer.count});
                }};
  }

  void accept(std::unique_ptr<net::Connection> connection) {
    const PeerId id = next_peer_++;
    net::Connection& accepted = *connection;
    connections_[id] = std::move(connection);
    accepted.set_events({.received = [this, id](const net::Frame& frame) { received(id, frame); },
                         .closed = [this, id](const Error& error) { closed(id, error); }});
  }

  void received(PeerId id, const net::Frame& frame) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    auto message = decode_message(frame);
    if (!message) return closed(id, message.error());
    if (const auto honest = check_claim(*found->second, *message); !honest)
      return turn_away(id, *found->second, honest.error(), std::get<message::Register>(message->body).member);
    step(scheduler_event::Received{id, *std::move(message)});
  }

  // No process takes the place of another whose certificate it does not have.
  void turn_away(PeerId id, net::Connection& connection, const Error& error, const Member& claims) {
    connection.send(std::make_shared<const std::vector<std::byte>>(refusal_frame(error.message)));
    connection.finish();
    closed(id, error, claims);
  }

  void closed(PeerId id, const Error& error, std::optional<Member> claims = {}) {
    // A peer that closes without a word is not reported: a probe whether this port is open does that.
    const auto found = connections_.find(id);
    if (found != connections_.end() && error.code != Code::peer_lost) {
      if (!claims) claims = claims_of(*found->second);
      step(rejected_event(id, found->second->peer(), error, std::move(claims)));
    }
    connections_.erase(id);
    step(scheduler_event::Closed{id});
  }

  // Without the port, which is another one for each try; and for readers elsewhere.
  static scheduler_event::Rejected rejected_event(PeerId id, const net::Address& peer, const Error& error,
                                                  std::optional<Member> claims) {
    std::string reason = for_others(replaced(error.message, net::to_string(peer), peer.ip));
    return {.peer = id, .address = peer.ip, .reason = std::move(reason), .claims = std::move(claims)};
  }
  // A certificate that was refused may say for which node it was made: where that one is missing, this is
  // why.
  static std::optional<Member> claims_of(const net::Connection& connection) {
    const net::PeerNames* names = connection.refused_names();
    if (names == nullptr || names->node_ids.size() != 1) return std::nullopt;
    return Member{.role = Role::worker, .node_id = names->node_ids[0], .address = connection.peer().ip};
  }
  static std::string for_others(std::string reason) {
    return replaced(std::move(reason), "this process", "the scheduler");
  }
  static std::string replaced(std::string text, std::string_view words, std::string_view by) {
    if (const auto at = text.find(words); at != std::string::npos) text.replace(at, words.size(), by);
    return text;
  }

  void step(const SchedulerEvent& event) {
    const TimePoint now = real_clock().now();
    for (const SchedulerAction& action : machine_.step(event, now))
      std::visit([this](const auto& a) { apply(a); }, action);
    set_timer();
  }

  void set_timer() {
    const TimePoint due = machine_.deadline();
    if (due == timer_at_) return;
    timer_at_ = due;
    loop_.set_timer(due, [this] {
      timer_at_.reset();
      step(scheduler_event::Tick{});
    });
  }

  void apply(const scheduler_action::Send& send) {
    const auto found = connections_.find(send.peer);
    if (found == connections_.end()) return;
    if (std::holds_alternative<message::Accept>(send.message.body)) found->second->admit();
    if (const auto* echo = std::get_if<message::Echo>(&send.message.body))
      return found->second->send(encode({send.message.job_id, send.message.epoch, stamped(*echo)}));
    found->second->send(encode(send.message));
  }

  void apply(const scheduler_action::Share& share) {
    const auto found = connections_.find(share.peer);
    if (found != connections_.end()) found->second->send_shared(encode_once(share.message));
  }

  // A job goes on although its scheduler could not be started again: that is worth an error, not the job.
  void apply(const scheduler_action::Record& action) {
    if (log_ == nullptr) return;
    if (const auto written = log_->append(action.record); !written)
      log::error(
          fmt::format("{}: should the scheduler die now, the job cannot go on", written.error().message));
  }

  using Frame = std::shared_ptr<const std::vector<std::byte>>;
  static Frame encode(const Message& message) {
    return std::make_shared<const std::vector<std::byte>>(encode_message(message));
  }

  // For as long as the machine keeps the message.
  Frame encode_once(const std::shared_ptr<const Message>& message) {
    std::erase_if(encoded_, [](const auto& entry) { return entry.first.expired(); });
    for (const auto& [known, frame] : encoded_)
      if (known.lock() == message) return frame;
    return encoded_.emplace_back(message, encode(*message)).second;
  }

  void apply(const scheduler_action::Close& close) {
    const auto found = connections_.find(close.peer);
    if (found == connections_.end()) return;
    found->second->finish();
    connections_.erase(found);
  }

  void apply(const scheduler_action::Watch& watch) {
    loop_.watch_process(watch.pid, [this, peer = watch.peer](WaitStatus status) {
      step(scheduler_event::Exited{peer, status});
    });
  }

  void apply(const scheduler_action::Log& line) { log::write(line.level, line.text); }

  void apply(const scheduler_action::End&) { loop_.stop(); }

  // Nodes close their connections as soon as they know; closing ours first could cut off their last word.
  void say_goodbye() {
    listeners_.clear();
    std::erase_if(connections_, [](const auto& entry) { return entry.second->is_unauthenticated(); });
    const TimePoint deadline = real_clock().now() + goodbye_time;
    while (!connections_.empty() && real_clock().now() < deadline) loop_.run_for(milliseconds(5));
  }

  const Settings& settings_;
  const SchedulerOptions& options_;
  const std::unique_ptr<RecoveryLog> log_;
  const std::shared_ptr<const net::Security> security_;
  SchedulerMachine machine_;
  net::Loop loop_;
  std::vector<std::unique_ptr<net::ConnectionListener>> listeners_;
  std::map<PeerId, std::unique_ptr<net::Connection>> connections_;
  PeerId next_peer_ = 1;
  std::optional<TimePoint> timer_at_ = {};
  std::vector<std::pair<std::weak_ptr<const Message>, Frame>> encoded_;
};

}  // namespace

std::optional<Failure> run_scheduler(const Settings& settings, const SchedulerOptions& options) {
  log::set_name("scheduler");
  if (const auto prepared = prepare_recovery_path(settings); !prepared) return failure_from(prepared.error());
  auto security = open_security(settings.security, settings.strict);
  if (!security) return failure_from(security.error());
  std::unique_ptr<RecoveryLog> log;
  if (settings.enable_recovery) {
    auto opened = open_log(settings, options);
    if (!opened) return failure_from(opened.error());
    log = *std::move(opened);
  }
  SchedulerDriver driver(settings, options, std::move(log), *std::move(security));
  if (const auto listening = driver.listen(); !listening) return failure_from(listening.error());
  return driver.run();
}

}  // namespace muster::cluster
