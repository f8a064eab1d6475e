#include "muster/cluster/fingerprint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>

#include "muster/cluster/forming_table.h"

namespace muster::cluster {
namespace {

// Variables of the environment on which the bits of a result, or the way they are sent, may depend.
constexpr std::string_view variables_that_matter[] = {
    "MUSTER_TRANSPORT", "OMP_NUM_THREADS", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "PYTHONHASHSEED"};
constexpr std::size_t values_shown_max = 4;
constexpr std::size_t names_shown_max = 4;
constexpr std::size_t keys_max = 64;  // of all processes together
constexpr std::string_view absent = "";

using Groups = std::map<std::string_view, std::vector<const FingerprintSource*>>;  // by value

std::string_view value_of(const Traits& traits, std::string_view key) {
  const auto found =
      std::find_if(traits.begin(), traits.end(), [&](const Trait& trait) { return trait.key == key; });
  return found == traits.end() ? absent : std::string_view(found->value);
}

std::string names_of(const std::vector<const FingerprintSource*>& sources) {
  std::vector<std::uint32_t> ranks;
  std::vector<std::string> parts;
  for (const FingerprintSource* source : sources)
    if (source->rank) ranks.push_back(*source->rank);
  std::sort(ranks.begin(), ranks.end());
  if (!ranks.empty()) parts.push_back(numbered("rank", ranks));
  std::size_t named = 0;
  for (const FingerprintSource* source : sources) {
    if (source->rank) continue;
    if (++named > names_shown_max) break;
    parts.push_back(named == names_shown_max ? "..." : source->name);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string line_of(std::string_view key, const Groups& groups) {
  std::vector<const Groups::value_type*> order;
  for (const auto& group : groups) order.push_back(&group);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->second.size() < b->second.size(); });
  if (order.size() > values_shown_max)  // the most common one is worth more than all rare ones
    order.erase(order.begin() + values_shown_max - 1, order.end() - 1);
  std::vector<std::string> parts;
  for (const auto* group : order)
    parts.push_back(group->first == absent
                        ? fmt::format("not set at {}", names_of(group->second))
                        : fmt::format("'{}' at {}", group->first, names_of(group->second)));
  return fmt::format("{} is {}", key, fmt::join(parts, ", "));
}

constexpr const char* version_key = "Muster's version";

}  // namespace

std::string version_in(const Traits& traits) {
  const auto found = std::ranges::find(traits, version_key, &Trait::key);
  return found == traits.end() ? "" : found->value;
}

std::string own_version() { return MUSTER_VERSION; }

Traits traits_of(const Environment& environment) {
  Traits traits = {{version_key, own_version()},
                   {"byte order", std::endian::native == std::endian::little ? "little" : "big"}};
  for (const std::string_view name : variables_that_matter)
    if (const auto value = environment.get(name); value && !value->empty())
      traits.push_back({std::string(name), *value});
  return traits;
}

std::vector<std::string> trait_differences(const std::vector<FingerprintSource>& sources) {
  std::vector<std::string_view> keys;
  for (const FingerprintSource& source : sources) {
    if (*source.traits == *sources.front().traits && !keys.empty())
      continue;  // nearly all are like the first
    for (const Trait& trait : *source.traits)
      if (keys.size() < keys_max && std::find(keys.begin(), keys.end(), trait.key) == keys.end())
        keys.push_back(trait.key);
  }
  std::vector<std::string> lines;
  for (const std::string_view key : keys) {
    const bool is_of_role = std::ranges::find(variables_that_matter, key) != std::end(variables_that_matter);
    Groups groups, of_servers;
    for (const FingerprintSource& source : sources)
      (is_of_role && source.is_server ? of_servers : groups)[value_of(*source.traits, key)].push_back(
          &source);
    for (const Groups* const compared : {&groups, &of_servers})
      if (compared->size() > 1) lines.push_back(line_of(key, *compared));
  }
  return lines;
}

}  // namespace muster::cluster
