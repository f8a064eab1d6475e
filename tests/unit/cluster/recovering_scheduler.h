// The scheduler of a job of two workers that recovers, step by step.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machines.h"

namespace muster::cluster {

using namespace std::chrono_literals;

inline constexpr std::uint64_t job_id = 77;

// Two workers "0" and "1" on hosts of their own, where the scheduler sees no processes.
class RecoveringScheduler : public testing::Test {
 protected:
  SchedulerConfig config() const {
    return {.worker_num = 2,
            .topo_timeout = 60s,
            .node_timeout = 10s,
            .job_id = job_id,
            .seed = 5,
            .pid = 1,
            .process_space = "here",
            .recovers = true,
            .restarts_failed = restarts_failed};
  }
  void SetUp() override { machine.emplace(config(), clock.now()); }

  SchedulerActions receive(PeerId peer, MessageBody body, std::uint64_t epoch = 1) {
    return keep(
        machine->step(scheduler_event::Received{peer, {job_id, epoch, std::move(body)}}, clock.now()));
  }
  SchedulerActions enter(PeerId peer, const std::string& id, std::uint64_t incarnation, bool named = true) {
    return ask(peer, registration(id, incarnation, named));
  }
  SchedulerActions ask(PeerId peer, message::Register request) {
    return keep(machine->step(scheduler_event::Received{peer, {0, 0, std::move(request)}}, clock.now()));
  }
  // A node that has a roster, on a new connection.
  SchedulerActions come_back(PeerId peer, const std::string& id, std::uint64_t incarnation,
                             std::uint64_t epoch = 1, bool epoch_lost = false) {
    auto request = registration(id, incarnation, true);
    request.epoch_lost = epoch_lost;
    return receive(peer, request, epoch);
  }
  message::Register registration(const std::string& id, std::uint64_t incarnation, bool named) const {
    return {.member = {.node_id = id,
                       .address = "10.0.0.1" + id,
                       .process_space = id,
                       .incarnation = incarnation,
                       .is_named = named},
            .worker_num = 2,
            .recovers = true,
            .strict = strict,
            .traits = traits,
            .secret = {incarnation, 1}};
  }
  SchedulerActions tick() { return keep(machine->step(scheduler_event::Tick{}, clock.now())); }
  SchedulerActions close(PeerId peer) {
    return keep(machine->step(scheduler_event::Closed{peer}, clock.now()));
  }
  // Lets time pass while these live.
  SchedulerActions pass(Duration time, const std::vector<PeerId>& alive) {
    SchedulerActions all;
    for (Duration passed = 0ms; passed < time; passed += 50ms) {
      clock.advance(50ms);
      for (const PeerId peer : alive)
        for (const auto& action : receive(peer, message::Beat{})) all.push_back(action);
      for (const auto& action : tick()) all.push_back(action);
    }
    return all;
  }
  void form() {
    enter(1, "0", 100);
    ASSERT_THAT(sent_to<message::RosterReady>(1, enter(2, "1", 101)), testing::SizeIs(1));
  }
  // Worker 1 is gone; worker 0 knows.
  void lose_second() {
    form();
    close(2);
    ASSERT_THAT(sent_to<message::EpochLost>(1, pass(400ms, {1})), testing::SizeIs(1));
  }
  SchedulerActions rejoin(PeerId peer, std::uint16_t port, Progress progress = {}, std::uint64_t epoch = 1) {
    return receive(peer, message::Rejoin{{port, "there"}, progress}, epoch);
  }
  // What worker 0 is told at once of who is waited for.
  std::string told_of(const scheduler_event::Rejected& rejected) {
    const auto said = sent_to<message::Waiting>(1, keep(machine->step(rejected, clock.now())));
    return said.empty() ? "nothing" : said.back().text;
  }
  std::vector<std::uint64_t> recorded_epochs() const {
    std::vector<std::uint64_t> epochs;
    for (const auto& record : records)
      if (const auto* formed = std::get_if<record::Formed>(&record)) epochs.push_back(formed->roster->epoch);
    return epochs;
  }
  SchedulerActions keep(SchedulerActions actions) {
    for (const auto& action : all_of_kind<scheduler_action::Record>(actions))
      records.push_back(action.record);
    return actions;
  }

  bool restarts_failed = false;
  bool strict = false;
  Traits traits = {{"script", "aa"}};  // of who registers
  ManualClock clock;
  std::optional<SchedulerMachine> machine;
  std::vector<Record> records;
};

}  // namespace muster::cluster
