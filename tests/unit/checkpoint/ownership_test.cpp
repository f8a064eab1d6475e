// Two processes that take themselves for the same worker: the one that came last writes, the other one
// nothing.
#include "muster/checkpoint/ownership.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "muster/checkpoint/ledger.h"
#include "muster/checkpoint/run_folders.h"
#include "muster/checkpoint/run_store.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/folder.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {

using testing::Folder;
using ::testing::HasSubstr;
using testing::MemoryStorage;
using testing::open_store;
using testing::point;
using testing::run_folder;
using testing::step;

TEST(Duplicate, ThatWakesUpWritesNothingAnyMore) {
  MemoryStorage disk;
  RunStore duplicate = open_store(disk);
  ASSERT_TRUE(duplicate.save(point(step(0, 1), 1)));
  ASSERT_TRUE(duplicate.finish_call({.call = 0, .kind = "train"}));
  RunStore successor = open_store(disk);
  ASSERT_TRUE(successor.save(point(step(1, 5), 5)));
  ASSERT_TRUE(successor.finish_call({.call = 1, .kind = "train"}));
  const auto before = disk.paths();

  const auto saved = duplicate.save(point(step(1, 5), 7));
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, Code::refused);
  EXPECT_THAT(saved.error().message,
              HasSubstr("belong to another process by now (pid " + std::to_string(::getpid())));
  EXPECT_FALSE(duplicate.finish_call({.call = 1, .kind = "train", .result = "other"}));
  EXPECT_FALSE(duplicate.set_done());
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(duplicate.add_step_hash(0, 1, 2));
  duplicate.drop(step(0, 1), "it says");
  { const RunStore gone = std::move(duplicate); }
  (void)::testing::internal::GetCapturedStderr();
  EXPECT_EQ(disk.paths(), before);
  testing::expect_equal(successor.load(step(1, 5)).value(), point(step(1, 5), 5));
  EXPECT_EQ(open_store(disk).finished(1)->result, "");
}

// Somebody may ask, e.g. before this process speaks to a scheduler again, that has not tried to write since.
TEST(Duplicate, LearnsThatItHasLostItsFolderWithoutWritingThere) {
  MemoryStorage disk;
  const RunStore duplicate = open_store(disk);
  EXPECT_EQ(duplicate.lost(), std::nullopt);
  const RunStore successor = open_store(disk);
  EXPECT_THAT(duplicate.lost().value_or(""),
              HasSubstr("belong to another process by now (pid " + std::to_string(::getpid())));
  EXPECT_EQ(successor.lost(), std::nullopt);
}

TEST(Duplicate, HasLostNothingWhereTheFolderHasVanishedOrIsJustTaken) {
  MemoryStorage disk;
  const RunStore store = open_store(disk);
  const std::string owner = store.folder() + "/" + std::string(owner_file);
  const std::string half = "0123456789abcdef pid 47";
  ASSERT_TRUE(disk.write(owner, std::as_bytes(std::span(half))));
  EXPECT_EQ(store.lost(), std::nullopt);
  ASSERT_TRUE(disk.remove_folder(store.folder()));
  EXPECT_EQ(store.lost(), std::nullopt);
}

TEST(Duplicate, ThatCouldNotTakeTheFolderDoesNotTakeItFromItsSuccessor) {
  MemoryStorage disk;
  disk.set_fault({.at = 1, .kind = testing::Fault::Kind::forever});
  RunStore duplicate = open_store(disk);
  ASSERT_NE(duplicate.problem(), "");
  disk.set_fault({});
  RunStore successor = open_store(disk);
  EXPECT_FALSE(duplicate.save(point(step(0, 1), 1)));
  EXPECT_TRUE(successor.save(point(step(0, 1), 1)));
}

RunOptions in_epoch(MemoryStorage& disk, std::uint64_t epoch) {
  RunOptions options = testing::options_in(disk);
  options.epoch = epoch;
  return options;
}

