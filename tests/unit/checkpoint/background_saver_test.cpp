#include "muster/checkpoint/background_saver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/unit/checkpoint/folder.h"
#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {

using testing::MemoryStorage;
using testing::open_store;
using testing::point;
using testing::step;

// A disk that stands still until it may go on.
class SlowStorage final : public Storage {
 public:
  explicit SlowStorage(MemoryStorage disk) : disk_(std::move(disk)) {}

  void stop() {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  void go_on() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = false;
    }
    changed_.notify_all();
  }
  // Blocks until a save waits for the disk.
  void wait_for_a_save() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_waited_for_; });
  }
  MemoryStorage& disk() { return disk_; }

  Result<std::string> make_temporary_folder(const std::string& prefix) override {
    std::unique_lock lock(mutex_);
    is_waited_for_ = is_stopped_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !is_stopped_; });
    is_waited_for_ = false;
    return disk_.make_temporary_folder(prefix);
  }
  Result<std::vector<std::byte>> read(const std::string& path) const override { return disk_.read(path); }
  Result<std::vector<std::string>> list(const std::string& path) const override { return disk_.list(path); }
  Result<std::unique_ptr<InputFile>> open(const std::string& path) const override { return disk_.open(path); }
  Result<> write_pieces(const std::string& path,
                        std::span<const std::span<const std::byte>> pieces) override {
    return disk_.write_pieces(path, pieces);
  }
  Result<> make_folder(const std::string& path) override { return disk_.make_folder(path); }
  Result<std::unique_ptr<OutputFile>> create(const std::string& path) override { return disk_.create(path); }
  Result<std::unique_ptr<OutputFile>> append_to(const std::string& path, std::uint64_t size) override {
    return disk_.append_to(path, size);
  }
  Result<> rename(const std::string& from, const std::string& to) override { return disk_.rename(from, to); }
  Result<> exchange(const std::string& one, const std::string& other) override {
    return disk_.exchange(one, other);
  }
  Result<> sync_folder(const std::string& path) override { return disk_.sync_folder(path); }
  Result<> remove(const std::string& path) override { return disk_.remove(path); }
  Result<> remove_folder(const std::string& path) override { return disk_.remove_folder(path); }
  Result<std::unique_ptr<LockedFile>> lock(const std::string& path, Sharing sharing,
                                           std::chrono::milliseconds patience) override {
    return disk_.lock(path, sharing, patience);
  }
  Result<bool> is_locked(const std::string& path) const override { return disk_.is_locked(path); }

 private:
  MemoryStorage disk_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopped_ = false;
  bool is_waited_for_ = false;
};

TEST(BackgroundSaver, SavesPointsInTheirOrder) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  BackgroundSaver saver(store, real_clock());
  for (std::uint64_t i = 1; i <= 4; ++i) saver.save(point(step(0, i), 1.0F));
  ASSERT_TRUE(saver.wait());
  EXPECT_EQ(store.points(), (std::vector{step(0, 1), step(0, 2), step(0, 3), step(0, 4)}));
}

TEST(BackgroundSaver, LetsTheCallerGoOnWhileTheDiskIsSlow) {
  SlowStorage storage{MemoryStorage()};
  RunStore store = open_store(storage);
  BackgroundSaver saver(store, real_clock());
  storage.stop();
  saver.save(point(step(0, 1), 1));
  storage.wait_for_a_save();  // and yet we are here
  EXPECT_TRUE(store.points().empty());
  EXPECT_TRUE(store.add_step_hash(0, 1, 2)) << "the other records do not wait for it either";
  EXPECT_TRUE(store.finish_call({.call = 0, .kind = "train"}));

  std::atomic<bool> second_is_taken = false;
  std::thread training([&] {
    saver.save(point(step(0, 2), 2));
    second_is_taken = true;
  });
  EXPECT_FALSE(second_is_taken) << "one save at a time";
  storage.go_on();
  training.join();
  ASSERT_TRUE(saver.wait());
  EXPECT_EQ(store.points(), (std::vector{step(0, 1), step(0, 2)}));
}

TEST(BackgroundSaver, SaysLoudlyThatASaveFailedAndGoesOn) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  BackgroundSaver saver(store, real_clock());
  ::testing::internal::CaptureStderr();
  disk.set_fault({.at = 2, .kind = testing::Fault::Kind::once});
  saver.save(point(step(0, 1), 1));
  saver.save(point(step(0, 2), 2));
  const auto waited = saver.wait();
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_FALSE(waited);
  EXPECT_EQ(said, "muster error: " + waited.error().message + "\n");
  EXPECT_NE(said.find("step 1 of call 0 (65 bytes) was NOT saved"), std::string::npos) << said;
  EXPECT_EQ(store.points(), std::vector{step(0, 2)});
  EXPECT_TRUE(saver.wait()) << "a failure is told once";
}

TEST(BackgroundSaver, LosesNoPointWhenItEnds) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  { BackgroundSaver(store, real_clock()).save(point(step(0, 1), 1)); }
  EXPECT_EQ(store.points(), std::vector{step(0, 1)});
}

TEST(BackgroundSaver, DoesNotRestWhileSomebodyWaitsForIt) {
  const testing::Folder folder;
  RunStore store = RunStore::open({.folder = folder.path(), .job = testing::job}).value();
  BackgroundSaver saver(store, real_clock(), 1.0);  // byte a second: each save would take months
  const auto large = [](std::uint64_t number) {
    return Point{.id = step(0, number), .tensors = {{"weight", Tensor(DType::float32, {3 << 20})}}};
  };
  saver.save(large(1));
  saver.save(large(2));  // waits for the first
  ASSERT_TRUE(saver.wait());
  EXPECT_EQ(store.points(), (std::vector{step(0, 1), step(0, 2)}));
}

}  // namespace
}  // namespace muster::checkpoint
