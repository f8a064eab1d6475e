#include "muster/train/watch.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "muster/train/front_end.h"
#include "muster/train/metric_writer.h"

namespace muster::train {
namespace {

using namespace std::chrono_literals;

constexpr auto patience_after_failure = 1s;  // for the main thread to end by itself, with its own message
constexpr auto patience_for_flush = 500ms;

// Flushing may wait for a lock that a stuck thread holds; it gets its own thread and a limit.
void flush_bounded() {
  struct State {
    std::mutex mutex;
    std::condition_variable done;
    bool finished = false;
  };
  auto state = std::make_shared<State>();
  std::thread([state] {
    flush_front_end();
    std::fflush(nullptr);
    MetricWriter::flush_all(patience_for_flush);
    const std::lock_guard lock(state->mutex);
    state->finished = true;
    state->done.notify_one();
  }).detach();
  std::unique_lock lock(state->mutex);
  state->done.wait_for(lock, patience_for_flush, [&] { return state->finished; });
}

}  // namespace

void Watch::attach(WorkerGroups& groups) {
  const std::lock_guard lock(mutex_);
  groups_ = &groups;
  if (failure_) groups.end(Error{failure_->code, failure_->message});
}

void Watch::job_failed(const cluster::Failure& failure) {
  const std::lock_guard lock(mutex_);
  if (leaving_ || failure_) return;
  failure_ = failure;
  if (groups_ != nullptr) groups_->end(Error{failure.code, failure.message});
  changed_.notify_all();
  thread_ = std::thread([this] { end_process_unless_leaving(); });
}

std::optional<cluster::Failure> Watch::wait_for_failure(Duration limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return failure_.has_value(); });
  return failure_;
}

void Watch::stand_down() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watch::end_process_unless_leaving() {
  {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, patience_after_failure, [&] { return leaving_; })) return;
  }
  log::error(failure_->message);
  flush_bounded();
  _exit(failure_->exit_code);
}

}  // namespace muster::train
