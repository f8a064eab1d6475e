// The variables of a process that the launcher starts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/launch_spec.h"

namespace muster::launch {

class ChildEnvironment final : public Environment {
 public:
  // `spec` is borrowed.
  explicit ChildEnvironment(const ProcessSpec& spec) : spec_(spec) {}
  std::optional<std::string> get(std::string_view name) const override;
  std::vector<std::string> names(std::string_view prefix) const override;

 private:
  const ProcessSpec& spec_;
};

}  // namespace muster::launch
