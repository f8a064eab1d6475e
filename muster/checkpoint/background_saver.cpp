#include "muster/checkpoint/background_saver.h"

#include <utility>

namespace muster::checkpoint {

BackgroundSaver::BackgroundSaver(RunStore& store, const Clock& clock, double bytes_per_second)
    : store_(store), throttle_(bytes_per_second, clock), thread_([this] { run(); }) {}

BackgroundSaver::~BackgroundSaver() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  const WriteThrottle::Flush flush(throttle_);
  thread_.join();
}

void BackgroundSaver::save(Point point) {
  {
    const WriteThrottle::Flush flush(throttle_);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !next_; });
    next_ = std::move(point);
  }
  changed_.notify_all();
}

Result<> BackgroundSaver::wait() {
  const WriteThrottle::Flush flush(throttle_);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !next_; });
  if (auto failure = std::exchange(failure_, std::nullopt)) return fail(*std::move(failure));
  return {};
}

Result<> BackgroundSaver::save_slowly(const Point& point) {
  const WriteThrottle::Work work(throttle_, size_bytes(point));
  return store_.save(point);
}

void BackgroundSaver::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return next_ || ending_; });
    if (!next_) return;
    // No other thread touches the point until it is taken away below.
    lock.unlock();
    auto saved = save_slowly(*next_);
    if (!saved) log::error(saved.error().message);
    *next_ = {};  // frees its memory here, where no caller waits for it
    lock.lock();
    if (!saved && !failure_) failure_ = std::move(saved).error();
    next_.reset();
    changed_.notify_all();
  }
}

}  // namespace muster::checkpoint
