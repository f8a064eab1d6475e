#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <thread>

#include "muster/server/parameter_client.h"
#include "muster/server/table.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/server/servers.h"
#include "tests/unit/server/small_jobs.h"

namespace muster::server {
namespace {
namespace transport_test {

using namespace small_jobs;
using namespace std::chrono_literals;

TEST(ParameterServers, GiveTheSameBitsOnAnyNumberOfServers) {
  for (const Sharding sharding : {Sharding::ranges, Sharding::hash, Sharding::whole}) {
    const std::vector<float> one = trained(2, 1, adam_table(sharding));
    EXPECT_EQ(trained(2, 3, adam_table(sharding)), one);
    EXPECT_EQ(trained(2, 3, adam_table(sharding)), one);
  }
}

TEST(ParameterServers, ApplyTheMeanOfAllWorkersInTheOrderOfRanks) {
  // The same by hand, on one table.
  Table table = Table::make(adam_table(), {}).value();
  const std::uint64_t id = 3;
  std::vector<float> gradient(width, (1e8F + 3.0F) / 2);
  ASSERT_TRUE(table.update(std::span(&id, 1), gradient, {.learning_rate = 0.1F, .steps = 0}));
  std::vector<float> expected(width);
  ASSERT_TRUE(table.read(std::span(&id, 1), expected));

  const auto running = servers_of(1, {.worker_num = 2, .staleness = 0});
  std::deque<Worker> workers;
  std::vector<float> rows(width);
  const auto push = [&](std::uint32_t worker, float value) {
    const std::vector<float> values(width, value);
    const ParameterClient::Gradient each{.learning_rate = 0.1F, .ids = std::span(&id, 1), .values = values};
    EXPECT_TRUE(workers[worker].client().push(std::span(&each, 1)));
  };
  for (std::uint32_t i = 0; i < 2; ++i) workers.emplace_back(i, addresses_of(running)).begin(adam_table());
  push(1, 3);
  push(0, 1e8F);
  EXPECT_TRUE(workers[0].client().flush());
  EXPECT_TRUE(workers[1].client().flush());
  const ParameterClient::Lookup lookup{.ids = std::span(&id, 1), .rows = rows};
  ASSERT_TRUE(workers[1].client().pull(1, std::span(&lookup, 1)));
  EXPECT_EQ(rows, expected);
}

TEST(ParameterServers, CorrectAdamByTheStepsOfItsOwnOptimizer) {
  Table table = Table::make(adam_table(), {}).value();
  const std::uint64_t id = 3;
  const std::vector<float> gradient(width, 0.5F);
  ASSERT_TRUE(table.update(std::span(&id, 1), gradient, {.learning_rate = 0.1F, .steps = 7}));
  std::vector<float> expected(width), rows(width);
  ASSERT_TRUE(table.read(std::span(&id, 1), expected));

  const auto running = servers_of(1, {.worker_num = 1, .staleness = 0});
  Worker worker(0, addresses_of(running));
  worker.begin(adam_table());
  const ParameterClient::Gradient pushed{
      .learning_rate = 0.1F, .steps = 7, .ids = std::span(&id, 1), .values = gradient};
  ASSERT_TRUE(worker.client().push(std::span(&pushed, 1)));
  const ParameterClient::Lookup lookup{.ids = std::span(&id, 1), .rows = rows};
  ASSERT_TRUE(worker.client().pull(1, std::span(&lookup, 1)));
  EXPECT_EQ(rows, expected);
}

TEST(ParameterServers, LetWorkersRunAheadByTheStaleness) {
  EXPECT_EQ(trained(2, 2, adam_table(), 2).size(), vocabulary * width);
  EXPECT_EQ(trained(2, 2, adam_table(), std::nullopt).size(), vocabulary * width);
}

TEST(ParameterServers, GiveTheSameBitsForRowsThatAreAskedForAhead) {
  const Ways ways{.looks_ahead = true};
  for (const Sharding sharding : {Sharding::ranges, Sharding::hash}) {
    const std::vector<float> expected = trained(2, 1, adam_table(sharding));
    for (const std::uint32_t servers : {1, 3}) {
      ParameterClient::Counts counts;
      EXPECT_EQ(trained(2, servers, adam_table(sharding), 0, 12, ways, &counts), expected);
      // All rows but those of the first step.
      EXPECT_GT(counts.from_ahead, counts.looked_up * 10 / 12);
      EXPECT_LT(counts.from_ahead, counts.looked_up);
    }
  }
}

TEST(ParameterServers, GiveTheSameBitsWithACacheAndUseItAsLongAsTheStalenessAllows) {
  const std::vector<float> expected = trained(2, 2, adam_table());
  for (const std::size_t cached_rows : {3, 1000}) {
    ParameterClient::Counts counts;
    EXPECT_EQ(trained(2, 2, adam_table(), 0, 12, {.cached_rows = cached_rows}, &counts), expected);
    EXPECT_EQ(counts.from_cache, 0U);
    EXPECT_EQ(trained(2, 2, adam_table(), 0, 12, {.cached_rows = cached_rows, .looks_ahead = true}),
              expected);
    trained(2, 2, adam_table(), 2, 12, {.cached_rows = cached_rows}, &counts);
    EXPECT_GT(counts.from_cache, 0U);
    trained(2, 2, adam_table(), std::nullopt, 12, {.cached_rows = cached_rows}, &counts);
    EXPECT_EQ(counts.from_cache, 0U);
  }
}

TEST(ParameterServers, AreNotAskedAgainForCachedRowsOfOneStep) {
  const auto running = servers_of(2, {.worker_num = 1});
  Worker worker(0, addresses_of(running), 20s, {.cached_rows = vocabulary});
  worker.begin(adam_table());
  worker.train(0, 3);
  const std::vector<float> rows = worker.rows(3);
  const std::uint64_t before = worker.client().counts().from_cache;
  EXPECT_EQ(worker.rows(3), rows);
  EXPECT_EQ(worker.client().counts().from_cache, before + vocabulary);
  worker.train(3, 4);
  EXPECT_NE(worker.rows(4), rows);
}

TEST(ParameterServers, ListAllRowsOfATableThatTakesAnyNumber) {
  const std::uint64_t far = std::uint64_t{1} << 40;
  for (const std::uint32_t servers : {1, 3}) {
    const auto running = servers_of(servers, {.worker_num = 1});
    Worker worker(0, addresses_of(running));
    TableSpec spec = adam_table(Sharding::hash);
    spec.width = 1 << 14;
    worker.begin(spec);
    EXPECT_TRUE(worker.client().list_rows(0, 0)->ids.empty());
    // More than one answer tells.
    const std::uint64_t count = 2 * servers * (std::uint64_t{4} << 20) / (sizeof(float) * spec.width) + 10;
    Ids ids(count);
    for (std::uint64_t i = 0; i < count; ++i) ids[i] = i * far / count;
    const std::vector<float> gradients(count * spec.width, 1.0F);
    const ParameterClient::Gradient gradient{.learning_rate = 0.1F, .ids = ids, .values = gradients};
    ASSERT_TRUE(worker.client().push(std::span(&gradient, 1)));
    const auto listed = worker.client().list_rows(1, 0);
    ASSERT_TRUE(listed) << listed.error().message;
    EXPECT_EQ(listed->ids, ids);
    std::vector<float> rows(count * spec.width);
    const ParameterClient::Lookup lookup{.ids = ids, .rows = rows};
    ASSERT_TRUE(worker.client().pull(1, std::span(&lookup, 1)));
    EXPECT_EQ(listed->values, rows);
  }
}

TEST(ParameterServers, NameWhatIsWrongWithABatch) {
  const auto running = servers_of(1, {.worker_num = 1});
  Worker worker(0, addresses_of(running));
  worker.begin(adam_table());
  const Ids ids{1, 50};
  std::vector<float> rows(2 * width);
  const ParameterClient::Lookup lookup{.ids = ids, .rows = rows};
  EXPECT_THAT(worker.client().pull(0, std::span(&lookup, 1)).error().message,
              Mentions("embedding", "0 to 49", "id 50", "place 1"));
  const Ids good{7, 8};
  rows[4] = std::numeric_limits<float>::quiet_NaN();
  const ParameterClient::Gradient gradient{.learning_rate = 1, .ids = good, .values = rows};
  EXPECT_THAT(worker.client().push(std::span(&gradient, 1)).error().message,
              Mentions("row 8", "embedding", "nan", "step 0"));
  worker.train(0, 2);  // nothing of that was sent
}

TEST(ParameterServers, RefuseTablesThatDifferBetweenWorkers) {
  const auto running = servers_of(1, {.worker_num = 2});
  Worker first(0, addresses_of(running)), second(1, addresses_of(running));
  const Ids ids{1};
  std::vector<float> rows(width);
  const ParameterClient::Lookup lookup{.ids = ids, .rows = rows};
  first.begin(adam_table());
  ASSERT_TRUE(first.client().pull(0, std::span(&lookup, 1)));  // so the server has the first one's table
  TableSpec other = adam_table();
  other.rule.beta1 = 0.5;
  ASSERT_TRUE(second.client().add_table(other));
  (void)second.client().begin(1, 0);
  EXPECT_THAT(second.client().pull(0, std::span(&lookup, 1)).error().message,
              Mentions("embedding", "differs between workers"));
}

TEST(ParameterServers, AreWaitedForUntilTheDeadline) {
  const auto reserved = net::PortReservation::open("127.0.0.1");
  Worker worker(0, {{.ip = "127.0.0.1", .port = reserved->port()}}, 200ms);
  ASSERT_TRUE(worker.client().add_table(adam_table()));
  EXPECT_THAT(worker.client().begin(1, 0).error().message,
              Mentions("worker 0", "server 0", fmt::format("127.0.0.1:{}", reserved->port()), "refused"));
}

// ---- Servers that die

// At another address, of which the worker is told.
void start_again(std::unique_ptr<ServerProcess>& server, const ParameterServer::Options& options,
                 Worker& worker) {
  server = std::make_unique<ServerProcess>(options);
  worker.client().set_address(0, server->address());
}

TEST(ParameterServers, HaveTheirRowsAgainWhenTheyWereKilled) {
  const std::vector<float> expected = trained(1, 1, adam_table());
  const LogFolder folder;
  ParameterServer::Options options = options_of({}, {.worker_num = 1});
  options.log_path = folder.log();
  auto server = std::make_unique<ServerProcess>(options);
  Worker worker(0, {server->address()});
  worker.begin(adam_table());
  worker.train(0, 5);
  server->kill();
  start_again(server, options, worker);
  worker.train(5, 9);
  server->kill();
  start_again(server, options, worker);
  worker.train(9, 12);
  EXPECT_EQ(worker.rows(12), expected);
  EXPECT_TRUE(worker.client().flush());
}

TEST(ParameterServers, GiveRowsThatWereAskedForAheadAlsoWhenTheyWereKilled) {
  const std::vector<float> expected = trained(1, 1, adam_table());
  const LogFolder folder;
  ParameterServer::Options options = options_of({}, {.worker_num = 1});
  options.log_path = folder.log();
  auto server = std::make_unique<ServerProcess>(options);
  Worker worker(0, {server->address()}, 20s, {.cached_rows = 20, .looks_ahead = true});
  worker.begin(adam_table());
  worker.train(0, 5);
  server->kill();
  start_again(server, options, worker);
  worker.train(5, 9, [&] {  // between what is asked for ahead and its step
    server->kill();
    start_again(server, options, worker);
  });
  worker.train(9, 12);
  EXPECT_EQ(worker.rows(12), expected);
}

TEST(ParameterServers, TellWhatTheyHaveAndWhoseGradientsTheyLack) {
  const auto running = servers_of(1, {.worker_num = 2});
  Worker first(0, addresses_of(running)), second(1, addresses_of(running));
  first.begin(adam_table());
  second.begin(adam_table());
  first.train(0, 1);
  std::thread waiting([&] { first.rows(1); });
  ParameterServer::State state;
  for (const auto told = running[0].watch(); state.waiting.workers == 0; state = told())
    std::this_thread::yield();
  EXPECT_EQ(state.updates, 0U);
  EXPECT_EQ(state.waiting.missing, 1U);
  EXPECT_EQ(state.waiting.first_missing, 1U);
  second.train(0, 1);
  waiting.join();
  second.rows(1);
  state = running[0].watch()();
  EXPECT_EQ(state.updates, 1U);
  EXPECT_EQ(state.waiting.workers, 0U);
  EXPECT_GT(state.rows, batch / 2);
  EXPECT_EQ(state.size_bytes, state.rows * row_size_bytes(adam_table()));
}

TEST(ParameterServers, TellOfTablesThatTheyHaveNoMemoryFor) {
  ParameterServer::Options options = options_of({.server = 0, .servers = 1}, {.worker_num = 1});
  options.memory_bytes = share_size_bytes(adam_table(), 1);
  options.refuses_large_tables = true;
  const RunningServer server(options);
  Worker worker(0, {server.address()});
  worker.begin(adam_table());
  worker.train(0, 1);
  TableSpec second = adam_table();
  second.name = "other";
  ASSERT_TRUE(worker.client().add_table(second));
  const auto refused = worker.client().pull(1, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              Mentions("GiB on parameter server 0", "'other'", "50 rows of 36 bytes"));
}

TEST(ParameterServers, GetAgainWhatTheyLack) {
  const std::vector<float> expected = trained(1, 1, adam_table());
  const LogFolder folder;
  ParameterServer::Options options = options_of({}, {.worker_num = 1});
  options.log_path = folder.log();
  auto server = std::make_unique<ServerProcess>(options);
  Worker worker(0, {server->address()});
  worker.begin(adam_table());
  worker.train(0, 11);
  worker.train(11, 12, [&] { server->stop(); });  // it will never see this push
  server->kill();
  start_again(server, options, worker);
  EXPECT_EQ(worker.rows(12), expected);
}

// Each of them may be killed whenever it likes: before a base, while rows are written down, after it.
TEST(ParameterServers, BeginWithTheirBaseAndForgetTheLogBeforeIt) {
  for (const Sharding sharding : {Sharding::ranges, Sharding::hash}) {
    const std::vector<float> expected = trained(1, 1, adam_table(sharding), 0, 60);
    const LogFolder folder;
    ParameterServer::Options options = options_of({}, {.worker_num = 1});
    options.log_path = folder.log();
    options.log_limit_bytes = 1;
    auto server = std::make_unique<ServerProcess>(options);
    Worker worker(0, {server->address()});
    worker.begin(adam_table(sharding));
    for (std::uint64_t step = 0; step < 60; ++step) {
      worker.train(step, step + 1);
      if (step % 5 == 4) {
        EXPECT_TRUE(worker.client().flush());
        worker.client().set_common_point(step + 1);
      }
      if (step % 7 != 6) continue;
      server->kill();
      start_again(server, options, worker);
    }
    EXPECT_EQ(worker.rows(60), expected);
    // How many steps a base takes is the disk's to say: none may have been whole before a kill.
    const auto is_cut_off = [&] {
      return std::filesystem::exists(folder.log() + ".base") && !std::filesystem::exists(folder.log() + ".0");
    };
    for (std::uint64_t step = 60; step < 5'000 && !is_cut_off(); ++step) {
      worker.train(step, step + 1);
      EXPECT_TRUE(worker.client().flush());
      worker.client().set_common_point(step + 1);
    }
    EXPECT_TRUE(is_cut_off());
  }
}

TEST(ParameterServers, NameRowsThatAreDamaged) {
  const LogFolder folder;
  ParameterServer::Options options = options_of({}, {.worker_num = 1});
  options.log_path = folder.log();
  options.log_limit_bytes = 1;
  {
    const RunningServer server(options);
    Worker worker(0, {server.address()});
    worker.begin(adam_table());
    for (std::uint64_t step = 0; !std::filesystem::exists(folder.log() + ".base"); ++step) {
      worker.train(step, step + 1);
      EXPECT_TRUE(worker.client().flush());
      worker.client().set_common_point(step + 1);
    }
  }
  const auto size = std::filesystem::file_size(folder.log() + ".base");
  const auto reopened = [&] {
    net::Loop loop;
    const auto server = ParameterServer::open(loop, options);
    return server ? std::string() : server.error().message;
  };
  std::fstream file(folder.log() + ".base", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(size) - 9);
  file.put('x').flush();
  EXPECT_THAT(reopened(), Mentions("pushes.base", "embedding", "damaged", "MUSTER_FRESH=1"));
  std::filesystem::resize_file(folder.log() + ".base", size - 20);
  EXPECT_THAT(reopened(), Mentions("pushes.base", "ends", "MUSTER_FRESH=1"));
}

TEST(ParameterServers, NameALogOfAnotherVersion) {
  const LogFolder folder;
  ParameterServer::Options options = options_of({}, {.worker_num = 1});
  options.log_path = folder.log();
  {
    const RunningServer server(options);
    Worker worker(0, {server.address()});
    worker.begin(adam_table());
    worker.train(0, 2);
    EXPECT_TRUE(worker.client().flush());
  }
  std::fstream file(folder.log() + ".0", std::ios::in | std::ios::out | std::ios::binary);
  net::FrameHeaderBytes bytes;
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  net::FrameHeader header = net::decode_header(bytes, 1 << 20).value();
  EXPECT_EQ(header.flags, 4U << 8);
  header.flags = 1U << 8;
  bytes = net::encode_header(header);
  file.seekp(0)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()))
      .flush();
  net::Loop loop;
  const auto server = ParameterServer::open(loop, options);
  ASSERT_FALSE(server);
  EXPECT_THAT(server.error().message, Mentions("pushes.0", "older version", "MUSTER_FRESH=1"));
}

TEST(ParameterServers, GoBackWithTheirWorkers) {
  const std::vector<float> expected = trained(1, 1, adam_table());
  const LogFolder folder;
  ParameterServer::Options options = options_of({}, {.worker_num = 1});
  options.log_path = folder.log();
  const RunningServer server(options);
  {
    Worker lost(0, {server.address()});
    lost.begin(adam_table());
    lost.train(0, 9);
    EXPECT_TRUE(lost.client().flush());
  }
  Worker worker(0, {server.address()});
  worker.begin(adam_table(), 2, 4);  // its point was of step 4
  worker.train(4, 12);
  EXPECT_EQ(worker.rows(12), expected);
}

}  // namespace transport_test
}  // namespace
}  // namespace muster::server
