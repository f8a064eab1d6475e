#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "muster/server/saved_rows.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/server/servers.h"
#include "tests/unit/server/small_jobs.h"

namespace muster::server {
namespace {
namespace saved_rows_test {

using namespace small_jobs;

constexpr std::uint64_t steps = 12, half = 6;

// Rows as checkpoints have them, in memory: of each server what its writer was given.
struct MemoryFiles {
  struct Written {
    std::map<std::uint64_t, std::vector<float>> rows = {};
    bool is_finished = false;
  };
  std::mutex mutex;
  std::map<std::uint32_t, Written> by_server;
  std::string trouble;

  class Writer : public RowsWriter {
   public:
    Writer(MemoryFiles& files, std::uint32_t server) : files_(files), server_(server) {}
    Result<> write(std::size_t, std::span<const std::uint64_t> ids, std::span<const float> rows) override {
      const std::lock_guard lock(files_.mutex);
      const std::size_t each = ids.empty() ? 0 : rows.size() / ids.size();
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto row = rows.subspan(i * each, each);
        files_.by_server[server_].rows[ids[i]].assign(row.begin(), row.end());
      }
      return {};
    }
    Result<> finish() override {
      const std::lock_guard lock(files_.mutex);
      files_.by_server[server_].is_finished = true;
      return {};
    }

   private:
    MemoryFiles& files_;
    std::uint32_t server_;
  };
  RowFiles files() {
    return {.create = [this](const std::string& order, Share share,
                             const auto&) -> Result<std::unique_ptr<RowsWriter>> {
              EXPECT_EQ(order, "to memory");
              if (!trouble.empty() && share.server == 1) return fail(Code::io, trouble);
              return std::make_unique<Writer>(*this, share.server);
            },
            .read = [this](const TableSpec& spec, Share, const RowFiles::Visit& visit) -> Result<> {
              EXPECT_EQ(spec.saved.place, "memory");
              const std::lock_guard lock(mutex);
              for (const auto& [server, written] : by_server)
                for (const auto& [id, row] : written.rows) MUSTER_TRY_VOID(visit(std::span(&id, 1), row));
              return {};
            }};
  }
};

std::vector<RunningServer> servers_with(std::uint32_t servers, MemoryFiles& memory) {
  std::vector<RunningServer> made;
  for (std::uint32_t i = 0; i < servers; ++i) {
    ParameterServer::Options options = options_of({.server = i, .servers = servers}, {.worker_num = 1});
    options.files = memory.files();
    made.emplace_back(std::move(options));
  }
  return made;
}

TEST(ParameterServers, GoOnWithTheBitsOfRowsThatOthersHaveSaved) {
  for (const Sharding sharding : {Sharding::ranges, Sharding::hash}) {
    const std::vector<float> expected = trained(1, 1, adam_table(sharding));
    for (const std::uint32_t servers : {1U, 3U}) {
      MemoryFiles memory;
      {
        const auto running = servers_with(2, memory);
        Worker worker(0, addresses_of(running));
        worker.begin(adam_table(sharding));
        worker.train(0, half);
        const std::vector<std::uint32_t> tables{0};
        const auto rows = worker.client().save_rows(half, tables, "to memory");
        ASSERT_TRUE(rows) << rows.error().message;
        EXPECT_EQ(*rows, memory.by_server[0].rows.size() + memory.by_server[1].rows.size());
        EXPECT_TRUE(memory.by_server[0].is_finished && memory.by_server[1].is_finished);
        worker.train(half, half + 1);  // what it does behind it is not there
      }
      const auto running = servers_with(servers, memory);
      Worker worker(0, addresses_of(running));
      TableSpec spec = adam_table(sharding);
      spec.saved = {.place = "memory", .has_states = true, .steps = half};
      ASSERT_TRUE(worker.client().add_table(spec));
      ASSERT_TRUE(worker.client().begin(1, half, half));
      worker.train(half, steps);
      EXPECT_EQ(worker.rows(steps), expected);
    }
  }
}

TEST(ParameterServers, NameTheOneWhoseDiskTakesNoRows) {
  MemoryFiles memory;
  memory.trouble = "the disk is full";
  const auto running = servers_with(2, memory);
  Worker worker(0, addresses_of(running));
  worker.begin(adam_table());
  worker.train(0, 2);
  const std::vector<std::uint32_t> tables{0}, unknown{3};
  const auto rows = worker.client().save_rows(2, tables, "to memory");
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, Code::io);
  EXPECT_THAT(rows.error().message, Mentions("server 1", "the disk is full"));
  EXPECT_THAT(worker.client().save_rows(2, unknown, "to memory").error().message, Mentions("table 3"));
  worker.train(2, 4);
}

TEST(ParameterServers, DoNotTakeATableWhoseRowsCannotBeRead) {
  MemoryFiles memory;
  memory.by_server[0].rows[vocabulary] = std::vector<float>(width);  // no row of the table
  const auto running = servers_with(1, memory);
  TableSpec spec = adam_table();
  spec.saved = {.place = "memory"};
  for (std::uint64_t generation = 1; generation <= 2; ++generation) {
    Worker worker(0, addresses_of(running));
    ASSERT_TRUE(worker.client().add_table(spec));
    (void)worker.client().begin(generation, 0);
    const Ids ids{1};
    std::vector<float> rows(width);
    const ParameterClient::Lookup lookup{.ids = ids, .rows = rows};
    const auto pulled = worker.client().pull(0, std::span(&lookup, 1));
    ASSERT_FALSE(pulled);  // the second time, too
    EXPECT_THAT(pulled.error().message, Mentions("embedding", "row 50"));
  }
}

TEST(ParameterServers, SayWhatDoesNotFitIntoAMessage) {
  const auto running = servers_of(2, {.worker_num = 1});
  Worker worker(0, addresses_of(running));
  TableSpec spec = adam_table();
  spec.width = 1 << 20;
  spec.rows = 600;
  worker.begin(spec);
  Ids ids(spec.rows);
  std::iota(ids.begin(), ids.end(), std::uint64_t{0});
  const std::unique_ptr<float[]> values(new float[spec.rows * spec.width]);  // none of these pages is touched
  const std::span<float> rows(values.get(), spec.rows * spec.width);
  const ParameterClient::Lookup lookup{.ids = ids, .rows = rows};
  const auto pulled = worker.client().pull(0, std::span(&lookup, 1));
  ASSERT_FALSE(pulled);
  EXPECT_THAT(pulled.error().message, Mentions("1200 MiB", "server 0", "1024 MiB", "integrated_save=False"));
}

}  // namespace saved_rows_test
}  // namespace
}  // namespace muster::server
