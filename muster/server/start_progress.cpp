#include "muster/server/start_progress.h"

#include <fmt/format.h>

namespace muster::server {
namespace {

constexpr Duration interval = std::chrono::seconds(5);

}  // namespace

void StartProgress::add(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  done_ += bytes;
  const TimePoint now = clock_.now();
  if (now - told_ < interval || done_ >= total_) return;
  told_ = now;
  constexpr double gib = 1 << 30;
  tell_(fmt::format("{} {:.2f} of {:.2f} GiB; workers wait for it", what_, static_cast<double>(done_) / gib,
                    static_cast<double>(total_) / gib));
}

}  // namespace muster::server
