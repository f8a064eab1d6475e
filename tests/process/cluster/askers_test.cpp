// Thousands who ask a scheduler how its job is, and do not read the answer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "job.h"
#include "muster/cluster/cluster.h"
#include "muster/cluster/recovery_log.h"
#include "muster/cluster/wire.h"
#include "tests/unit/net/authority.h"
#include "unauthorized_peer.h"

namespace muster::process_test {
namespace {

using cluster::message::Status;
using cluster::message::StatusRequest;

constexpr std::uint32_t worker_num = cluster::worker_num_max;
constexpr std::size_t asker_count = 4096;

// A scheduler with so many workers, without so many processes: it was started again, and waits for them.
void write_large_job(const std::string& folder) {
  auto roster = std::make_shared<cluster::Roster>(
      cluster::Roster{.epoch = 1, .job_id = 7, .seed = 1, .recovers = true});
  cluster::record::Formed formed;
  for (std::uint32_t rank = 0; rank < worker_num; ++rank) {
    roster->workers.push_back({.node_id = std::to_string(rank),
                               .rank = rank,
                               .address = fmt::format("10.1.{}.{}", rank / 256, rank % 256),
                               .process_space = "elsewhere",
                               .incarnation = rank + 1,
                               .is_named = true});
    formed.keys.push_back(cluster::key_of(cluster::new_secret(), roster->workers.back()));
  }
  formed.roster = roster;
  const auto bytes =
      cluster::write_log({cluster::record::Job{.job_id = 7, .seed = 1, .worker_num = worker_num}, formed});
  ASSERT_TRUE(real_files().write(folder + "/scheduler.log", bytes));
}

std::size_t most_memory_bytes(pid_t pid) {
  std::ifstream lines(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) << 10;
  return 0;
}

std::size_t kernel_memory_of_tcp_bytes() {
  std::ifstream lines("/proc/net/sockstat");
  for (std::string line; std::getline(lines, line);)
    if (const auto at = line.find(" mem "); line.starts_with("TCP:") && at != std::string::npos)
      return std::stoull(line.substr(at + 5)) << 12;
  return 0;
}

std::optional<Status> ask(std::uint16_t port) {
  UnauthorizedPeer unauthorized(port);
  unauthorized.say({0, 0, StatusRequest{}});
  const auto answer = unauthorized.hear();
  if (!answer || !std::holds_alternative<Status>(answer->body)) return std::nullopt;
  return std::get<Status>(answer->body);
}

TEST(Askers, WhoDoNotReadCostLittleHoweverLargeTheJob) {
  net::raise_descriptor_limit();
  const net::testing_only::Folder folder;
  write_large_job(folder.path(""));
  if (HasFatalFailure()) return;
  Job job(worker_num);
  Child scheduler = job.scheduler(
      {{"MS_ENABLE_RECOVERY", "1"}, {"MS_RECOVERY_PATH", folder.path("")}, {"MUSTER_LOG", "error"}});
  std::optional<Status> status;
  for (int tries = 0; tries < 200 && !status; ++tries) {
    status = ask(job.port());
    if (!status) net::Loop().run_for(20ms);
  }
  ASSERT_TRUE(status) << scheduler.output();
  EXPECT_EQ(status->nodes.size(), worker_num);
  const std::size_t before = most_memory_bytes(scheduler.pid());
  const std::size_t kernel_before = kernel_memory_of_tcp_bytes();
  const auto request = cluster::encode_message({0, 0, StatusRequest{}});
  const net::Wait wait{.deadline = real_clock().now() + 20s};
  std::vector<net::Socket> askers;
  std::size_t kernel_most = 0;
  for (std::size_t i = 0; i < asker_count; ++i) {
    auto asker = net::Socket::connect({"127.0.0.1", job.port()}, wait);
    ASSERT_TRUE(asker) << asker.error().message;
    ASSERT_TRUE(asker->send_all(request, wait));
    askers.push_back(*std::move(asker));
    if (i % 64 == 0) kernel_most = std::max(kernel_most, kernel_memory_of_tcp_bytes());
  }
  EXPECT_TRUE(ask(job.port())) << "who reads is answered among them";
  const std::size_t cost = most_memory_bytes(scheduler.pid()) - before;
  fmt::print("{} askers: {:.1f} MiB of the scheduler, {:.1f} MiB of the kernel (both sides)\n", asker_count,
             static_cast<double>(cost) / (1 << 20),
             static_cast<double>(kernel_most - std::min(kernel_before, kernel_most)) / (1 << 20));
#if !defined(__SANITIZE_ADDRESS__)  // which keeps what was freed
  EXPECT_LT(cost, std::size_t{64} << 20);
#endif
}

}  // namespace
}  // namespace muster::process_test
