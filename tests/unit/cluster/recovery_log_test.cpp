#include "muster/cluster/recovery_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/unit/base/mentions.h"

namespace muster::cluster {
namespace {

using ::testing::HasSubstr;

constexpr record::Job job{.job_id = 0x1122334455667788, .seed = 9, .worker_num = 2};

std::shared_ptr<const Roster> roster_of(std::uint64_t epoch) {
  Roster roster{.epoch = epoch, .job_id = job.job_id, .seed = job.seed, .recovers = true};
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    roster.workers.push_back({.node_id = std::to_string(rank),
                              .rank = rank,
                              .address = "10.0.0.7",
                              .incarnation = 100 * epoch + rank,
                              .is_named = true});
  return std::make_shared<Roster>(roster);
}

record::Formed formed(std::uint64_t epoch) {
  record::Formed made{.roster = roster_of(epoch)};
  for (const Member& member : made.roster->workers)
    made.keys.push_back(key_of({member.incarnation, 1}, member));
  return made;
}

// A life with everything in it.
std::vector<Record> history() {
  return {job,
          formed(1),
          record::Finished{1},
          record::Kept{},
          record::Adopted{1700000000000},
          formed(2),
          record::Left{Role::worker, 1},
          record::At{"10.0.0.5:8118"},
          record::Ended{Failure{Code::peer_lost, "nobody came", 69}}};
}

// What the first `count` records add up to.
SavedJob after(std::size_t count) {
  SavedJob saved;
  const auto records = history();
  for (std::size_t i = 0; i < count; ++i) saved.apply(records[i]);
  return saved;
}

// A second later each time that it is asked: nobody waits for it.
class HastyClock final : public Clock {
 public:
  TimePoint now() const override { return now_ += std::chrono::seconds(1); }

 private:
  mutable TimePoint now_{};
};

// A folder of its own, gone at the end.
class RecoveryLogFile : public ::testing::Test {
 protected:
  RecoveryLogFile() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-log-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~RecoveryLogFile() override { std::filesystem::remove_all(folder_); }

  std::vector<std::byte> bytes() const { return *real_files().read(folder_ + "/scheduler.log"); }
  void write(std::span<const std::byte> bytes) {
    ASSERT_TRUE(real_files().write(folder_ + "/scheduler.log", bytes));
  }
  // As a scheduler does: reads what is there, begins anew with it, appends.
  void write_history() {
    auto log = RecoveryLog::open(folder_, clock_);
    ASSERT_TRUE(log) << log.error().message;
    ASSERT_TRUE(log->start({.job = job}));
    const auto records = history();
    for (std::size_t i = 1; i < records.size(); ++i) ASSERT_TRUE(log->append(records[i]));
  }

  const HastyClock clock_ = {};
  std::string folder_;
};

TEST(RecoveryLog, AddsUpToTheNewestEpochAndWhatCameSince) {
  EXPECT_EQ(*after(6).roster, *roster_of(2));
  EXPECT_EQ(after(6).keys, formed(2).keys);
  EXPECT_TRUE(after(6).left.empty());
  EXPECT_EQ(after(7).left.size(), 1u);
  EXPECT_EQ(after(9).finished_calls, 1u);
  EXPECT_TRUE(after(9).has_points);
  EXPECT_EQ(after(9).epoch_min, 1700000000000u);
  EXPECT_EQ(after(9).scheduler, "10.0.0.5:8118");
  EXPECT_TRUE(after(9).is_unfinished()) << "a job that failed is gone on with";
  SavedJob well = after(7);
  well.apply(record::Ended{});
  EXPECT_FALSE(well.is_unfinished());
  SavedJob next = after(9);
  next.apply(formed(3));
  EXPECT_FALSE(next.failure) << "a new epoch forgets the failure, and who had left";
  EXPECT_TRUE(next.left.empty());
}

TEST(RecoveryLog, KeepsItsMeaningInTheFewestRecords) {
  for (std::size_t count = 1; count <= history().size(); ++count) {
    SavedJob again;
    for (const Record& record : after(count).records()) again.apply(record);
    EXPECT_EQ(again, after(count)) << count;
  }
}

TEST(RecoveryLog, LosesNothingButTheRecordInWhichItsWriterDied) {
  const auto whole = write_log(history());
  std::vector<std::size_t> ends;
  for (std::size_t count = 0; count <= history().size(); ++count) {
    auto records = history();
    records.resize(count);
    ends.push_back(write_log(records).size());
  }
  for (std::size_t size = ends[1]; size <= whole.size(); ++size) {
    const auto contents = read_log(std::span(whole).first(size));
    ASSERT_TRUE(contents) << size << ": " << contents.error().message;
    std::size_t count = 1;
    while (count < history().size() && ends[count + 1] <= size) ++count;
    ASSERT_EQ(contents->record_count, count) << size << " bytes";
    EXPECT_EQ(contents->whole_size_bytes, ends[count]);
    EXPECT_EQ(*contents->job, after(count));
  }
}

TEST(RecoveryLog, RefusesABeginThatIsNotWhole) {
  const auto first = write_log({job});
  for (std::size_t size = 1; size < first.size(); ++size)
    EXPECT_FALSE(read_log(std::span(first).first(size))) << size;
  EXPECT_TRUE(read_log({}));
  EXPECT_FALSE(read_log({})->job);
}

// What is behind a damaged byte is not read; nothing is read wrong.
TEST(RecoveryLog, NoticesEveryDamagedByte) {
  const auto whole = write_log(history());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const unsigned flip : {0x01u, 0x80u, 0xffu}) {
      auto damaged = whole;
      damaged[i] ^= static_cast<std::byte>(flip);
      const auto contents = read_log(damaged);
      if (!contents) continue;
      ASSERT_LT(contents->record_count, history().size()) << "byte " << i;
      ASSERT_LE(contents->whole_size_bytes, i);
      EXPECT_EQ(*contents->job, after(contents->record_count)) << "byte " << i;
    }
  }
}

