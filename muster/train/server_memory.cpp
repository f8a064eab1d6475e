#include "muster/train/server_memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "muster/base/control_groups.h"

namespace muster::train {
namespace {

constexpr std::uint64_t bytes_per_kib = 1024;

// The number behind `key`, which begins a line; nothing where there is none ("max" is no number).
std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    std::uint64_t number = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), number).ec == std::errc{}) return number;
    return std::nullopt;
  }
  return std::nullopt;
}

// How the two versions of control groups call their things.
struct GroupFiles {
  std::string_view limit;
  std::string_view used;
  std::string_view cache;  // of memory.stat: used, and given up at once where memory is short
};
constexpr GroupFiles files_of_version_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                           "total_inactive_file "};
constexpr GroupFiles files_of_version_2 = {"memory.max", "memory.current", "inactive_file "};

std::uint64_t left_in_group(const Files& files, const ControlGroup& group) {
  const GroupFiles& names = group.version == 1 ? files_of_version_1 : files_of_version_2;
  const auto read = [&](std::string_view name) {
    return number_behind(text_of(files, fmt::format("{}/{}", group.folder, name)), "");
  };
  const auto limit = read(names.limit), used = read(names.used);
  if (!limit || !used) return std::numeric_limits<std::uint64_t>::max();
  const std::string stat = text_of(files, group.folder + "/memory.stat");
  const std::uint64_t kept = *used - std::min(*used, number_behind(stat, names.cache).value_or(0));
  return *limit - std::min(*limit, kept);
}

std::uint64_t left_in_groups(const Files& files) {
  std::uint64_t left = std::numeric_limits<std::uint64_t>::max();
  for (const ControlGroup& group : control_groups("memory", files))
    left = std::min(left, left_in_group(files, group));
  return left;
}

std::uint64_t left_of_address_space(const Files& files) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t used =
      number_behind(text_of(files, "/proc/self/status"), "VmSize:").value_or(0) * bytes_per_kib;
  return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used);
}

}  // namespace

std::uint64_t memory_left_bytes(std::uint32_t processes, const Files& files) {
  const auto available = number_behind(text_of(files, "/proc/meminfo"), "MemAvailable:");
  if (!available) return 0;
  const std::uint64_t shared = std::min(*available * bytes_per_kib, left_in_groups(files));
  return std::min(shared / std::max<std::uint32_t>(processes, 1), left_of_address_space(files));
}

}  // namespace muster::train
