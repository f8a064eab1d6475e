#include "schedules.h"

#include <fmt/format.h>

#include "promises.h"

namespace muster::cluster::sim {
namespace {

class Draw {
 public:
  Draw(std::uint64_t seed, std::string_view what) : random_(seed, hash_text(what)) {}
  std::uint64_t below(std::uint64_t bound) { return random_.below(count_++, bound); }
  std::chrono::milliseconds milliseconds_below(std::uint64_t bound) {
    return std::chrono::milliseconds(below(bound));
  }
  double chance() { return random_.uniform(count_++); }

 private:
  RandomStream random_;
  std::uint64_t count_ = 0;
};

void break_network(Plan& plan, Draw& draw) {
  Network& network = plan.network;
  network.delay_max = std::chrono::microseconds(1 + draw.below(20000));
  if (draw.chance() < 0.4) network.drop = 0.05 * draw.chance();
  if (draw.chance() < 0.4) network.duplicate = 0.3 * draw.chance();
  network.reorders = draw.chance() < 0.4;
  if (draw.chance() < 0.3) network.cut = 0.02 * draw.chance();
  while (draw.chance() < 0.3)
    plan.partitions.push_back({.node = draw.below(plan.nodes.size()),
                               .begin = draw.milliseconds_below(4000),
                               .lasts = draw.milliseconds_below(6000),
                               .way = static_cast<Way>(draw.below(way_count))});
}

Plan plan_for(std::uint64_t seed) {
  Draw draw(seed, "schedule");
  Plan plan{.seed = seed, .worker_num = static_cast<std::uint32_t>(1 + draw.below(4))};
  plan.server_num = static_cast<std::uint32_t>(draw.below(2));
  plan.scheduler_start = draw.milliseconds_below(1000);
  for (std::uint32_t i = 0; i < plan.worker_num + plan.server_num; ++i) {
    NodePlan node{.role = i < plan.worker_num ? Role::worker : Role::server};
    node.node_id =
        draw.below(2) == 0 ? std::to_string(draw.below(4) == 0 ? 100 + i : i) : fmt::format("name-{}", i);
    node.start = draw.milliseconds_below(1000);
    node.fate_after = draw.milliseconds_below(1500);
    node.host = draw.below(3) == 0 ? "host-b" : "host-a";
    if (draw.chance() < 0.15) {
      node.fate = static_cast<Fate>(draw.below(fate_count));
      node.before_roster = draw.chance() < 0.3;
    }
    plan.nodes.push_back(node);
  }
  if (draw.chance() < 0.15) plan.scheduler_crash = draw.milliseconds_below(4000);
  break_network(plan, draw);
  return plan;
}

RecoveryPlan recovery_plan_for(std::uint64_t seed) {
  Draw draw(seed, "recovering schedule");
  RecoveryPlan plan{.seed = seed, .worker_num = static_cast<std::uint32_t>(1 + draw.below(4))};
  plan.are_named = draw.below(4) != 0;
  plan.delay_max = std::chrono::microseconds(1 + draw.below(10000));
  plan.training_time = 1500ms;
  for (std::uint32_t i = 0; i < plan.worker_num; ++i)
    plan.hosts.push_back(draw.below(2) == 0 ? "host-b" : "host-a");
  const std::uint64_t faults = 1 + draw.below(5);
  for (std::uint64_t i = 0; i < faults; ++i) {
    Fault fault{.when = draw.milliseconds_below(2500),
                .kind = static_cast<FaultKind>(draw.below(schedule_fault_kind_count)),
                .node = draw.below(plan.worker_num),
                .lasts = draw.milliseconds_below(1500)};
    // Without names, a duplicate is just one process too many.
    const bool is_duplicate =
        fault.kind == FaultKind::stops_with_duplicate || fault.kind == FaultKind::starts_a_duplicate;
    if (is_duplicate && !plan.are_named) fault.kind = FaultKind::kills;
    const bool is_of_network = fault.kind >= FaultKind::cuts_off && fault.kind <= FaultKind::replays;
    if (is_of_network || fault.kind == FaultKind::stops) fault.lasts *= 4;
    plan.faults.push_back(fault);
  }
  plan.makes_call = draw.below(2) == 0;
  for (std::size_t node = 0; node < plan.worker_num; ++node)
    if (draw.below(4) == 0) plan.full_disks.insert(node);
  return plan;
}

}  // namespace

ScheduleResult run_schedule(std::uint64_t seed) {
  if (seed % 2 == 0) {
    const Plan plan = plan_for(seed);
    const RunResult result = Simulator(plan).run();
    const bool formed = result.nodes[0].roster != nullptr;
    return {.formed = formed,
            .ended_well = result.scheduler_ended && !result.scheduler_failure,
            .epochs = formed ? 1u : 0u,
            .broken = broken_promises(plan, result)};
  }
  const RecoveryResult result = RecoverySimulator(recovery_plan_for(seed)).run();
  return {.formed = !result.rosters.empty(),
          .ended_well = result.ended_well,
          .epochs = result.rosters.empty() ? 0 : result.rosters.rbegin()->first,
          .broken = broken_promises(result)};
}

}  // namespace muster::cluster::sim
