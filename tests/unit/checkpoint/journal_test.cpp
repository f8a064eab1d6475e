#include "muster/checkpoint/journal.h"

#include <gtest/gtest.h>

#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {

using testing::MemoryStorage;

const std::string path = "/j/finished.log";
const RunIdentity identity{.job = testing::job, .world_size = 4, .rank = 1};

CallRecord record(std::uint64_t call) {
  return {.call = call, .kind = "eval", .result = "{\"accuracy\": 0." + std::to_string(call) + "}"};
}

Journal open(MemoryStorage& disk) {
  auto journal = Journal::open(path, identity, disk);
  MUSTER_CHECK(journal.has_value(), journal ? "" : journal.error().message);
  return std::move(*journal);
}

TEST(Journal, KeepsTheRecordsThatAreWholeWhereverItIsCut) {
  MemoryStorage disk;
  ASSERT_TRUE(disk.make_folder("/j"));
  std::vector<std::size_t> ends;
  {
    Journal journal = open(disk);
    ends.push_back(disk.content(path).size());
    for (const std::uint64_t call : {0, 1, 2}) {
      ASSERT_TRUE(journal.add(record(call)));
      ends.push_back(disk.content(path).size());
    }
  }
  const auto whole = disk.content(path);
  for (std::size_t size = ends.front(); size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    disk.content(path).assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    std::size_t wanted = 0;
    while (ends[wanted + 1] <= size) ++wanted;
    Journal journal = open(disk);
    ASSERT_EQ(journal.content().records.size(), wanted);
    ASSERT_TRUE(journal.add(record(7))) << "and goes on behind them";
    const auto read = read_journal(path, disk).value();
    ASSERT_EQ(read.records.size(), wanted + 1);
    EXPECT_EQ(read.records.at(7), record(7));
    EXPECT_EQ(read.identity, identity);
  }
  for (std::size_t size = 0; size < ends.front(); ++size) {
    disk.content(path).assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto cut = Journal::open(path, identity, disk);
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code, Code::corrupt);
  }
}

TEST(Journal, BelievesNoRecordOfWhichABitIsWrong) {
  MemoryStorage disk;
  ASSERT_TRUE(disk.make_folder("/j"));
  std::size_t second = 0;
  {
    Journal journal = open(disk);
    ASSERT_TRUE(journal.add(record(0)));
    second = disk.content(path).size();
    ASSERT_TRUE(journal.add(record(1)));
  }
  for (std::size_t at = 0; at < disk.content(path).size(); ++at) {
    disk.content(path)[at] ^= std::byte{16};
    const auto read = read_journal(path, disk);
    if (read) {
      EXPECT_GE(at, 48u);
      EXPECT_EQ(read->records.size(), at < second ? 0u : 1u) << at;
    }
    disk.content(path)[at] ^= std::byte{16};
  }
}

TEST(Journal, BelievesNoRecordInAnotherPlace) {
  MemoryStorage disk;
  ASSERT_TRUE(disk.make_folder("/j"));
  {
    Journal journal = open(disk);
    ASSERT_TRUE(journal.add(record(0)));
  }
  auto& bytes = disk.content(path);
  const std::vector<std::byte> copy(bytes.begin() + 48, bytes.end());
  bytes.insert(bytes.end(), copy.begin(), copy.end());
  bytes[0] = bytes[0];
  EXPECT_EQ(read_journal(path, disk).value().records.size(), 1u);
  Journal journal = open(disk);
  EXPECT_EQ(disk.content(path).size(), 48 + copy.size()) << "the copy was cut off";
}

TEST(Journal, WritesItselfAnewAfterAFailure) {
  for (const std::size_t at : {1, 2}) {  // the write, the sync
    MemoryStorage disk;
    ASSERT_TRUE(disk.make_folder("/j"));
    Journal journal = open(disk);
    ASSERT_TRUE(journal.add(record(0)));
    disk.set_fault({.at = at, .kind = testing::Fault::Kind::once});
    ASSERT_FALSE(journal.add(record(1)));
    EXPECT_EQ(journal.content().records.size(), 1u) << "what is not durable is not known";
    ASSERT_TRUE(journal.add(record(2)));
    MemoryStorage next = disk.after_power_loss(false);
    const auto read = read_journal(path, next).value();
    EXPECT_EQ(read.records.size(), 2u);
    EXPECT_TRUE(read.records.contains(0) && read.records.contains(2));
  }
}

TEST(Journal, TakesTheLastOfSeveralRecordsForOneCall) {
  MemoryStorage disk;
  ASSERT_TRUE(disk.make_folder("/j"));
  {
    Journal journal = open(disk);
    ASSERT_TRUE(journal.add(record(0)));
    const std::size_t size = disk.content(path).size();
    ASSERT_TRUE(journal.add(record(0)));
    EXPECT_EQ(disk.content(path).size(), size) << "nothing new";
    ASSERT_TRUE(journal.add({.call = 0, .kind = "eval", .result = "other"}));
  }
  EXPECT_EQ(open(disk).content().records.at(0).result, "other");
}

}  // namespace
}  // namespace muster::checkpoint
