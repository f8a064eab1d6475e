// The settings of an op that are no tensors: a small sorted map from name to value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "muster/base/base.h"

namespace muster::graph {

// What a branch or a loop computes; the graph is a value that nobody changes.
struct Graph;
using GraphPtr = std::shared_ptr<const Graph>;

using Attribute =
    std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>, DType, GraphPtr>;

std::string to_string(const Attribute& attribute);

class Attributes {
 public:
  using Entry = std::pair<std::string, Attribute>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries);

  // Adds or replaces.
  void set(std::string_view name, Attribute value);
  const Attribute* find(std::string_view name) const;
  // The value under `name`, which must be a T if it is there at all.
  template <class T>
  T get(std::string_view name, T otherwise) const {
    const Attribute* found = find(name);
    if (found == nullptr) return otherwise;
    MUSTER_CHECK(std::holds_alternative<T>(*found), "an attribute was read as another type");
    return std::get<T>(*found);
  }
  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }

  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::vector<Entry> entries_;  // sorted by name
};

// "(transpose_b=true)", "" when there is none.
std::string to_string(const Attributes& attributes);

}  // namespace muster::graph
