#include "muster/launch/memory_events.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <sstream>

namespace muster::launch {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Of the second version of control groups: "0::/user.slice".
std::string own_events_file() {
  std::istringstream groups(contents_of("/proc/self/cgroup"));
  constexpr std::string_view unified = "0::";
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with(unified))
      return fmt::format("/sys/fs/cgroup{}/memory.events", line.substr(unified.size()));
  return {};
}

}  // namespace

std::optional<std::uint64_t> out_of_memory_kills(std::string_view memory_events) {
  constexpr std::string_view key = "oom_kill ";
  while (!memory_events.empty()) {
    const std::string_view line = memory_events.substr(0, memory_events.find('\n'));
    std::uint64_t count = 0;
    if (line.starts_with(key) &&
        std::from_chars(line.data() + key.size(), line.data() + line.size(), count).ec == std::errc{})
      return count;
    memory_events.remove_prefix(std::min(line.size() + 1, memory_events.size()));
  }
  return std::nullopt;
}

MemoryEvents::MemoryEvents()
    : file_(own_events_file()),
      kills_(file_.empty() ? std::nullopt : out_of_memory_kills(contents_of(file_))) {}

std::optional<bool> MemoryEvents::has_killed() {
  if (!kills_) return std::nullopt;
  const auto before = kills_;
  kills_ = out_of_memory_kills(contents_of(file_));
  if (!kills_) return std::nullopt;
  return *kills_ > *before;
}

std::string memory_hint(std::string_view process, std::optional<bool> has_killed, std::int64_t peak_kib) {
  if (has_killed == false) return {};
  const std::string peak =
      peak_kib > 0 ? fmt::format("; it had used {} MiB of memory at most", peak_kib / 1024) : "";
  if (has_killed)
    return fmt::format(
        "the kernel's out-of-memory killer ended {}{}: fewer workers on this host, smaller batches, or a "
        "higher limit of memory",
        process, peak);
  return fmt::format(
      "no process of this job sent {} signal 9: often it is the kernel's out-of-memory killer (dmesg | grep "
      "-i oom){}",
      process, peak);
}

}  // namespace muster::launch
