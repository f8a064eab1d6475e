#include "muster/server/shared_batches.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>

#include "muster/server/parameter_client.h"
#include "tests/unit/server/servers.h"
#include "tests/unit/server/small_jobs.h"

namespace muster::server {
namespace {
namespace shared_batches_test {

using namespace small_jobs;

TEST(PlaceRings, GivePlacesThatDoNotOverlapAndGetAllOfThemBack) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    PlaceRing ring(4096);
    std::map<std::uint64_t, std::uint64_t> taken;  // ends by their begins
    std::uint64_t refused = 0;
    for (int i = 0; i < 400; ++i) {
      if (random() % 2 == 0 && !taken.empty()) {
        const auto one = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
        ring.give_back(one->first);
        taken.erase(one);
        continue;
      }
      const std::uint64_t size = random() % 900;
      const auto place = ring.take(size);
      refused += place ? 0 : 1;
      if (!place) continue;
      ASSERT_EQ(place->size_bytes, size);
      ASSERT_EQ(place->offset % 64, 0U);
      ASSERT_LE(place->offset + size, 4096U);
      for (const auto& [begin, end] : taken)
        ASSERT_TRUE(place->offset >= end || place->offset + size <= begin);
      ASSERT_FALSE(taken.contains(place->offset));
      taken[place->offset] = place->offset + size;
    }
    EXPECT_GT(refused, 0U);
    for (const auto& [begin, end] : taken) ring.give_back(begin);
    ASSERT_TRUE(ring.is_idle());
    ASSERT_TRUE(ring.take(4096));
    ASSERT_FALSE(ring.take(1));
  }
}

TEST(SharedBatches, RefusePlacesThatAreNotTheirs) {
  const SharedBatches batches =
      SharedBatches::create({.token = 5, .to_server_bytes = 4096, .to_worker_bytes = 64}).value();
  EXPECT_TRUE(batches.to_server({.offset = 64, .size_bytes = 4032}));
  EXPECT_TRUE(batches.to_worker({.offset = 0, .size_bytes = 64}));
  for (const SharedPlace& place : {SharedPlace{64, 4033}, SharedPlace{4096, 64}, SharedPlace{1, 1},
                                   SharedPlace{~std::uint64_t{63}, 128}, SharedPlace{0, ~std::uint64_t{0}}})
    EXPECT_FALSE(batches.to_server(place)) << place.offset;
  EXPECT_FALSE(batches.to_worker({.offset = 64, .size_bytes = 64}));
}

std::uint64_t shared_batches(const TableSpec& spec, Ways ways, std::uint32_t servers,
                             std::vector<float>& rows) {
  ParameterClient::Counts counts;
  rows = trained(2, servers, spec, 0, 12, ways, &counts);
  return counts.shared_batches;
}

TEST(SharedMemory, GivesTheBitsOfSockets) {
  for (const Ways& ways : {Ways{.shared_from_bytes = 1}, Ways{.shared_from_bytes = 1, .looks_ahead = true},
                           Ways{.shared_from_bytes = 1, .copies = 2}}) {
    Ways sockets = ways;
    sockets.shared_from_bytes.reset();
    std::vector<float> rows, expected;
    EXPECT_EQ(shared_batches(adam_table(), sockets, 2, expected), 0U);
    EXPECT_GT(shared_batches(adam_table(), ways, 2, rows), 20U);
    EXPECT_EQ(rows, expected);
  }
}

TEST(SharedMemory, IsNotUsedWhereAServerDoesNotOfferIt) {
  ParameterServer::Options options = options_of({}, {.worker_num = 1});
  options.shares_memory = false;
  const RunningServer server(options);
  Worker worker(0, {server.address()});
  worker.begin(adam_table());
  worker.train(0, 5);
  EXPECT_EQ(worker.client().counts().shared_batches, 0U);
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("memfd:muster") != std::string::npos ? 1 : 0;
  return count;
}

// Larger and larger batches: each needs more memory than the one before.
TEST(SharedMemory, GrowsWithBatchesAndGoesWithItsWorker) {
  const auto running = servers_of(1, {.worker_num = 1});
  const std::size_t before = mappings();
  {
    Worker worker(0, addresses_of(running), std::chrono::seconds(20), {.shared_from_bytes = 1});
    TableSpec spec = adam_table();
    spec.rows = 200'000;
    worker.begin(spec);
    Table same = Table::make(spec, {}).value();
    for (std::uint64_t step = 0; step < 12; ++step) {
      Ids ids(std::size_t{1} << (6 + step));
      std::iota(ids.begin(), ids.end(), step);
      std::vector<float> rows(ids.size() * width), expected(rows.size());
      for (int times = 0; times < 3; ++times) {
        const ParameterClient::Lookup lookup{.ids = ids, .rows = rows};
        ASSERT_TRUE(worker.client().pull(step, std::span(&lookup, 1)));
        ASSERT_TRUE(same.read(ids, expected));
        ASSERT_EQ(rows, expected) << step;
      }
      const ParameterClient::Gradient gradient{.learning_rate = 0.1F, .ids = ids, .values = rows};
      ASSERT_TRUE(worker.client().push(std::span(&gradient, 1)));
      ASSERT_TRUE(same.update(ids, rows, {.learning_rate = 0.1F, .steps = step}));
    }
    EXPECT_GT(worker.client().counts().shared_batches, 40U);
    EXPECT_GT(mappings(), before);
  }
  const TimePoint deadline = real_clock().now() + std::chrono::seconds(10);
  while (mappings() > before && real_clock().now() < deadline) std::this_thread::yield();
  EXPECT_EQ(mappings(), before);
}

TEST(SharedMemory, HasRoomForEachBatchOnceTheOneBeforeIsForgotten) {
  const auto running = servers_of(1, {.worker_num = 1});
  Worker worker(0, addresses_of(running), std::chrono::seconds(20), {.shared_from_bytes = 1});
  TableSpec spec = adam_table();
  spec.rows = 30'000;
  worker.begin(spec);
  Ids ids(spec.rows);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> rows(ids.size() * width);
  const ParameterClient::Lookup lookup{.ids = ids, .rows = rows};
  const auto pull = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(worker.client().pull(0, std::span(&lookup, 1)));
    }
  };
  pull(5);  // of which the first ones find the memory not there yet
  const std::uint64_t before = worker.client().counts().shared_batches;
  pull(40);
  EXPECT_EQ(worker.client().counts().shared_batches - before, 80U);  // ids and rows of each
}

// A process may not have files of more than a few bytes: as where a container has no memory for them.
TEST(SharedMemory, IsDoneWithoutWhereThereIsNoneAndSaysSoOnce) {
  const auto running = servers_of(1, {.worker_num = 1});
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{.rlim_cur = 4096, .rlim_max = limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Worker worker(0, addresses_of(running), std::chrono::seconds(20), {.shared_from_bytes = 1});
  worker.begin(adam_table());
  worker.train(0, 5);
  const auto shared = worker.client().counts().shared_batches;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(shared, 0U);
  EXPECT_THAT(told, ::testing::HasSubstr("no memory to share"));
  EXPECT_EQ(told.find("no memory to share"), told.rfind("no memory to share"));
}

}  // namespace shared_batches_test
}  // namespace
}  // namespace muster::server
