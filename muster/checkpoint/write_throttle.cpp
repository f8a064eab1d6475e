#include "muster/checkpoint/write_throttle.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <utility>

#include "muster/base/cores.h"
#include "muster/checkpoint/direct_writer.h"

namespace muster::checkpoint {
namespace {

// So short that a training step on the same core does not wait for it long; so long that a thread of the
// least priority, which may have to wait for a core before each, is soon done.
constexpr std::size_t piece_bytes = std::size_t{4} << 20;
// Less is done before another thread has begun with it.
constexpr std::size_t worth_yielding_bytes = std::size_t{1} << 20;

constexpr int niceness = 19;

// 100 MB cost 20 ms of a core: a worker alone loses a fortieth of one, a core that workers share an eightieth
// for each of them.
constexpr double bytes_per_second_max = 128e6;
constexpr double bytes_per_second_and_core = 64e6;

thread_local WriteThrottle* throttle_of_thread = nullptr;

}  // namespace

// A thread of the least priority that does one thing at a time.
class WriteThrottle::Yielding {
 public:
  Yielding() : thread_([this] { work(); }) {}
  Yielding(const Yielding&) = delete;
  Yielding& operator=(const Yielding&) = delete;
  ~Yielding() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Returns when `task` has been done there.
  void run(const std::function<void()>& task) {
    std::unique_lock lock(mutex_);
    task_ = &task;
    changed_.notify_all();
    changed_.wait(lock, [this] { return task_ == nullptr; });
  }

 private:
  void work() {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), niceness);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return task_ != nullptr || ending_; });
      if (task_ == nullptr) return;
      (*task_)();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* task_ = nullptr;
  bool ending_ = false;
  std::thread thread_;  // the last member: it uses the others
};

double WriteThrottle::beside(std::uint32_t workers_of_host) {
  const double cores = host_cores();
  return std::min(bytes_per_second_max, bytes_per_second_and_core * cores / workers_of_host);
}

WriteThrottle::WriteThrottle(double bytes_per_second, const Clock& clock)
    : bytes_per_second_(bytes_per_second), clock_(clock) {}

WriteThrottle::~WriteThrottle() = default;

WriteThrottle::Work::Work(WriteThrottle& throttle, std::size_t bytes) {
  throttle.begin(bytes);
  throttle_of_thread = &throttle;
}

WriteThrottle::Work::~Work() { throttle_of_thread = nullptr; }

WriteThrottle::Flush::Flush(WriteThrottle& throttle) : throttle_(throttle) {
  {
    const std::lock_guard lock(throttle_.mutex_);
    ++throttle_.waiters_;
  }
  throttle_.changed_.notify_all();
}

WriteThrottle::Flush::~Flush() {
  const std::lock_guard lock(throttle_.mutex_);
  --throttle_.waiters_;
}

Result<> WriteThrottle::in_pieces(std::span<const std::byte> content, const Handle& handle) {
  while (!content.empty()) {
    const std::size_t in_page =
        reinterpret_cast<std::uintptr_t>(content.data()) % DirectWriter::alignment_bytes;
    const auto piece = content.first(std::min(content.size(), piece_bytes - in_page));
    MUSTER_TRY_VOID(throttle_of_thread == nullptr ? handle(piece)
                                                  : throttle_of_thread->take_turn(piece, handle));
    content = content.subspan(piece.size());
  }
  return {};
}

void WriteThrottle::begin(std::size_t bytes) {
  const TimePoint now = clock_.now();
  const std::chrono::duration<double> slowly(static_cast<double>(bytes) / bytes_per_second_);
  const std::chrono::duration<double> in_time = (now - std::exchange(began_, now)) / 2.0;
  duration_ = std::chrono::duration_cast<Duration>(std::min(slowly, in_time));
  bytes_ = bytes;
  written_ = 0;
}

Result<> WriteThrottle::take_turn(std::span<const std::byte> piece, const Handle& handle) {
  const bool may_yield = rest_until_turn();
  written_ += piece.size();
  if (!may_yield || piece.size() < worth_yielding_bytes) return handle(piece);
  if (!yielding_) yielding_ = std::make_unique<Yielding>();
  Result<> result;
  yielding_->run([&] { result = handle(piece); });
  return result;
}

// Whether there is time enough to let others go first.
bool WriteThrottle::rest_until_turn() {
  const double share = written_ < bytes_ ? static_cast<double>(written_) / static_cast<double>(bytes_) : 1.0;
  const TimePoint turn = began_ + std::chrono::duration_cast<Duration>(duration_ * share);
  std::unique_lock lock(mutex_);
  const bool is_hurried = changed_.wait_until(lock, turn, [this] { return waiters_ > 0; });
  const bool is_late = clock_.now() > began_ + 2 * duration_;
  return !is_hurried && !is_late;
}

}  // namespace muster::checkpoint
