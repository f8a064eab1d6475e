#include "muster/server/rows_at_hand.h"

#include <algorithm>

namespace muster::server {

void RowsAtHand::add_table(std::size_t width, std::size_t cached_rows) {
  widths_.push_back(width);
  caches_.emplace_back(cached_rows, width);
}

void RowsAtHand::clear() {
  ahead_.clear();
  for (RowCache& cache : caches_) cache.clear();
}

SoughtRows RowsAtHand::seek(std::uint64_t step, std::uint32_t table, SortedIds ids, std::span<float> batch) {
  SoughtRows sought{.table = table, .ids = std::move(ids), .batch = batch, .applied = step};
  counts_.looked_up += sought.ids.ids().size();
  const auto found = ahead_.find(table);
  const RowsAhead* const ahead =
      found != ahead_.end() && found->second.step() == step ? &found->second : nullptr;
  RowCache& cache = caches_[table];
  if (ahead == nullptr && cache.is_empty()) return sought;
  sought.asks_for_all = false;
  for (std::uint32_t server = 0; server < servers_; ++server) {
    sought.begins.push_back(sought.asked_ids.size());
    auto place = static_cast<std::uint32_t>(sought.ids.begin(server));
    std::size_t from = 0;
    for (const std::uint64_t id : sought.ids.ids(server)) {
      const std::uint32_t at = place++;
      if (const auto known = ahead != nullptr ? ahead->find(server, id, from) : std::nullopt) {
        sought.ahead.emplace_back(at, *known);
      } else if (const RowCache::Row row = cache.find(id, least_stamp(step)); row.values != nullptr) {
        sought.ids.spread_row(at, row.values, widths_[table], batch);
        sought.applied = std::min(sought.applied, row.applied);
        ++counts_.from_cache;
      } else {
        sought.places.push_back(at);
        sought.asked_ids.push_back(id);
      }
    }
  }
  sought.begins.push_back(sought.asked_ids.size());
  counts_.from_ahead += sought.ahead.size();
  return sought;
}

bool RowsAtHand::has_come(std::span<const SoughtRows> sought) const {
  return std::ranges::all_of(sought, [this](const SoughtRows& each) {
    return each.ahead.empty() || ahead_.at(each.table).has_come();
  });
}

void RowsAtHand::take(std::uint64_t step, SoughtRows& sought, std::uint32_t server, const Answer& answer) {
  const std::size_t width = widths_[sought.table];
  if (sought.asks_for_all) {
    sought.ids.spread(server, answer.values, width, sought.batch);
  } else {
    for (std::size_t i = sought.begins[server]; i < sought.begins[server + 1]; ++i)
      sought.ids.spread_row(sought.places[i], answer.values.data() + (i - sought.begins[server]) * width,
                            width, sought.batch);
  }
  RowCache& cache = caches_[sought.table];
  if (!cache.keeps_rows()) return;
  const float* row = answer.values.data();
  for (const std::uint64_t id : sought.asked(server)) {
    cache.put(id, {.values = row, .applied = stamp(answer.applied, step)});
    row += width;
  }
}

std::uint64_t RowsAtHand::take_rest(std::uint64_t step, SoughtRows& sought) {
  if (sought.ahead.empty()) return sought.applied;
  const RowsAhead& ahead = ahead_.at(sought.table);
  RowCache& cache = caches_[sought.table];
  for (const auto& [place, which] : sought.ahead) {
    sought.ids.spread_row(place, ahead.row(which), widths_[sought.table], sought.batch);
    cache.put(sought.ids.ids()[place], {.values = ahead.row(which), .applied = stamp(ahead.applied(), step)});
  }
  return std::min(sought.applied, ahead.applied());
}

// ---- Asking ahead

std::vector<std::uint64_t> RowsAtHand::lacking(std::uint64_t step, std::uint32_t table,
                                               std::span<const std::uint64_t> ids) {
  std::vector<std::uint64_t> found;
  for (const std::uint64_t id : ids)
    if (caches_[table].find(id, least_stamp(step)).values == nullptr) found.push_back(id);
  return found;
}

void RowsAtHand::expect(std::uint64_t step, std::uint32_t table, SortedIds ids) {
  ahead_.insert_or_assign(table, RowsAhead(step, std::move(ids), widths_[table]));
}

std::optional<std::uint64_t> RowsAtHand::forget(std::uint32_t table) {
  const auto found = ahead_.find(table);
  if (found == ahead_.end()) return std::nullopt;
  const std::uint64_t step = found->second.step();
  ahead_.erase(found);
  return step;
}

std::vector<std::pair<std::uint64_t, std::uint32_t>> RowsAtHand::forget_before(std::uint64_t step) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> forgotten;
  std::erase_if(ahead_, [&](const auto& each) {
    if (each.second.step() >= step) return false;
    forgotten.emplace_back(each.second.step(), each.first);
    return true;
  });
  return forgotten;
}

bool RowsAtHand::expects() const {
  return std::ranges::any_of(ahead_, [](const auto& each) { return !each.second.has_come(); });
}

}  // namespace muster::server
