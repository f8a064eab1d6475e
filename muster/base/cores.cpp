#include "muster/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <thread>

#include "muster/base/control_groups.h"
#include "muster/base/hash.h"

namespace muster {
namespace {

// A positive number at the beginning of `text`, which it leaves; "max" and -1 mean that there is no bound.
std::optional<double> number_from(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc{} && number > 0 ? std::optional(static_cast<double>(number)) : std::nullopt;
}

// Of a group: microseconds of all cores together that it has in each period, and the period.
std::string quota_and_period(const ControlGroup& group, const Files& files) {
  if (group.version == 2) return text_of(files, group.folder + "/cpu.max");
  return text_of(files, group.folder + "/cpu.cfs_quota_us") + " " +
         text_of(files, group.folder + "/cpu.cfs_period_us");
}

// With a part of a core more than that many threads have something to do.
int bounded(int cores) {
  static const std::optional<double> bound = cores_of_control_groups(real_files());
  return std::max(1, bound ? std::min(cores, static_cast<int>(std::ceil(*bound))) : cores);
}

std::optional<cpu_set_t> allowed() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? std::optional(cores) : std::nullopt;
}

}  // namespace

std::optional<double> cores_of_control_groups(const Files& files) {
  std::optional<double> least;
  for (const ControlGroup& group : control_groups("cpu", files)) {
    const std::string text = quota_and_period(group, files);
    std::string_view rest = text;
    const auto quota = number_from(rest);
    const auto period = quota ? number_from(rest) : std::nullopt;
    if (period) least = std::min(least.value_or(*quota / *period), *quota / *period);
  }
  return least;
}

int host_cores() { return bounded(static_cast<int>(std::thread::hardware_concurrency())); }

int allowed_cores() {
  const auto cores = allowed();
  return bounded(cores ? CPU_COUNT(&*cores) : 1);
}

std::uint64_t allowed_cores_key() {
  const auto cores = allowed();
  return cores ? hash_bytes(&*cores, sizeof *cores) : 0;
}

}  // namespace muster
