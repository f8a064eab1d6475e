// Environment variables as an argument.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

class Environment {
 public:
  virtual ~Environment() = default;
  virtual std::optional<std::string> get(std::string_view name) const = 0;
  // Names that start with `prefix`, sorted.
  virtual std::vector<std::string> names(std::string_view prefix) const = 0;
};

// The variables of this process.
const Environment& real_environment();

// A fixed set of variables: the simulated counterpart.
class FixedEnvironment final : public Environment {
 public:
  explicit FixedEnvironment(std::map<std::string, std::string, std::less<>> values)
      : values_(std::move(values)) {}
  std::optional<std::string> get(std::string_view name) const override;
  std::vector<std::string> names(std::string_view prefix) const override;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace muster
