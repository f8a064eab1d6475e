#include "muster/launch/restarts.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>

#include "muster/cluster/cluster.h"

namespace muster::launch {

bool is_restartable(std::string_view role, int wait_status) {
  if (WIFSIGNALED(wait_status)) return true;
  if (role == "scheduler") return false;
  switch (WEXITSTATUS(wait_status)) {
    case 0:
    case cluster::exit_code_peer_lost:
    case cluster::exit_code_timeout:
    case cluster::exit_code_refused:
    case cluster::exit_code_configuration:
      return false;
    default:
      return true;
  }
}

std::optional<Duration> Restarts::after(const End& end) {
  if (restarts_max_ == 0) return std::nullopt;
  const bool got_on = end.progress != progress_;
  const bool is_same = end.failure == failure_ && end.place == place_ && (!end.place.empty() || !got_on);
  same_failures_ = is_same ? same_failures_ + 1 : 1;
  if (got_on && !is_same) restarts_here_ = 0;
  progress_ = end.progress;
  failure_ = end.failure;
  place_ = end.place;
  if (restarts_ == restarts_max_) {
    refusal_ =
        fmt::format("it has been started again {} times, as often as --max-restarts allows", restarts_);
    return std::nullopt;
  }
  if (same_failures_ == same_failures_max) {
    refusal_ = fmt::format("the same failure came {} times {}", same_failures_,
                           place_.empty() ? "without a newer recovery point in between" : place_);
    return std::nullopt;
  }
  ++restarts_;
  return next_delay();
}

Duration Restarts::next_delay() {
  if (restarts_here_++ == 0) return Duration::zero();
  Duration delay = delay_first_;
  for (std::size_t i = 2; i < restarts_here_ && delay < delay_max_; ++i) delay *= 2;
  return std::min(delay, delay_max_);
}

}  // namespace muster::launch
