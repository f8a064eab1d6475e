#include "muster/graph/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/graph/nodes.h"

namespace muster::graph {
namespace {

auto place_of(std::vector<Attributes::Entry>& entries, std::string_view name) {
  return std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const Attributes::Entry& entry, std::string_view key) { return entry.first < key; });
}

struct Printer {
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return fmt::format("'{}'", value); }
  std::string operator()(const std::vector<std::int64_t>& value) const {
    return fmt::format("[{}]", fmt::join(value, ", "));
  }
  std::string operator()(DType value) const { return std::string(to_string(value)); }
  std::string operator()(const GraphPtr& value) const {
    return fmt::format("graph '{}' of {} nodes", value->name, value->nodes.size());
  }
};

}  // namespace

std::string to_string(const Attribute& attribute) { return std::visit(Printer{}, attribute); }

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, entry.second);
}

void Attributes::set(std::string_view name, Attribute value) {
  const auto place = place_of(entries_, name);
  if (place != entries_.end() && place->first == name)
    place->second = std::move(value);
  else
    entries_.insert(place, Entry{std::string(name), std::move(value)});
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.first == name) return &entry.second;
  return nullptr;
}

std::string to_string(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes.entries())
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, to_string(value));
  return text.empty() ? text : "(" + text + ")";
}

}  // namespace muster::graph
