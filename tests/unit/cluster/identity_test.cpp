// Who a process is in a job that recovers: the one that knows its secret. Everything else of it stands in
// rosters, so that every member knows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machines.h"
#include "muster/cluster/recovery_log.h"

namespace muster::cluster {
namespace {
namespace identity_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t job_id = 77;
constexpr ProcessSecret guessed = {666, 666};

ProcessSecret secret_of(std::uint64_t incarnation) { return {incarnation, 1}; }

// Of the role that is tested: two on hosts of their own, where the scheduler sees no processes.
class Identity : public ::testing::TestWithParam<Role> {
 protected:
  void SetUp() override { start({}); }
  void start(std::optional<SavedJob> saved) {
    machine.emplace(SchedulerConfig{.worker_num = 2,
                                    .server_num = server_num(),
                                    .topo_timeout = 60s,
                                    .node_timeout = 10s,
                                    .job_id = job_id,
                                    .recovers = true,
                                    .saved = std::move(saved)},
                    clock.now());
    step(scheduler_event::Tick{});
  }
  // As a new process finds it: by the bytes in its log.
  void restart_scheduler() {
    auto contents = read_log(write_log(records));
    ASSERT_TRUE(contents) << contents.error().message;
    start(std::move(contents->job));
  }
  std::uint32_t server_num() const { return GetParam() == Role::server ? 2 : 0; }

  message::Register claim(const std::string& id, std::uint64_t incarnation, ProcessSecret secret,
                          Role role = GetParam()) const {
    return {.member = {.role = role,
                       .node_id = id,
                       .address = "10.0.0.1" + id,
                       .process_space = id,
                       .incarnation = incarnation,
                       .is_named = true},
            .worker_num = 2,
            .server_num = server_num(),
            .recovers = true,
            .secret = secret};
  }
  SchedulerActions step(const SchedulerEvent& event) {
    auto actions = machine->step(event, clock.now());
    for (const auto& action : all_of_kind<scheduler_action::Record>(actions))
      records.push_back(action.record);
    return actions;
  }
  SchedulerActions say(PeerId peer, MessageBody body, std::uint64_t epoch = 1) {
    return step(scheduler_event::Received{peer, {job_id, epoch, std::move(body)}});
  }
  SchedulerActions enter(PeerId peer, const message::Register& request) {
    return step(scheduler_event::Received{peer, {0, 0, request}});
  }
  SchedulerActions pass(Duration time, const std::vector<PeerId>& alive) {
    SchedulerActions all;
    for (Duration passed = 0ms; passed < time; passed += 50ms) {
      clock.advance(50ms);
      for (const PeerId peer : alive)
        for (const auto& action : say(peer, message::Beat{})) all.push_back(action);
      for (const auto& action : step(scheduler_event::Tick{})) all.push_back(action);
    }
    return all;
  }
  // "0" and "1" of the tested role on connections 1 and 2.
  void form() {
    if (GetParam() == Role::server)
      for (const PeerId peer : {101, 102})
        enter(peer, claim(std::to_string(peer), peer, secret_of(peer), Role::worker));
    enter(1, claim("0", 11, secret_of(11)));
    ASSERT_THAT(sent_to<message::RosterReady>(1, enter(2, claim("1", 12, secret_of(12)))), SizeIs(1));
  }
  std::vector<PeerId> others() const {
    return GetParam() == Role::server ? std::vector<PeerId>{1, 101, 102} : std::vector<PeerId>{1};
  }
  // Every way to say that one is the process `incarnation`, or acts for it, without its secret.
  void expect_opens_nothing(PeerId peer, const std::string& id, std::uint64_t incarnation) {
    const std::size_t recorded = records.size();
    for (const std::uint64_t job : {job_id, std::uint64_t{0}}) {
      for (const ProcessSecret& secret : {guessed, ProcessSecret{}}) {
        const auto request = claim(id, incarnation, secret);
        const auto actions = step(scheduler_event::Received{++peer, {job, job == 0 ? 0u : 1u, request}});
        EXPECT_THAT(sent_to<message::Refuse>(peer, actions), SizeIs(1));
        EXPECT_THAT(sent_to<message::Accept>(peer, actions), IsEmpty());
        EXPECT_THAT(all_of_kind<scheduler_action::Close>(actions), SizeIs(1)) << "of nobody but itself";
        for (const MessageBody& body :
             {MessageBody(message::Leave{}), MessageBody(message::Beat{}), MessageBody(message::Rejoin{}),
              MessageBody(message::LinkLost{}), MessageBody(message::EndedAck{})})
          EXPECT_THAT(sent_to<message::Refuse>(peer, say(peer, body)), SizeIs(1));
        step(scheduler_event::Closed{peer});
      }
    }
    EXPECT_THAT(records, SizeIs(recorded)) << "somebody was noted as done";
  }

