#include "muster/collective/work.h"

#include <utility>

#include "muster/base/state_clock.h"

namespace muster::collective {

bool Work::is_done() const {
  const std::lock_guard lock(mutex_);
  return end_.has_value();
}

std::optional<Result<>> Work::wait(std::optional<Duration> timeout) const {
  const WaitingScope waiting;
  std::unique_lock lock(mutex_);
  const auto is_done = [this] { return end_.has_value(); };
  if (timeout)
    changed_.wait_for(lock, *timeout, is_done);
  else
    changed_.wait(lock, is_done);
  return end_;
}

void Work::on_done(std::function<void(const Result<>&)> then) {
  std::unique_lock lock(mutex_);
  if (!end_) return followers_.push_back(std::move(then));
  lock.unlock();  // the end stays
  then(*end_);
}

void Work::finish(Result<> end) {
  std::unique_lock lock(mutex_);
  MUSTER_CHECK(!end_, "a call ends once");
  end_ = std::move(end);
  const auto followers = std::exchange(followers_, {});
  lock.unlock();
  changed_.notify_all();
  for (const auto& follower : followers) follower(*end_);
}

}  // namespace muster::collective
