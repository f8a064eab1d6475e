#include "tests/sim/storage/schedules.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace muster::train::sim {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, hash_text("storage schedule")) {}
  std::uint64_t bits() { return random_.bits(count_++); }
  std::uint64_t below(std::uint64_t bound) { return random_.below(count_++, bound); }
  bool one_of(std::uint64_t n) { return below(n) == 0; }

 private:
  RandomStream random_;
  std::uint64_t count_ = 0;
};

Plan plan_for(std::uint64_t seed) {
  Draw draw(seed);
  Plan plan{.seed = seed};
  plan.worker_num = static_cast<std::uint32_t>(1 + draw.below(draw.one_of(4) ? 4 : 3));
  plan.has_one_disk = draw.one_of(2);
  plan.script = {
      .save_steps = 1 + draw.below(2), .has_own_state = draw.one_of(3), .keeps_memory = !draw.one_of(3)};
  std::uint64_t turns = 0;
  for (std::uint64_t calls = 1 + draw.below(3); calls > 0; --calls) {
    plan.script.calls.push_back(1 + draw.below(draw.one_of(3) ? 12 : 4));
    turns += plan.worker_num * (plan.script.calls.back() * 5 + 8);
  }
  for (std::uint64_t faults = draw.below(7); faults > 0; --faults)
    plan.faults.push_back({.when = draw.below(turns),
                           .kind = static_cast<FaultKind>(draw.below(fault_kind_count)),
                           .lasts = 1 + draw.below(turns),
                           .what = draw.bits()});
  std::sort(plan.faults.begin(), plan.faults.end(),
            [](const Fault& a, const Fault& b) { return a.when < b.when; });
  return plan;
}

std::string describe(const Fault& fault) {
  return fmt::format("fault {} at turn {}, lasts {}, what {:#x}", static_cast<int>(fault.kind), fault.when,
                     fault.lasts, fault.what);
}

}  // namespace

RunResult run_schedule(std::uint64_t seed) { return Simulator(plan_for(seed), false).run(); }

std::vector<std::string> explain(std::uint64_t seed) {
  Plan plan = plan_for(seed);
  const auto promise_broken = [](const Plan& with) {
    const RunResult result = Simulator(with, false).run();
    return result.broken.empty() ? std::string() : result.broken[0].substr(0, result.broken[0].find(':'));
  };
  const std::string promise = promise_broken(plan);
  for (std::size_t i = plan.faults.size(); i-- > 0;) {
    Plan less = plan;
    less.faults.erase(less.faults.begin() + static_cast<std::ptrdiff_t>(i));
    if (!promise.empty() && promise_broken(less) == promise) plan = std::move(less);
  }
  std::vector<std::string> lines{fmt::format(
      "{} workers, {}, own state: {}, memory counts: {}, a point every {} steps, calls of {} steps",
      plan.worker_num, plan.has_one_disk ? "one disk" : "a disk each", plan.script.has_own_state,
      plan.script.keeps_memory, plan.script.save_steps, fmt::join(plan.script.calls, ", "))};
  for (const Fault& fault : plan.faults) lines.push_back(describe(fault));
  RunResult result = Simulator(plan, true).run();
  lines.insert(lines.end(), result.trace.begin(), result.trace.end());
  lines.insert(lines.end(), result.broken.begin(), result.broken.end());
  return lines;
}

}  // namespace muster::train::sim
