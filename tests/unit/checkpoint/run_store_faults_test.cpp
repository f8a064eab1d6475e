// Whatever fails, whenever a process is killed or the power goes: a point that was reported is there, and
// whatever is there is whole.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>

#include "muster/checkpoint/run_store.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/folder.h"
#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {
namespace run_store_faults_test {

using testing::end_of;
using testing::Fault;
using testing::Folder;
using testing::MemoryStorage;
using testing::options_in;
using testing::point;
using testing::start_of;
using testing::step;

// What a job was told, and what it tried.
struct Told {
  std::map<PointId, std::vector<float>> tried;
  std::map<PointId, std::size_t> reported;  // how often it had been tried when its save was reported
  std::set<std::uint64_t> finished;
  std::size_t failures = 0;

  void save(RunStore& store, const PointId& id, float value) {
    tried[id].push_back(value);
    if (!store.save(point(id, value))) {
      ++failures;
      return;
    }
    reported.erase(reported.upper_bound(id), reported.end());
    reported[id] = tried[id].size();
  }
};

// A job that saves, replaces, goes back, clears up and ends calls; what fails does not stop it.
Told run(RunOptions options) {
  Told told;
  auto store = RunStore::open(std::move(options));
  if (!store) {
    ++told.failures;
    return told;
  }
  told.save(*store, start_of(0), 1);
  for (std::uint64_t i = 1; i <= 4; ++i) told.save(*store, step(0, i), 2.0F + static_cast<float>(i));
  told.save(*store, step(0, 4), 50);
  told.save(*store, step(0, 2), 51);
  for (std::uint64_t i = 3; i <= 5; ++i) told.save(*store, step(0, i), 60.0F + static_cast<float>(i));
  told.save(*store, end_of(0), 70);
  for (const std::uint64_t call : {0, 1}) {
    if (store->finish_call({.call = call, .kind = "train", .result = "{}"}))
      told.finished.insert(call);
    else
      ++told.failures;
    told.save(*store, start_of(call + 1), 80);
  }
  (void)store->add_step_hash(0, 1, 2);
  return told;
}

// The next process: everything that it finds is whole and was meant, and what was reported last is there.
void expect_nothing_lost(const Told& told, RunOptions options) {
  auto store = RunStore::open(std::move(options));
  ASSERT_TRUE(store) << store.error().message;
  const std::vector<PointId> points = store->points();
  for (const PointId& id : points) {
    const auto found = store->load(id);
    ASSERT_TRUE(found) << found.error().message;
    const auto tried = told.tried.find(id);
    ASSERT_NE(tried, told.tried.end()) << to_string(id);
    const auto known = told.reported.find(id);
    const std::size_t first = known == told.reported.end() ? 0 : known->second - 1;
    const float value = *found->tensors[1].value.data<float>();
    const auto meant =
        std::find(tried->second.begin() + static_cast<std::ptrdiff_t>(first), tried->second.end(), value);
    ASSERT_NE(meant, tried->second.end()) << to_string(id) << " holds " << value;
    testing::expect_equal(*found, point(id, value));
  }
  if (!told.reported.empty()) {
    ASSERT_FALSE(points.empty()) << to_string(told.reported.rbegin()->first);
    EXPECT_GE(points.back(), told.reported.rbegin()->first);
    EXPECT_TRUE(std::count(points.begin(), points.end(), told.reported.rbegin()->first))
        << to_string(told.reported.rbegin()->first);
  }
  for (const std::uint64_t call : told.finished) EXPECT_TRUE(store->finished(call)) << call;
  ASSERT_TRUE(store->save(point(end_of(9), 9))) << "and it can go on";
}

void expect_tidy(const MemoryStorage& disk) {
  for (const std::string& path : disk.paths()) {
    EXPECT_EQ(path.find("/.new-"), std::string::npos) << path;
    EXPECT_EQ(path.find("/.old-"), std::string::npos) << path;
    EXPECT_EQ(path.find(".damaged"), std::string::npos) << path;
  }
}

constexpr std::size_t operations_max = 2000;

class RunStoreSurvives : public ::testing::TestWithParam<bool> {
 protected:
  // Calls `check` after each run with a fault at the n-th operation, until no operation was left to fail.
  template <class Check>
  void at_every_operation(Fault::Kind kind, int error_number, const Check& check) {
    ::testing::internal::CaptureStderr();  // warnings and errors are what is wanted here
    for (std::size_t at = 1; at < operations_max; ++at) {
      SCOPED_TRACE(at);
      MemoryStorage disk;
      disk.can_exchange = GetParam();
      disk.set_fault({.at = at, .kind = kind, .error_number = error_number});
      const Told told = run(options_in(disk));
      if (!disk.has_failed()) {
        EXPECT_GT(at, 100u);
        EXPECT_EQ(told.failures, 0u);
        (void)::testing::internal::GetCapturedStderr();
        return;
      }
      check(disk, told);
      if (HasFatalFailure()) break;
    }
    (void)::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(HasFailure()) << "the job never ended";
  }
};

TEST_P(RunStoreSurvives, AnOperationThatFailsOnce) {
  at_every_operation(Fault::Kind::once, EIO, [](MemoryStorage& disk, const Told& told) {
    EXPECT_LE(told.failures, 1u);
    expect_nothing_lost(told, options_in(disk));
    expect_tidy(disk);
  });
}

TEST_P(RunStoreSurvives, ADiskThatIsFullFromSomeMomentOn) {
  at_every_operation(Fault::Kind::forever, ENOSPC, [](MemoryStorage& disk, const Told& told) {
    MemoryStorage next = disk.after_kill();
    expect_nothing_lost(told, options_in(next));
    expect_tidy(next);
  });
}

TEST_P(RunStoreSurvives, AKillAtAnyOperation) {
  at_every_operation(Fault::Kind::kill, EIO, [](MemoryStorage& disk, const Told& told) {
    MemoryStorage next = disk.after_kill();
    expect_nothing_lost(told, options_in(next));
    expect_tidy(next);
  });
}

TEST_P(RunStoreSurvives, ALossOfPowerAtAnyOperation) {
  at_every_operation(Fault::Kind::kill, EIO, [](MemoryStorage& disk, const Told& told) {
    for (const bool truncate : {false, true}) {
      MemoryStorage next = disk.after_power_loss(truncate);
      expect_nothing_lost(told, options_in(next));
      expect_tidy(next);
    }
  });
}

TEST_P(RunStoreSurvives, AKillWhileTheNextOneClearsUp) {
  at_every_operation(Fault::Kind::kill, EIO, [&](MemoryStorage& disk, const Told& told) {
    for (std::size_t at = 1; at < 7; ++at) {
      MemoryStorage next = disk.after_kill();
      next.set_fault({.at = at, .kind = Fault::Kind::kill});
      (void)RunStore::open(options_in(next));
      MemoryStorage third = next.after_kill();
      expect_nothing_lost(told, options_in(third));
      expect_tidy(third);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Disk, RunStoreSurvives, ::testing::Bool(),
                         [](const auto& kind) { return kind.param ? "Exchanges" : "CannotExchange"; });

TEST(RunStoreFaults, SayWhatIsLostAndWhatToDo) {
  MemoryStorage disk;
  RunStore store = testing::open_store(disk);
  ASSERT_TRUE(store.save(point(step(0, 100), 1)));
  disk.set_fault({.at = 4, .kind = Fault::Kind::forever, .error_number = ENOSPC});
  const auto saved = store.save(point(step(0, 200), 2));
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, Code::io);
  EXPECT_THAT(saved.error().message,
              Mentions("step 200", "call 0", "0 (65 bytes)", "NOT",
                       "'/recovery/job-0123456789abcdef/worker_1/.new-000003/tensors.safetensors'",
                       "untouched", "step 100", "'/recovery/job-0123456789abcdef/worker_1'"));
}

TEST(RunStoreFaults, OfAFolderThatVanishesEndWithTheNextSave) {
  MemoryStorage disk;
  RunStore store = testing::open_store(disk);
  ASSERT_TRUE(store.save(point(step(0, 1), 1)));
  ASSERT_TRUE(store.finish_call({.call = 0, .kind = "train", .result = "{}"}));
  ASSERT_TRUE(disk.remove_folder("/recovery"));
  EXPECT_FALSE(store.load(step(0, 1)));
  ASSERT_TRUE(store.save(point(step(1, 2), 2)));
  EXPECT_EQ(store.points(), std::vector{step(1, 2)}) << "what was in it is gone";
  EXPECT_TRUE(testing::open_store(disk).finished(0)) << "but what is in memory";
}

// ---- Processes that are really killed, on a real disk -----------------------------------------------------

// The real disk, on which this process is killed at the n-th operation.
class DeadlyStorage;

class DeadlyFile final : public OutputFile {
 public:
  DeadlyFile(std::unique_ptr<OutputFile> file, DeadlyStorage& storage)
      : file_(std::move(file)), storage_(storage) {}
  Result<> append(std::span<const std::byte> bytes) override;
  Result<> sync() override;

 private:
  std::unique_ptr<OutputFile> file_;
  DeadlyStorage& storage_;
};

class DeadlyStorage final : public Storage {
 public:
  explicit DeadlyStorage(std::size_t at) : left_(at) {}

  // Returns whether this is the one; half of it may be done before die().
  bool is_last() { return --left_ == 0; }
  [[noreturn]] static void die() {
    (void)std::raise(SIGKILL);
    std::abort();
  }
  void count() {
    if (is_last()) die();
  }

  Result<std::vector<std::byte>> read(const std::string& path) const override { return real().read(path); }
  Result<std::vector<std::string>> list(const std::string& path) const override { return real().list(path); }
  Result<std::unique_ptr<InputFile>> open(const std::string& path) const override {
    return real().open(path);
  }
  Result<> write_pieces(const std::string& path,
                        std::span<const std::span<const std::byte>> pieces) override {
    count();
    return real().write_pieces(path, pieces);
  }
  Result<> make_folder(const std::string& path) override {
    count();
    return real().make_folder(path);
  }
  Result<std::string> make_temporary_folder(const std::string& prefix) override {
    count();
    return real().make_temporary_folder(prefix);
  }
  Result<std::unique_ptr<OutputFile>> create(const std::string& path) override {
    count();
    return deadly(real().create(path));
  }
  Result<std::unique_ptr<OutputFile>> append_to(const std::string& path, std::uint64_t size) override {
    count();
    return deadly(real().append_to(path, size));
  }
  Result<> rename(const std::string& from, const std::string& to) override {
    count();
    return real().rename(from, to);
  }
  Result<> exchange(const std::string& first, const std::string& second) override {
    count();
    return real().exchange(first, second);
  }
  Result<> sync_folder(const std::string& path) override {
    count();
    return real().sync_folder(path);
  }
  Result<> remove(const std::string& path) override {
    count();
    return real().remove(path);
  }
  Result<> remove_folder(const std::string& path) override {
    count();
    if (left_ == 1) {  // half removed
      std::error_code ignored;
      for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
        std::filesystem::remove(entry.path(), ignored);
        die();
      }
    }
    return real().remove_folder(path);
  }
  Result<std::unique_ptr<LockedFile>> lock(const std::string& path, Sharing sharing,
                                           std::chrono::milliseconds patience) override {
    count();
    return real().lock(path, sharing, patience);
  }
  Result<bool> is_locked(const std::string& path) const override { return real().is_locked(path); }

 private:
  static Storage& real() { return real_storage(); }
  Result<std::unique_ptr<OutputFile>> deadly(Result<std::unique_ptr<OutputFile>> file) {
    if (!file) return file;
    return std::make_unique<DeadlyFile>(std::move(*file), *this);
  }
  std::size_t left_;
};

Result<> DeadlyFile::append(std::span<const std::byte> bytes) {
  if (storage_.is_last()) {
    (void)file_->append(bytes.first(bytes.size() / 2));
    DeadlyStorage::die();
  }
  return file_->append(bytes);
}
Result<> DeadlyFile::sync() {
  storage_.count();
  return file_->sync();
}

RunOptions on_disk(const Folder& folder, Storage* storage = nullptr) {
  return {.folder = folder.path(), .job = testing::job, .world_size = 4, .rank = 1, .storage = storage};
}

// What the process was told is in the pipe when it dies.
struct Report {
  float value;
  std::uint64_t step;
};

// Saves steps 1, 2, 2 again, 3 ... and reports each. In a child: nothing may be thrown out of it.
int save_and_report(const Folder& folder, std::size_t at, int report) noexcept {
  DeadlyStorage storage(at);
  auto store = RunStore::open(on_disk(folder, &storage));
  if (!store) return 1;
  float value = 0;
  for (const std::uint64_t number : {1, 2, 2, 3, 4, 5, 6, 7}) {
    value += 1;
    if (!store->save(point(step(0, number), value))) return 2;
    const Report told{value, number};
    if (::write(report, &told, sizeof told) != sizeof told) return 3;
  }
  return 0;
}

// Its wait status.
int run_until_killed(const Folder& folder, std::size_t at, int report) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(save_and_report(folder, at, report));
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

TEST(RunStoreFaults, NothingIsLostWhenAProcessIsKilledAtAnyOperation) {
  bool was_killed = true;
  std::size_t at = 0;
  while (was_killed && at < operations_max) {
    SCOPED_TRACE(++at);
    const Folder folder;
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const int status = run_until_killed(folder, at, ends[1]);
    ::close(ends[1]);
    Report last{};
    while (::read(ends[0], &last, sizeof last) == sizeof last) {
    }
    ::close(ends[0]);
    was_killed = WIFSIGNALED(status);
    ASSERT_TRUE(was_killed ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0) << status;

    auto store = RunStore::open(on_disk(folder));
    ASSERT_TRUE(store) << store.error().message;
    for (const PointId& id : store->points()) {
      const auto found = store->load(id);
      ASSERT_TRUE(found) << found.error().message;
      testing::expect_equal(*found, point(id, *found->tensors[1].value.data<float>()));
    }
    if (last.step != 0) {
      const auto found = store->load(step(0, last.step));
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_GE(*found->tensors[1].value.data<float>(), last.value);
    }
    for (const auto& entry : std::filesystem::directory_iterator(store->folder()))
      EXPECT_NE(entry.path().filename().string().front(), '.') << entry.path();
  }
  EXPECT_GT(at, 100u);
  EXPECT_FALSE(was_killed);
}

}  // namespace run_store_faults_test
}  // namespace
}  // namespace muster::checkpoint
