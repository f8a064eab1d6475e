#include "muster/net/watched_file.h"

#include <utility>

namespace muster::net {
namespace {

constexpr auto look_interval = std::chrono::seconds(1);

}  // namespace

WatchedFile::WatchedFile(std::string path) : path_(std::move(path)), seen_(look()) {}

bool WatchedFile::has_changed() {
  const TimePoint now = real_clock().now();
  if (now < next_look_) return false;
  next_look_ = now + look_interval;
  const auto found = look();
  const bool is_same = found && found == seen_;
  seen_ = found;
  return !is_same;
}

std::optional<WatchedFile::State> WatchedFile::look() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return std::nullopt;
  return State{.inode = status.st_ino, .size_bytes = status.st_size, .changed = status.st_mtim};
}

}  // namespace muster::net
