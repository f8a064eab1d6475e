#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "tests/unit/base/mentions.h"
#include "tests/unit/server/small_jobs.h"

// Each row on two parameter servers.
namespace muster::server {
namespace {
namespace copies_test {

using namespace small_jobs;
using namespace std::chrono_literals;

TEST(ParameterServers, GiveTheSameBitsWithEachRowOnTwoOfThem) {
  for (const Sharding sharding : {Sharding::ranges, Sharding::hash, Sharding::whole}) {
    const std::vector<float> one = trained(2, 1, adam_table(sharding));
    EXPECT_EQ(trained(2, 2, adam_table(sharding), 0, 12, {.copies = 2}), one);
    EXPECT_EQ(trained(2, 3, adam_table(sharding), 0, 12, {.looks_ahead = true, .copies = 2}), one);
  }
}

TEST(ParameterServers, AreAtLeastAsManyAsEachRowHasCopies) {
  net::Loop loop;
  ParameterServer::Options options = options_of({.server = 0, .servers = 1}, {.worker_num = 1});
  options.copies = 2;
  const auto server = ParameterServer::open(loop, options);
  ASSERT_FALSE(server);
  EXPECT_THAT(server.error().message, Mentions("1 to 1", "not on 2", "MUSTER_SERVER_COPIES"));
}

// Two servers in processes of their own, each with a disk; each row is on both.
class PairOfServers {
 public:
  explicit PairOfServers(std::uint64_t log_limit_bytes = std::uint64_t{1} << 20)
      : log_limit_bytes_(log_limit_bytes) {
    for (auto& port : ports_) port = net::PortReservation::open("127.0.0.1").value();
    for (std::uint32_t i = 0; i < 2; ++i) start(i, 1);
  }
  std::vector<net::Address> addresses() const {
    std::vector<net::Address> all;
    for (const auto& port : ports_) all.push_back({.ip = "127.0.0.1", .port = port->port()});
    return all;
  }
  void kill(std::uint32_t server) { servers_[server].reset(); }
  void lose_disk(std::uint32_t server) const { folders_[server].clear(); }
  const LogFolder& folder(std::uint32_t server) const { return folders_[server]; }
  void start(std::uint32_t server, std::uint64_t generation) {
    ParameterServer::Options options = options_of({.server = server, .servers = 2}, {.worker_num = 1});
    options.address = addresses()[server];
    options.copies = 2;
    options.servers = addresses();
    options.generation = generation;
    options.log_path = folders_[server].log();
    options.log_limit_bytes = log_limit_bytes_;
    servers_[server] = std::make_unique<ServerProcess>(std::move(options));
  }

 private:
  std::uint64_t log_limit_bytes_;
  std::array<std::optional<net::PortReservation>, 2> ports_;
  std::array<LogFolder, 2> folders_;
  std::array<std::unique_ptr<ServerProcess>, 2> servers_;
};

void begin_again(Worker& worker, std::uint64_t generation, std::uint64_t step) {
  const Result<> begun = worker.client().begin(generation, step);
  ASSERT_TRUE(begun) << begun.error().message;
}

TEST(ParameterServers, HaveTheirRowsAgainOnAnEmptyDisk) {
  for (const Sharding sharding : {Sharding::ranges, Sharding::hash})
    for (const std::uint64_t log_limit : {1 << 20, 1}) {  // from its log alone, and from a base
      const std::vector<float> expected = trained(1, 1, adam_table(sharding), 0, 40);
      PairOfServers servers(log_limit);
      Worker worker(0, servers.addresses(), 20s, {.copies = 2});
      worker.begin(adam_table(sharding));
      std::uint64_t generation = 1;
      for (std::uint64_t step = 0; step < 40; ++step) {
        worker.train(step, step + 1);
        if (step % 3 == 2) {
          EXPECT_TRUE(worker.client().flush());
          worker.client().set_common_point(step + 1);
        }
        if (step % 9 != 8) continue;
        const auto lost = static_cast<std::uint32_t>(step % 2);
        servers.kill(lost);
        servers.lose_disk(lost);
        servers.start(lost, ++generation);
        begin_again(worker, generation, step + 1);
      }
      EXPECT_EQ(worker.rows(40), expected);
      EXPECT_TRUE(worker.client().flush());
    }
}

TEST(ParameterServers, FetchRowsAnewWhereThatWasInterrupted) {
  const std::vector<float> expected = trained(1, 1, adam_table());
  PairOfServers servers;
  Worker worker(0, servers.addresses(), 20s, {.copies = 2});
  worker.begin(adam_table());
  worker.train(0, 5);
  servers.kill(1);
  servers.lose_disk(1);
  for (const std::string& log : {servers.folder(1).log(), servers.folder(1).log() + "_copy_0"}) {
    std::ofstream(log + ".fetching").put('x');
    std::ofstream(log + ".0").put('x');
    std::ofstream(log + ".base").put('x');
  }
  servers.start(1, 2);
  begin_again(worker, 2, 5);
  EXPECT_TRUE(worker.client().flush());  // so all of it is on its disk
  EXPECT_FALSE(std::filesystem::exists(servers.folder(1).log() + ".fetching"));
  worker.train(5, 12);
  servers.kill(0);
  servers.lose_disk(0);
  servers.start(0, 3);
  begin_again(worker, 3, 12);
  EXPECT_EQ(worker.rows(12), expected);
}

TEST(ParameterServers, SayThatBothHaveLostARow) {
  PairOfServers servers;
  Worker worker(0, servers.addresses(), 20s, {.copies = 2});
  worker.begin(adam_table());
  worker.train(0, 5);
  EXPECT_TRUE(worker.client().flush());
  worker.client().set_common_point(4);
  for (const std::uint32_t server : {0, 1}) servers.kill(server);
  for (const std::uint32_t server : {0, 1}) servers.lose_disk(server);
  for (const std::uint32_t server : {0, 1}) servers.start(server, 2);
  const Result<> begun = worker.client().begin(2, 5);
  ASSERT_FALSE(begun);
  EXPECT_THAT(begun.error().message, Mentions("same rows", "server 0", "server 1"));
}

}  // namespace copies_test
}  // namespace
}  // namespace muster::server