TEST(RecoveryLog, NoticesARecordInAnotherPlace) {
  const auto records = history();
  const auto two = write_log({records[0], records[1]});
  const auto three = write_log({records[0], records[1], records[2]});
  auto doubled = two;  // the second record once more
  doubled.insert(doubled.end(), two.begin() + static_cast<std::ptrdiff_t>(write_log({records[0]}).size()),
                 two.end());
  EXPECT_EQ(read_log(doubled)->record_count, 2u);
  EXPECT_EQ(read_log(three)->record_count, 3u);
}

TEST(RecoveryLog, HasOneJobAtItsBegin) {
  const auto records = history();
  EXPECT_EQ(read_log(write_log({records[0], records[1], records[0]}))->record_count, 2u);
  EXPECT_FALSE(read_log(write_log({records[1]})));
}

TEST(RecoveryLog, RefusesAnotherVersionNamingBoth) {
  auto bytes = write_log({job});
  bytes[8] = std::byte{9};
  const auto contents = read_log(bytes);
  ASSERT_FALSE(contents);
  EXPECT_THAT(contents.error().message, Mentions("version 9", "version 3"));
}

TEST_F(RecoveryLogFile, IsEmptyInANewFolder) {
  const auto log = RecoveryLog::open(folder_, clock_);
  ASSERT_TRUE(log);
  EXPECT_FALSE(log->saved());
}

TEST_F(RecoveryLogFile, BringsBackWhatWasAppended) {
  write_history();
  const auto log = RecoveryLog::open(folder_, clock_);
  ASSERT_TRUE(log);
  EXPECT_EQ(*log->saved(), after(history().size()));
  EXPECT_EQ(bytes(), write_log(history())) << "append by append, the bytes of all";
}

TEST_F(RecoveryLogFile, BeginsAnewWithAJobThatIsAppended) {
  write_history();
  const record::Job other{.job_id = 5, .seed = 6, .worker_num = 2};
  {
    auto log = RecoveryLog::open(folder_, clock_);
    ASSERT_TRUE(log);
    ASSERT_TRUE(log->append(other));
    ASSERT_TRUE(log->append(record::Kept{}));
  }
  EXPECT_EQ(bytes(), write_log({other, record::Kept{}}));
}

TEST_F(RecoveryLogFile, GoesOnBehindATornRecord) {
  write_history();
  const auto whole = bytes();
  for (const std::size_t torn : {std::size_t{1}, std::size_t{13}, std::size_t{30}}) {
    write(std::span(whole).first(whole.size() - torn));
    {
      auto log = RecoveryLog::open(folder_, clock_);
      ASSERT_TRUE(log);
      EXPECT_EQ(*log->saved(), after(history().size() - 1));
      ASSERT_TRUE(log->start(*log->saved()));
      ASSERT_TRUE(log->append(formed(7)));
    }
    const auto log = RecoveryLog::open(folder_, clock_);
    ASSERT_TRUE(log);
    EXPECT_EQ(log->saved()->roster->epoch, 7u) << "what comes behind it is read";
  }
}

TEST_F(RecoveryLogFile, SaysHowToGetRidOfADamagedFile) {
  const std::vector<std::byte> zeros(200);
  write(zeros);
  const auto log = RecoveryLog::open(folder_, clock_);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, Code::corrupt);
  EXPECT_THAT(log.error().message, HasSubstr(fmt::format("delete MS_RECOVERY_PATH='{}'", folder_)));
}

TEST_F(RecoveryLogFile, IsOfOneSchedulerAtATime) {
  {
    const auto first = RecoveryLog::open(folder_, clock_);
    ASSERT_TRUE(first);
    const auto second = RecoveryLog::open(folder_, clock_);
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message, HasSubstr("scheduler"));
  }
  EXPECT_TRUE(RecoveryLog::open(folder_, clock_));
}

TEST_F(RecoveryLogFile, WritesTheWholeFileAnewWhenAnAppendFailed) {
  auto log = RecoveryLog::open(folder_, clock_);
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->start({.job = job}));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit full = before;
  full.rlim_cur = bytes().size() + 5;  // a full disk: half a record fits
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  EXPECT_FALSE(log->append(formed(1)));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, old_handler);
  ASSERT_TRUE(log->append(record::Finished{1})) << "there is room again";
  EXPECT_EQ(read_log(bytes())->job, after(3));
}

}  // namespace
}  // namespace muster::cluster
