#include "muster/net/address.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace muster::net {

struct LookUp::Shared {
  std::mutex mutex;
  std::condition_variable done;
  std::optional<Result<std::vector<std::string>>> result;
};

LookUp::LookUp(const std::string& host) : shared_(std::make_shared<Shared>()) {
  std::thread([shared = shared_, host] {
    auto found = resolve(host);
    const std::lock_guard lock(shared->mutex);
    shared->result = std::move(found);
    shared->done.notify_all();
  }).detach();
}

std::optional<Result<std::vector<std::string>>> LookUp::wait_for(Duration time) {
  std::unique_lock lock(shared_->mutex);
  shared_->done.wait_for(lock, time, [&] { return shared_->result.has_value(); });
  return shared_->result;
}

}  // namespace muster::net
