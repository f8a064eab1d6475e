#include "tests/sim/server/rows.h"

#include <fmt/format.h>

#include "muster/server/sharding.h"

namespace muster::server::sim {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mixed(mixed(a + 0x9E3779B97F4A7C15) ^ b); }

std::set<std::uint64_t> Script::rows(std::uint32_t worker, std::uint64_t step) const {
  std::set<std::uint64_t> found;
  const std::uint64_t drawn = mix(mix(plan_.seed, 77), mix(worker, step));
  for (std::uint64_t row = 0; row < row_num; ++row)
    if ((drawn >> (3 * row)) % 8 < 3) found.insert(row);
  return found;
}

Contents Script::contents(std::uint32_t worker, std::uint64_t step, std::uint64_t state,
                          const Contents& values) const {
  Contents made;
  for (const auto& [row, value] : values) made[row] = mix(mix(state, value), mix(worker, mix(step, row)));
  return made;
}

std::uint64_t Script::next_state(std::uint64_t state, const Contents& values) const {
  for (const auto& [row, value] : values) state = mix(state, mix(row, value));
  return mix(state, 1);
}

std::uint64_t RowTable::value(std::uint64_t row) const {
  const auto found = values_.find(row);
  return found == values_.end() ? mix(plan_->seed, row) : found->second;
}

void RowTable::apply(std::uint64_t step, const std::vector<const PushBody*>& pushes) {
  if (!plan_->staleness) {
    const PushBody& push = *pushes.at(0);
    if (!seen_.insert({push.worker, push.step}).second)
      fault_ = fmt::format("step {} of worker {} was applied twice", push.step, push.worker);
    for (const auto& [row, content] : push.contents) values_[row] = value(row) + content;
    return;
  }
  if (step != applied_ || pushes.size() != plan_->worker_num)
    fault_ =
        fmt::format("step {} was applied where {} was due, with {} pushes", step, applied_, pushes.size());
  Contents sums;
  for (std::uint32_t worker = 0; worker < pushes.size(); ++worker) {
    if (pushes[worker]->worker != worker || pushes[worker]->step != step)
      fault_ = fmt::format("step {} got the push of step {} of worker {}", step, pushes[worker]->step,
                           pushes[worker]->worker);
    for (const auto& [row, content] : pushes[worker]->contents) sums[row] = mix(sums[row], content);
  }
  for (const auto& [row, sum] : sums) values_[row] = mix(value(row), mix(sum, step));
  applied_ = step + 1;
}

RowTable undisturbed(const Plan& plan) {
  const Script script(plan);
  RowTable table(plan);
  std::vector<std::uint64_t> states;
  for (std::uint32_t worker = 0; worker < plan.worker_num; ++worker)
    states.push_back(script.first_state(worker));
  for (std::uint64_t step = 0; step < plan.steps; ++step) {
    std::vector<PushBody> pushes;
    for (std::uint32_t worker = 0; worker < plan.worker_num; ++worker) {
      Contents values;
      for (const std::uint64_t row : script.rows(worker, step)) values[row] = table.value(row);
      pushes.push_back({worker, step, script.contents(worker, step, states[worker], values)});
      states[worker] = script.next_state(states[worker], values);
    }
    std::vector<const PushBody*> all;
    for (const PushBody& push : pushes) all.push_back(&push);
    table.apply(step, all);
  }
  return table;
}

}  // namespace muster::server::sim
