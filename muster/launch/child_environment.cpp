#include "muster/launch/child_environment.h"

#include <algorithm>

namespace muster::launch {

std::optional<std::string> ChildEnvironment::get(std::string_view name) const {
  const auto found = spec_.environment.find(std::string(name));
  return found != spec_.environment.end() ? std::optional(found->second) : real_environment().get(name);
}

std::vector<std::string> ChildEnvironment::names(std::string_view prefix) const {
  std::vector<std::string> result = real_environment().names(prefix);
  for (const auto& [name, value] : spec_.environment)
    if (name.starts_with(prefix)) result.push_back(name);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace muster::launch
