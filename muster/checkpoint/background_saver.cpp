#include "muster/checkpoint/background_saver.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace muster::checkpoint {
namespace {

constexpr int niceness = 19;  // the least that is not nothing: a save ends even where all cores are busy

}  // namespace

void work_in_background() { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), niceness); }

BackgroundSaver::BackgroundSaver(RunStore& store) : store_(store), thread_([this] { run(); }) {}

BackgroundSaver::~BackgroundSaver() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundSaver::save(Point point) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !next_; });
    next_ = std::move(point);
  }
  changed_.notify_all();
}

Result<> BackgroundSaver::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !next_; });
  if (auto failure = std::exchange(failure_, std::nullopt)) return fail(*std::move(failure));
  return {};
}

void BackgroundSaver::run() {
  work_in_background();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return next_ || ending_; });
    if (!next_) return;
    // Nobody else touches the point until it is taken away below.
    lock.unlock();
    auto saved = store_.save(*next_);
    if (!saved) log::error(saved.error().message);
    *next_ = {};  // frees its memory here, where nobody waits for it
    lock.lock();
    if (!saved && !failure_) failure_ = std::move(saved).error();
    next_.reset();
    changed_.notify_all();
  }
}

}  // namespace muster::checkpoint
