#include "muster/collective/ucx_pump.h"

#include <algorithm>
#include <utility>

#include "muster/net/net.h"

namespace muster::collective {
namespace {

constexpr auto pump_interval = std::chrono::microseconds(200);

}  // namespace

std::shared_ptr<UcxPump> UcxPump::shared() {
  static std::mutex mutex;
  static std::pair<std::uint32_t, std::weak_ptr<UcxPump>> known;
  const std::lock_guard lock(mutex);
  auto pump = known.first == net::fork_count() ? known.second.lock() : nullptr;
  if (pump) return pump;
  pump = std::make_shared<UcxPump>();
  known = {net::fork_count(), pump};
  return pump;
}

UcxPump::UcxPump() : thread_([this] { run(); }) {}

UcxPump::~UcxPump() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void UcxPump::add(Work& work) {
  {
    const std::lock_guard lock(mutex_);
    works_.push_back(&work);
    if (works_.size() > 1) return;  // it is awake
  }
  changed_.notify_one();
}

void UcxPump::remove(Work& work) {
  const std::lock_guard lock(mutex_);
  std::erase(works_, &work);
}

void UcxPump::run() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    if (works_.empty())
      changed_.wait(lock);
    else
      changed_.wait_for(lock, pump_interval);
    std::erase_if(works_, [](Work* work) { return !work->pump(); });
  }
}

}  // namespace muster::collective
