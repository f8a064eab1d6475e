#include "muster/train/lookups_ahead.h"

#include <algorithm>
#include <utility>

namespace muster::train {
namespace {

// Of one table: several may stand in one step, and some scripts begin with other batches.
constexpr int compared_max = 16;

// Optimizers that have something on servers.
std::uint64_t served_optimizers() {
  std::set<const graph::Parameter*> counters;
  for (std::int64_t number = 0; number < graph::served_count(); ++number)
    if (const auto& steps = graph::served_parameter(number).steps) counters.insert(steps.get());
  return counters.size();
}

bool has_ids(const Tensor& column) {
  return column.dtype() == DType::int32 || column.dtype() == DType::int64;
}

// Those that the table has, in their order.
std::vector<std::uint64_t> ids_in(const Tensor& column, std::int64_t number) {
  const graph::Parameter& table = *graph::served_parameter(number).parameter;
  const std::int64_t rows = table.served_rows() ? table.served_rows()->shape[0] : 0;
  std::vector<std::uint64_t> ids;
  const auto add = [&](const auto* all) {
    for (std::int64_t i = 0; i < column.elements(); ++i)
      if (all[i] >= 0 && (rows == 0 || all[i] < rows)) ids.push_back(static_cast<std::uint64_t>(all[i]));
  };
  if (column.dtype() == DType::int32)
    add(column.data<std::int32_t>());
  else
    add(column.data<std::int64_t>());
  return ids;
}

}  // namespace

// Without what was asked for this step or an earlier one.
LookupsAhead::Expected& LookupsAhead::expected_behind(std::int64_t number, std::uint64_t step) {
  Expected& expected = expected_[number];
  if (expected.step && *expected.step <= step) expected = {};
  return expected;
}

void LookupsAhead::expect(std::int64_t number, const Tensor& ids, std::uint64_t now) {
  Expected& expected = expected_behind(number, now);
  const auto more = ids_in(ids, number);
  expected.ids.insert(expected.ids.end(), more.begin(), more.end());
  expected.is_asked = false;
}

bool LookupsAhead::has_looked_up(std::int64_t number, std::uint64_t step) const {
  const auto found = looked_up_.find(number);
  return found != looked_up_.end() && found->second == step;
}

// Each optimizer's step counts among the steps of servers: the next lookups follow all of them.
Result<> LookupsAhead::ask(server::ParameterClient& client, std::uint64_t now, std::uint32_t table,
                           std::int64_t number) {
  Expected& expected = expected_behind(number, now);
  if (expected.is_asked || expected.ids.empty()) return {};
  expected.is_asked = true;
  expected.step = now + served_optimizers();
  return client.pull_ahead(*expected.step, table, expected.ids);
}

Result<> LookupsAhead::looked_up(server::ParameterClient& client, std::uint64_t step, std::uint32_t table,
                                 const graph::ServedLookup& lookup) {
  looked_up_[lookup.number] = step;
  find_columns(lookup);
  return ask(client, step, table, lookup.number);
}

void LookupsAhead::begin_step(std::span<const Tensor> batch, const data::Item* next, std::uint64_t now) {
  batch_.clear();
  const auto may_find = [](const auto& each) { return each.second < compared_max; };
  if (graph::served_count() > 0 && (compared_.empty() || std::ranges::any_of(compared_, may_find)))
    batch_.assign(batch.begin(), batch.end());
  if (next == nullptr) return;
  for (const auto& [number, columns] : columns_)
    for (const std::size_t column : columns)
      if (column < next->size() && has_ids((*next)[column])) expect(number, (*next)[column], now);
}

void LookupsAhead::find_columns(const graph::ServedLookup& lookup) {
  if (compared_[lookup.number]++ >= compared_max) return;
  for (std::size_t i = 0; i < batch_.size(); ++i)
    if (has_ids(batch_[i]) && std::ranges::equal(ids_in(batch_[i], lookup.number), lookup.ids))
      columns_[lookup.number].insert(i);
}

void LookupsAhead::clear() {
  expected_.clear();
  looked_up_.clear();
}

}  // namespace muster::train
