#include "muster/server/log_sync.h"

#include <utility>

namespace muster::server {

LogSync::LogSync(PushLog& log, Done done) : log_(log), done_(std::move(done)), thread_([this] { run(); }) {}

LogSync::~LogSync() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void LogSync::want(std::uint64_t records) {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = records;
  }
  changed_.notify_one();
}

void LogSync::run() {
  std::uint64_t kept = 0;
  while (true) {
    std::uint64_t wanted = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || wanted_ > kept; });
      if (ends_) return;
      wanted = wanted_;
    }
    if (auto synced = log_.sync(); !synced) return done_(fail(synced.error()));
    kept = wanted;
    done_(kept);
  }
}

}  // namespace muster::server
