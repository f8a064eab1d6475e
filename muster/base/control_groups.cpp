#include "muster/base/control_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace muster {
namespace {

constexpr std::string_view mount = "/sys/fs/cgroup";

// Of a line of /proc/self/cgroup, "4:cpu,cpuacct:/job/worker": the group, if it is one of this controller.
// Version 2 has one for all of them: "0::/job/worker".
std::optional<ControlGroup> innermost(std::string_view line, std::string_view controller) {
  const std::size_t first = line.find(':');
  const std::size_t second = line.find(':', std::min(first, line.size() - 1) + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  const std::string_view names = line.substr(first + 1, second - first - 1);
  std::string_view path = line.substr(second + 1);
  if (path == "/") path = {};
  if (names.empty()) return ControlGroup{.version = 2, .folder = fmt::format("{}{}", mount, path)};
  if (fmt::format(",{},", names).find(fmt::format(",{},", controller)) == std::string::npos)
    return std::nullopt;
  return ControlGroup{.version = 1, .folder = fmt::format("{}/{}{}", mount, controller, path)};
}

}  // namespace

// In a container the path may be that of the host, of which the container sees its own group alone, as the
// root: what is not there bounds nothing.
std::vector<ControlGroup> control_groups(std::string_view controller, const Files& files) {
  std::vector<ControlGroup> groups;
  const std::string text = text_of(files, "/proc/self/cgroup");
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    auto group = innermost(line, controller);
    if (!group) continue;
    const std::size_t root = mount.size() + (group->version == 2 ? 0 : controller.size() + 1);
    for (; group->folder.size() > root; group->folder.resize(group->folder.rfind('/')))
      groups.push_back(*group);
    groups.push_back(*group);
  }
  return groups;
}

std::string text_of(const Files& files, const std::string& path) {
  const auto bytes = files.read(path);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : std::string();
}

}  // namespace muster
