#include "tests/sim/server/schedules.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::server::sim {
namespace {

class ScheduleDraw {
 public:
  explicit ScheduleDraw(std::uint64_t seed) : random_(seed, hash_text("servers schedule")) {}
  std::uint64_t bits() { return random_.bits(count_++); }
  std::uint64_t below(std::uint64_t bound) { return random_.below(count_++, bound); }

 private:
  RandomStream random_;
  std::uint64_t count_ = 0;
};

Staleness drawn_staleness(ScheduleDraw& draw) {
  const std::uint64_t drawn = draw.below(6);
  if (drawn == 5) return std::nullopt;
  return drawn < 3 ? 0 : drawn - 2;
}

Plan plan_for(std::uint64_t seed) {
  ScheduleDraw draw(seed);
  Plan plan{.seed = seed};
  plan.worker_num = static_cast<std::uint32_t>(1 + draw.below(3));
  plan.server_num = static_cast<std::uint32_t>(1 + draw.below(3));
  plan.staleness = drawn_staleness(draw);
  plan.steps = 2 + draw.below(8);
  plan.point_every = 1 + draw.below(3);
  plan.delay_max = 1 + draw.below(30);
  if (draw.below(2) == 0) {
    plan.lost_of_100 = draw.below(20);
    plan.doubled_of_100 = draw.below(20);
  }
  for (std::uint64_t faults = draw.below(6); faults > 0; --faults)
    plan.faults.push_back({.when = draw.below(plan.steps * (40 + 3 * plan.delay_max)),
                           .kind = static_cast<FaultKind>(draw.below(fault_kind_count)),
                           .what = draw.bits()});
  std::sort(plan.faults.begin(), plan.faults.end(),
            [](const Fault& a, const Fault& b) { return a.when < b.when; });
  if (plan.server_num > 1 && draw.below(2) == 0) plan.copies = 2;
  return plan;
}

}  // namespace

RunResult run_schedule(std::uint64_t seed) { return run(plan_for(seed), false); }

std::vector<std::string> explain(std::uint64_t seed) {
  Plan plan = plan_for(seed);
  const auto promise_broken = [](const Plan& with) {
    const RunResult result = run(with, false);
    return result.broken.empty() ? std::string() : result.broken[0].substr(0, result.broken[0].find(':'));
  };
  const std::string promise = promise_broken(plan);
  for (std::size_t i = plan.faults.size(); i-- > 0;) {
    Plan less = plan;
    less.faults.erase(less.faults.begin() + static_cast<std::ptrdiff_t>(i));
    if (!promise.empty() && promise_broken(less) == promise) plan = std::move(less);
  }
  std::vector<std::string> lines{
      fmt::format("{} workers, {} servers, {} copies, staleness {}, {} steps, a point every {}",
                  plan.worker_num, plan.server_num, plan.copies,
                  plan.staleness ? std::to_string(*plan.staleness) : "none", plan.steps, plan.point_every)};
  RunResult result = run(plan, true);
  lines.insert(lines.end(), result.trace.begin(), result.trace.end());
  return lines;
}

}  // namespace muster::server::sim
