#include "muster/train/server_role.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "muster/server/server.h"
#include "muster/train/parameter_servers.h"
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

// A finished job's log and rows are of no use.
void remove_files(const std::filesystem::path& log_path) {
  const std::string beginning = log_path.filename().string() + ".";
  std::error_code ignored;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(log_path.parent_path(), ignored))
    if (entry.path().filename().string().starts_with(beginning)) found.push_back(entry.path());
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

Result<std::unique_ptr<server::ParameterServer>> open(net::Loop& loop, const cluster::Settings& settings,
                                                      const cluster::Registration& registration,
                                                      const cluster::Node& node,
                                                      const std::string& log_path) {
  const auto roster = node.roster();
  return server::ParameterServer::open(
      loop, {.address = {.ip = registration.address, .port = registration.data_port},
             .job_id = roster->job_id,
             .share = {.server = node.rank(), .servers = settings.server_num},
             .config = {.worker_num = settings.worker_num, .staleness = parameter_servers().staleness},
             .log_path = log_path,
             .log_limit_bytes = settings.server_log_bytes,
             .memory_bytes = memory_left_bytes(servers_here(*roster, node.rank())),
             .refuses_large_tables = settings.strict,
             .security = {.security = registration.security}});
}

}  // namespace

std::optional<cluster::Failure> serve_parameters(const cluster::Settings& settings,
                                                 const cluster::Registration& registration,
                                                 cluster::Node& node,
                                                 const cluster::Interrupted& interrupted) {
  node.on_epoch({.lost = [&registration](const cluster::Failure&) -> Result<cluster::DataEndpoint> {
                   return cluster::DataEndpoint{registration.data_port, registration.local_name};
                 },
                 .formed = [](const std::shared_ptr<const cluster::Roster>&) {}});
  const auto give_up = [&node](const Error& error) {
    const cluster::Failure failure = cluster::failure_from(error);
    node.leave(failure.exit_code, failure.message);
    return failure;
  };
  const auto log_path = log_of(settings, node);
  if (!log_path) return give_up(log_path.error());
  net::Loop loop;
  auto server = open(loop, settings, registration, node, *log_path);
  if (!server) return give_up(server.error());
  node.on_beat([state = (*server)->watch()] { return activity_of(state()); });
  std::atomic<bool> has_stopped = false;
  std::thread thread([&] {
    loop.run();
    has_stopped = true;
  });
  auto failure = node.wait([&] { return has_stopped || (interrupted && interrupted()); });
  loop.post([&loop] { loop.stop(); });
  thread.join();
  if (const auto& trouble = (*server)->failure()) return give_up(*trouble);
  if (failure || log_path->empty()) return failure;
  remove_files(*log_path);
  return failure;
}

}  // namespace muster::train
