#include "muster/base/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace muster {
namespace {

class RealEnvironment final : public Environment {
 public:
  std::optional<std::string> get(std::string_view name) const override {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  }

  std::vector<std::string> names(std::string_view prefix) const override {
    std::vector<std::string> found;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view line(*entry);
      const auto name = line.substr(0, line.find('='));
      if (name.starts_with(prefix)) found.emplace_back(name);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
};

}  // namespace

const Environment& real_environment() {
  static const RealEnvironment environment;
  return environment;
}

std::optional<std::string> FixedEnvironment::get(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> FixedEnvironment::names(std::string_view prefix) const {
  std::vector<std::string> found;
  for (const auto& [name, value] : values_)
    if (name.starts_with(prefix)) found.push_back(name);
  return found;
}

}  // namespace muster