  ManualClock clock;
  std::optional<SchedulerMachine> machine;
  std::vector<Record> records = {record::Job{.job_id = job_id, .worker_num = 2, .server_num = server_num()}};
};

INSTANTIATE_TEST_SUITE_P(Role, Identity, ::testing::Values(Role::worker, Role::server),
                         [](const auto& role) { return std::string(to_string(role.param)); });

TEST_P(Identity, OfAnotherIsNotTakenWithItsIncarnation) {
  form();
  expect_opens_nothing(10, "0", 12);  // with the certificate of "0"
  expect_opens_nothing(20, "1", 12);  // with none at all
  expect_opens_nothing(30, "7", 12);
  EXPECT_THAT(sent_to<message::Beat>(2, say(2, message::Beat{})), SizeIs(1)) << "it still sits there";
}

TEST_P(Identity, OfADeadProcessIsNotTakenWithItsIncarnation) {
  form();
  step(scheduler_event::Closed{2});
  pass(400ms, others());
  expect_opens_nothing(10, "0", 12);
  expect_opens_nothing(20, "1", 12);
  for (const PeerId peer : others()) say(peer, message::Rejoin{});
  const auto ready = sent_to<message::RosterReady>(50, enter(50, claim("1", 13, secret_of(13))));
  ASSERT_THAT(ready, SizeIs(1)) << "a process of that node takes its place as ever";
  const auto& members = GetParam() == Role::server ? ready[0].roster->servers : ready[0].roster->workers;
  EXPECT_EQ(members[0].node_id, "0");
  EXPECT_EQ(members[1].node_id, "1");
}

TEST_P(Identity, IsKeptOverABrokenConnectionAndOverTheSchedulersDeath) {
  form();
  step(scheduler_event::Closed{2});
  EXPECT_THAT(sent_to<message::Accept>(3, say(3, claim("1", 12, secret_of(12)))), SizeIs(1));
  restart_scheduler();
  expect_opens_nothing(10, "0", 12);
  expect_opens_nothing(20, "1", 12);
  EXPECT_THAT(sent_to<message::Accept>(41, say(41, claim("0", 11, secret_of(11)))), SizeIs(1));
  EXPECT_THAT(sent_to<message::Accept>(42, say(42, claim("1", 12, secret_of(12)))), SizeIs(1));
  EXPECT_THAT(sent_to<message::Accept>(43, enter(43, claim("1", 12, secret_of(12)))), SizeIs(1))
      << "it has missed the roster";
}

TEST_P(Identity, IsOneOfANodeIdARoleAndAnIncarnationTogether) {
  form();
  const Role other = GetParam() == Role::worker ? Role::server : Role::worker;
  for (const auto& request :
       {claim("0", 12, secret_of(12)), claim("1", 12, secret_of(12), other), claim("1", 11, secret_of(12))})
    EXPECT_THAT(sent_to<message::Refuse>(9, say(9, request)), SizeIs(1)) << "a secret of elsewhere";
}

TEST_P(Identity, OfWhoHasLeftIsNotTakenAfterTheSchedulersDeath) {
  form();
  say(1, message::Leave{});
  restart_scheduler();
  if (GetParam() == Role::server)
    for (const PeerId peer : {101, 102})
      say(peer + 100, claim(std::to_string(peer), peer, secret_of(peer), Role::worker));
  say(42, claim("1", 12, secret_of(12)));
  expect_opens_nothing(10, "0", 11);
  step(scheduler_event::Closed{42});
  pass(400ms, {201, 202});
  expect_opens_nothing(20, "1", 11);  // the vacant place, by the incarnation of the other one
  enter(43, claim("1", 13, secret_of(13)));
  step(scheduler_event::Closed{43});
  pass(400ms, {201, 202});
  EXPECT_THAT(sent_to<message::Accept>(44, enter(44, claim("1", 14, secret_of(14)))), SizeIs(1))
      << "the place is vacant again";
}

TEST_P(Identity, IsOneOnAConnectionWhateverIsSaidThere) {
  form();
  enter(9, claim("0", 21, secret_of(21)));
  enter(9, claim("1", 22, secret_of(22)));
  const std::vector<PeerId> workers =
      GetParam() == Role::server ? std::vector<PeerId>{101, 102} : std::vector<PeerId>{};
  pass(2s, workers);  // neither "0" nor "1" says anything
  step(scheduler_event::Closed{9});
  pass(1s, workers);
  EXPECT_THAT(sent_to<message::Accept>(8, enter(8, claim("1", 23, secret_of(23)))), SizeIs(1));
}

// --- a job that does not recover ---------------------------------------------------------------------------

class IdentityWithoutRecovery : public ::testing::Test {
 protected:
  SchedulerActions enter(PeerId peer, const std::string& id, std::uint64_t incarnation) {
    message::Register request{.member = {.node_id = id, .process_space = id, .incarnation = incarnation},
                              .worker_num = 3,
                              .secret = {peer, 1}};
    return machine.step(scheduler_event::Received{peer, {0, 0, request}}, clock.now());
  }

  ManualClock clock;
  SchedulerMachine machine{{.worker_num = 3, .topo_timeout = 60s, .node_timeout = 2s, .job_id = job_id},
                           clock.now()};
};

TEST_F(IdentityWithoutRecovery, IsNotTakenOverWhileTheJobForms) {
  enter(1, "0", 11);
  enter(2, "1", 12);
  for (const auto& [id, incarnation] : {std::pair("1", 99), std::pair("1", 12), std::pair("2", 12)}) {
    const auto actions = enter(9, id, incarnation);
    EXPECT_THAT(sent_to<message::Refuse>(9, actions), SizeIs(1)) << id;
    EXPECT_THAT(all_of_kind<scheduler_action::Close>(actions), SizeIs(1));
    machine.step(scheduler_event::Closed{9}, clock.now());
  }
  const auto ready = sent_to<message::RosterReady>(2, enter(3, "2", 13));
  ASSERT_THAT(ready, SizeIs(1));
  EXPECT_EQ(ready[0].roster->workers[1].incarnation, 12u);
  EXPECT_FALSE(machine.failure());
}

}  // namespace identity_test
}  // namespace
}  // namespace muster::cluster
