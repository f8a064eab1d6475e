// State of a callback or a metric beyond its settings, as values that a recovery point can hold.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/base/base.h"
#include "muster/checkpoint/checkpoint.h"

namespace muster::train {

// Opaque to the code that keeps it.
struct State {
  std::string text = {};                        // JSON, an object
  std::vector<checkpoint::Entry> tensors = {};  // by names of its own
};

// The text of a State for those that are written in C++: values by name, no deeper. Every bit of a number is
// kept, infinities and NaN too.
class StateValues {
 public:
  using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>,
                             std::vector<std::string>, std::monostate>;

  StateValues& set(std::string name, Value value);
  // Nothing is a value as well.
  StateValues& set_number_or_none(std::string name, std::optional<double> value);
  bool has(const std::string& name) const { return values_.contains(name); }

  // Errors name what is missing or of another kind.
  Result<bool> flag(const std::string& name) const;
  Result<std::int64_t> integer(const std::string& name) const;
  Result<double> number(const std::string& name) const;
  Result<std::optional<double>> number_or_none(const std::string& name) const;
  Result<std::string> text(const std::string& name) const;
  Result<std::vector<double>> numbers(const std::string& name) const;
  Result<std::vector<std::string>> texts(const std::string& name) const;

  std::string to_json() const;
  static Result<StateValues> from_json(std::string_view text);

 private:
  std::map<std::string, Value> values_;
};

}  // namespace muster::train