TEST(Duplicate, ThatWasStoppedBeforeItOpenedTheFolderDoesNotTakeItFromItsSuccessor) {
  MemoryStorage disk;
  RunStore successor = open_store(in_epoch(disk, 2));
  ASSERT_TRUE(successor.save(point(step(0, 1), 1)));
  EXPECT_THAT(testing::refusal(in_epoch(disk, 1)), Mentions("belong", "process"));
  EXPECT_TRUE(successor.save(point(step(0, 2), 2)));
  EXPECT_EQ(testing::refusal(in_epoch(disk, 3)), "opened");
  EXPECT_FALSE(successor.save(point(step(0, 3), 3)));
}

TEST(Duplicate, ThatTakesAFolderWhichHasVanishedGivesItBackToItsSuccessor) {
  MemoryStorage disk;
  RunStore successor = open_store(in_epoch(disk, 2));
  ASSERT_TRUE(disk.remove_folder(successor.folder()));
  RunStore duplicate = open_store(in_epoch(disk, 1));
  EXPECT_EQ(successor.lost(), std::nullopt);
  EXPECT_TRUE(successor.save(point(step(0, 1), 1)));
  EXPECT_FALSE(duplicate.save(point(step(0, 1), 2)));
  testing::expect_equal(successor.load(step(0, 1)).value(), point(step(0, 1), 1));
}

// The stale incarnation stands in the middle of a save when its successor comes.
TEST(Duplicate, ThatWasStoppedInASaveDoesNotPublishIt) {
  MemoryStorage disk;
  class Stopping final : public Storage {
   public:
    explicit Stopping(MemoryStorage& disk) : disk_(disk) {}
    std::function<void()> meanwhile = {};  // called when the point is written, and has no name yet

    Result<> sync_folder(const std::string& path) override {
      auto synced = disk_.sync_folder(path);
      if (path.find(".new-") != std::string::npos && meanwhile) std::exchange(meanwhile, {})();
      return synced;
    }
    Result<std::vector<std::byte>> read(const std::string& path) const override { return disk_.read(path); }
    Result<std::vector<std::string>> list(const std::string& path) const override { return disk_.list(path); }
    Result<std::unique_ptr<InputFile>> open(const std::string& path) const override {
      return disk_.open(path);
    }
    Result<> write_pieces(const std::string& path,
                          std::span<const std::span<const std::byte>> pieces) override {
      return disk_.write_pieces(path, pieces);
    }
    Result<> make_folder(const std::string& path) override { return disk_.make_folder(path); }
    Result<std::string> make_temporary_folder(const std::string& prefix) override {
      return disk_.make_temporary_folder(prefix);
    }
    Result<std::unique_ptr<OutputFile>> create(const std::string& path) override {
      return disk_.create(path);
    }
    Result<std::unique_ptr<OutputFile>> append_to(const std::string& path, std::uint64_t size) override {
      return disk_.append_to(path, size);
    }
    Result<> rename(const std::string& from, const std::string& to) override {
      return disk_.rename(from, to);
    }
    Result<> exchange(const std::string& one, const std::string& other) override {
      return disk_.exchange(one, other);
    }
    Result<> remove(const std::string& path) override { return disk_.remove(path); }
    Result<> remove_folder(const std::string& path) override { return disk_.remove_folder(path); }
    Result<std::unique_ptr<LockedFile>> lock(const std::string& path, Sharing sharing,
                                             std::chrono::milliseconds patience) override {
      return disk_.lock(path, sharing, patience);
    }
    Result<bool> is_locked(const std::string& path) const override { return disk_.is_locked(path); }

   private:
    MemoryStorage& disk_;
  } stopping(disk);

  RunStore duplicate = open_store(stopping);
  std::optional<RunStore> successor;
  stopping.meanwhile = [&] {
    successor.emplace(open_store(disk));
    const auto names = disk.list(run_folder).value();
    for (const std::string& name : names) EXPECT_FALSE(name.starts_with(".new-")) << name;
    ASSERT_TRUE(successor->save(point(step(0, 1), 2)));
  };
  EXPECT_FALSE(duplicate.save(point(step(0, 1), 1)));
  testing::expect_equal(successor->load(step(0, 1)).value(), point(step(0, 1), 2));
}

// ---- Two processes, on a real disk ------------------------------------------------------------------------

