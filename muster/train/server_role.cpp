#include "muster/train/server_role.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "muster/base/termination.h"
#include "muster/server/server.h"
#include "muster/train/parameter_servers.h"
#include "muster/train/row_files.h"
#include "muster/train/server_copies.h"
#include "muster/train/server_memory.h"

namespace muster::train {
namespace {

// Where processes may come back, a server keeps what was pushed: how its files beside the workers' folders
// begin.
Result<std::string> log_of(const cluster::Settings& settings, const cluster::Node& node) {
  const auto roster = node.roster();
  if (!roster->recovers) return std::string();
  const std::string folder = fmt::format("{}/{:016x}", settings.recovery_path, roster->job_id);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(Code::io,
                fmt::format("parameter server {} cannot make its folder '{}' (MS_RECOVERY_PATH): {}",
                            node.rank(), folder, error.message()));
  return fmt::format("{}/server_{}", folder, node.rank());
}

// Its own files, and those of copies that it has.
bool belongs_to(const std::filesystem::path& log_path, const std::string& file) {
  const std::string own = log_path.filename().string();
  return file.starts_with(own + ".") || file.starts_with(own + "_copy_");
}

// Of a server that comes back and finds nothing: where it had rows, the job cannot go on without them.
void warn_of_lost_rows(const std::string& log_path, const cluster::Settings& settings,
                       const cluster::Node& node) {
  const std::uint64_t epoch = node.roster()->epoch;
  if (log_path.empty() || epoch == 1 || settings.server_copies > 1) return;
  const std::filesystem::path path(log_path);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), ignored))
    if (belongs_to(path, entry.path().filename().string())) return;
  log::warning(fmt::format(
      "parameter server {} finds no rows in '{}' (MS_RECOVERY_PATH), and the job has begun before (cluster "
      "epoch {}): if it had kept some, its folder was removed or is another one: bring back the one that it "
      "had",
      node.rank(), path.parent_path().string(), epoch));
}

// A finished job's log and rows are of no use: neither its own nor those of which it has a copy.
void remove_files(const std::filesystem::path& log_path) {
  std::error_code ignored;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(log_path.parent_path(), ignored))
    if (belongs_to(log_path, entry.path().filename().string())) found.push_back(entry.path());
  for (const std::filesystem::path& file : found) std::filesystem::remove(file, ignored);
}

std::uint32_t servers_here(const cluster::Roster& roster, std::uint32_t rank) {
  const std::string_view here = cluster::host_of(roster.servers[rank]);
  return static_cast<std::uint32_t>(std::ranges::count(roster.servers, here, cluster::host_of));
}

cluster::Activity activity_of(const server::ParameterServer::State& state) {
  return {.phase = cluster::WorkPhase::serving,
          .awaited = {.first = state.waiting.first_missing, .count = state.waiting.missing},
          .serving = {.rows = state.rows,
                      .size_bytes = state.size_bytes,
                      .updates = state.updates,
                      .waiting = state.waiting.workers}};
}

// Of copies that would go with one host while other servers are elsewhere.
void warn_of_copies_on_one_host(const cluster::Roster& roster, std::uint32_t copies) {
  const auto risks = copies_on_one_host(roster, copies);
  if (risks.empty()) return;
  std::vector<std::string> pairs;
  for (const auto& [server, other] : risks) pairs.push_back(fmt::format("{} and {}", server, other));
  log::warning(
      fmt::format("MUSTER_SERVER_COPIES={}: both copies of some rows are on one host (servers {}): who loses "
                  "that host loses them; give servers whose numbers follow each other (MS_NODE_ID=0, 1, ...) "
                  "to different hosts",
                  copies, fmt::join(pairs, ", ")));
}

std::vector<net::Address> addresses_in(const cluster::Roster& roster) {
  std::vector<net::Address> addresses;
  for (const cluster::Member& each : roster.servers)
    addresses.push_back({.ip = each.address, .port = each.data_port});
  return addresses;
}

// How a server lives until its job ends. Workers that are told to end, as servers may be at the same time,
// may have to save before (OnRequestExit): they need all servers for that. In a job that recovers no worker
// trains while a process is missing.
class ServersLife {
 public:
  // `formed` is told of each new epoch.
  ServersLife(cluster::Node& node, const cluster::Registration& registration,
              const std::function<void(std::shared_ptr<const cluster::Roster>)>& formed)
      : node_(node) {
    node.on_epoch({.lost = [trains = trains_, endpoint = cluster::DataEndpoint{registration.data_port,
                                                                               registration.local_name}](
                               const cluster::Failure&) -> Result<cluster::DataEndpoint> {
                     *trains = false;
                     return endpoint;
                   },
                   .formed =
                       [trains = trains_, formed](std::shared_ptr<const cluster::Roster> roster) {
                         *trains = true;
                         formed(std::move(roster));
                       }});
  }

  // Until the job has ended, or `is_over`.
  std::optional<cluster::Failure> wait(const std::function<bool()>& is_over) {
    return node_.wait([&] {
      termination_.look(*trains_, real_clock().now());
      return is_over();
    });
  }
  // By the signal, where this process was told to end and its job has failed.
  void end(const std::optional<cluster::Failure>& failure) {
    if (failure && termination_.is_asked(real_clock().now())) termination_.end_process();
  }

 private:
  cluster::Node& node_;
  std::shared_ptr<std::atomic<bool>> trains_ = std::make_shared<std::atomic<bool>>(true);
  Termination termination_;
};