RunOptions on_disk(const Folder& folder, const char* job = testing::job) {
  return {.folder = folder.path(),
          .job = job,
          .world_size = 4,
          .rank = 1,
          .patience = std::chrono::milliseconds(50)};
}

// A process of its own, that is killed in the end.
class Child {
 public:
  // `work` says by true that it is where it should be; then the process stands still.
  template <class Work>
  explicit Child(const Work& work) {
    std::array<int, 2> ends{};
    MUSTER_CHECK(::pipe(ends.data()) == 0, "no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      const char told = work() ? 'y' : 'n';
      if (::write(ends[1], &told, 1) == 1)
        while (true) ::pause();
      ::_exit(1);
    }
    ::close(ends[1]);
    char told = 0;
    is_ready_ = ::read(ends[0], &told, 1) == 1 && told == 'y';
    ::close(ends[0]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool is_ready() const { return is_ready_; }
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
  bool is_ready_ = false;
};

TEST(TwoProcesses, OfTwoJobsDoNotUseOnePath) {
  const Folder folder;
  std::optional<RunStore> store;
  Child first([&] {
    store.emplace(open_store(on_disk(folder)));
    return store->save(point(step(0, 1), 1)).has_value();
  });
  ASSERT_TRUE(first.is_ready());
  const auto second = RunStore::open(on_disk(folder, "ffffffffffffffff"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::refused);
  EXPECT_THAT(second.error().message, HasSubstr("in use by job 0123456789abcdef (worker 1 is pid " +
                                                std::to_string(first.pid()) + " on "));
  EXPECT_TRUE(jobs_below(folder.path()).at(0).is_in_use);
  first.end();
  EXPECT_FALSE(jobs_below(folder.path()).at(0).is_in_use) << "a kill lets go of everything";
  EXPECT_THAT(RunStore::open(on_disk(folder, "ffffffffffffffff")).error().message,
              HasSubstr("is not finished"));
}

TEST(TwoProcesses, ThatAreTheSameWorkerDoNotWaitForEachOther) {
  const Folder folder;
  std::optional<RunStore> store;
  const Child stopped([&] {
    store.emplace(open_store(on_disk(folder)));
    return store->save(point(step(0, 1), 1)).has_value();
  });
  ASSERT_TRUE(stopped.is_ready());
  ASSERT_EQ(::kill(stopped.pid(), SIGSTOP), 0);
  RunStore successor = open_store(on_disk(folder));
  EXPECT_EQ(successor.points(), std::vector{step(0, 1)});
  EXPECT_TRUE(successor.save(point(step(0, 2), 2)));
}

TEST(TwoProcesses, NameTheOneThatHoldsTheFolderAndDoesNotLetGo) {
  const Folder folder;
  const std::string worker = worker_folder(on_disk(folder));
  ASSERT_TRUE(real_storage().make_folder(worker));
  std::optional<Hold> held;
  Child stopped([&] {
    Ownership ownership(worker, real_storage(), {});
    held = ownership.take().value();
    return true;
  });
  ASSERT_TRUE(stopped.is_ready());
  const TimePoint begin = real_clock().now();
  const auto store = RunStore::open(on_disk(folder));
  EXPECT_LT(real_clock().now() - begin, std::chrono::seconds(3));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Code::timeout);
  EXPECT_THAT(store.error().message, HasSubstr(fmt::format("locked by pid {} on ", stopped.pid())));
  stopped.end();
  EXPECT_TRUE(RunStore::open(on_disk(folder)));
}

TEST(TwoProcesses, ComeAsACrowdAndAllGetIn) {
  const Folder folder;
  std::vector<pid_t> crowd;
  for (std::uint64_t rank = 0; rank < 16; ++rank) {
    crowd.push_back(::fork());
    if (crowd.back() != 0) continue;
    const auto store =
        RunStore::open({.folder = folder.path(), .job = testing::job, .world_size = 16, .rank = rank});
    ::_exit(store && store->problem().empty() ? 0 : 1);
  }
  for (const pid_t pid : crowd) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(jobs_below(folder.path()).at(0).ranks.size(), 16u);
}

}  // namespace
}  // namespace muster::checkpoint