// Whether the job is over for a server although no scheduler says so: all workers have left, and none has
// come back for as long as they would wait for one.
class LeftAlone {
 public:
  LeftAlone(const cluster::Node& node, std::function<server::ParameterServer::State()> watch,
            Duration patience)
      : node_(node), watch_(std::move(watch)), patience_(patience) {}

  bool is_so(TimePoint now) {
    if (node_.has_scheduler() || !watch_().have_workers_left)
      since_.reset();
    else if (!since_)
      since_ = now;
    return since_ && now - *since_ >= patience_;
  }

 private:
  const cluster::Node& node_;
  std::function<server::ParameterServer::State()> watch_;
  Duration patience_;
  std::optional<TimePoint> since_;
};

// How a server finds another one: both may be started again elsewhere.
class OtherServers {
 public:
  explicit OtherServers(std::shared_ptr<const cluster::Roster> roster) : roster_(std::move(roster)) {}

  void formed(std::shared_ptr<const cluster::Roster> roster) {
    const std::lock_guard lock(mutex_);
    roster_ = std::move(roster);
    tell();
  }
  // Null: it is about to end.
  void set_server(server::ParameterServer* server) {
    const std::lock_guard lock(mutex_);
    server_ = server;
    tell();
  }
  net::ConnectionSecurity security_of(const std::shared_ptr<const net::Security>& security,
                                      std::uint32_t server) {
    const std::lock_guard lock(mutex_);
    return {.security = security,
            .expected = cluster::identity_of(roster_->servers[server]),
            .peer_name = fmt::format("server {}", server)};
  }

 private:
  void tell() {
    if (server_ == nullptr) return;
    const std::vector<net::Address> addresses = addresses_in(*roster_);
    for (std::uint32_t server = 0; server < addresses.size(); ++server)
      server_->set_address(server, addresses[server]);
  }

  std::mutex mutex_;
  std::shared_ptr<const cluster::Roster> roster_;
  server::ParameterServer* server_ = nullptr;
};

Result<std::unique_ptr<server::ParameterServer>> open(net::Loop& loop, const cluster::Settings& settings,
                                                      const cluster::Registration& registration,
                                                      const cluster::Node& node,
                                                      const std::shared_ptr<OtherServers>& others,
                                                      const std::string& log_path) {
  const auto roster = node.roster();
  return server::ParameterServer::open(
      loop, {.address = {.ip = registration.address, .port = registration.data_port},
             .job_id = roster->job_id,
             .share = {.server = node.rank(), .servers = settings.server_num},
             .config = {.worker_num = settings.worker_num, .staleness = parameter_servers().staleness},
             .copies = settings.server_copies,
             .servers = addresses_in(*roster),
             .generation = roster->epoch,
             .security_of = [others, security = registration.security](
                                std::uint32_t server) { return others->security_of(security, server); },
             .log_path = log_path,
             .log_limit_bytes = settings.server_log_bytes,
             .memory_bytes = memory_left_bytes(servers_here(*roster, node.rank())),
             .refuses_large_tables = settings.strict,
             .files = row_files(),
             .security = {.security = registration.security}});
}

}  // namespace

std::optional<cluster::Failure> serve_parameters(const cluster::Settings& settings,
                                                 const cluster::Registration& registration,
                                                 cluster::Node& node,
                                                 const cluster::Interrupted& interrupted) {
  const auto others = std::make_shared<OtherServers>(node.roster());
  ServersLife life(node, registration, [others](std::shared_ptr<const cluster::Roster> roster) {
    others->formed(std::move(roster));
  });
  others->formed(node.roster());  // where one was formed just now
  if (node.rank() == 0) warn_of_copies_on_one_host(*node.roster(), settings.server_copies);
  const auto give_up = [&node](const Error& error) {
    const cluster::Failure failure = cluster::failure_from(error);
    node.leave(failure.exit_code, failure.message);
    return failure;
  };
  const auto log_path = log_of(settings, node);
  if (!log_path) return give_up(log_path.error());
  warn_of_lost_rows(*log_path, settings, node);
  net::Loop loop;
  auto server = open(loop, settings, registration, node, others, *log_path);
  if (!server) return give_up(server.error());
  others->set_server(server->get());
  node.on_beat([state = (*server)->watch()] { return activity_of(state()); });
  std::atomic<bool> has_stopped = false;
  std::thread thread([&] {
    loop.run();
    // Before wait() looks: it would say that a signal has interrupted this process.
    if (const auto& trouble = (*server)->failure()) give_up(*trouble);
    has_stopped = true;
  });
  LeftAlone alone(node, (*server)->watch(), settings.node_timeout);
  bool is_alone = false;
  auto failure = life.wait([&] {
    is_alone = alone.is_so(real_clock().now());
    if (is_alone) node.leave(0, {});
    return is_alone || has_stopped || (interrupted && interrupted());
  });
  others->set_server(nullptr);
  loop.post([&loop] { loop.stop(); });
  thread.join();
  if (const auto& trouble = (*server)->failure()) return give_up(*trouble);
  if (is_alone) return std::nullopt;  // who starts the job again finds the rows
  life.end(failure);
  if (failure || log_path->empty()) return failure;
  remove_files(*log_path);
  return failure;
}

std::optional<cluster::Failure> serve_nothing(const cluster::Registration& registration, cluster::Node& node,
                                              const cluster::Interrupted& interrupted) {
  log::warning(
      "this parameter server holds nothing: the script does not call set_ps_context(enable_ps=True) before "
      "init()");
  ServersLife life(node, registration, [](const std::shared_ptr<const cluster::Roster>&) {});
  auto failure = life.wait([&] { return interrupted && interrupted(); });
  life.end(failure);
  return failure;
}

}  // namespace muster::train
