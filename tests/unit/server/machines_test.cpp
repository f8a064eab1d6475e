#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>

#include "muster/server/server_machine.h"
#include "muster/server/worker_machine.h"
#include "tests/unit/base/mentions.h"

// What the simulation (tests/sim/server) does not say by name.
namespace muster::server {
namespace {
namespace machines_test {

using ::testing::ElementsAre;

Body body() { return std::make_shared<int>(1); }

Hello hello(std::uint32_t worker, std::uint64_t generation = 1, std::uint64_t begin = 0) {
  return {.worker = worker, .generation = generation, .begin = begin};
}
Push push(std::uint32_t worker, std::uint64_t step, std::uint64_t generation = 1) {
  return {.worker = worker, .generation = generation, .step = step, .body = body()};
}
Pull pull(std::uint32_t worker, std::uint64_t step, std::uint64_t generation = 1) {
  return {.worker = worker,
          .generation = generation,
          .step = step,
          .serial = static_cast<std::uint32_t>(step),
          .body = body()};
}

template <class Kind>
std::size_t count(const Actions& actions) {
  return static_cast<std::size_t>(std::count_if(actions.begin(), actions.end(), [](const Action& action) {
    return std::holds_alternative<Kind>(action);
  }));
}

std::string refusal(const Actions& actions) {
  for (const Action& action : actions)
    if (const auto* send = std::get_if<Send>(&action))
      if (const auto* found = std::get_if<Refusal>(&send->message)) return found->reason;
  return "";
}

ServerMachine server_of(std::uint32_t workers, Staleness staleness) {
  ServerMachine server({.worker_num = workers, .staleness = staleness});
  for (std::uint32_t worker = 0; worker < workers; ++worker) server.receive(hello(worker));
  return server;
}

TEST(ServerMachine, AppliesAStepWhenAllWorkersHavePushedIt) {
  ServerMachine server = server_of(2, 0);
  EXPECT_EQ(count<Apply>(server.receive(push(1, 0))), 0U);
  const Actions actions = server.receive(push(0, 0));
  ASSERT_EQ(count<Apply>(actions), 1U);
  EXPECT_EQ(server.applied(), 1U);
  // What is taken is in the log before it is applied.
  EXPECT_TRUE(std::holds_alternative<Append>(actions[0]));
}

TEST(ServerMachine, LetsAPullWaitForTheStepsThatItMustSee) {
  ServerMachine server = server_of(2, 1);
  EXPECT_EQ(count<Answer>(server.receive(pull(0, 1))), 1U);  // one step behind is allowed
  server.receive(push(0, 0));
  server.receive(push(0, 1));
  EXPECT_EQ(count<Answer>(server.receive(pull(0, 2))), 0U);
  EXPECT_EQ(count<Answer>(server.receive(push(1, 0))), 1U);
}

TEST(ServerMachine, SendsRowsEarlyAndThenWhatHasChanged) {
  ServerMachine server = server_of(2, 0);
  Pull ahead = pull(0, 1);
  ahead.is_ahead = true;
  ahead.serial = 7;
  EXPECT_EQ(count<Preview>(server.receive(ahead)), 1U);
  EXPECT_EQ(count<Preview>(server.receive(ahead)), 0U);  // it came twice
  EXPECT_EQ(server.waiting().workers, 0U);               // nobody waits for it
  server.receive(push(0, 0));
  const Actions actions = server.receive(push(1, 0));
  ASSERT_EQ(count<Answer>(actions), 1U);
  EXPECT_EQ(std::get<Answer>(actions.back()).since, 0U);
  server.receive(ahead);
  server.receive(hello(0));  // it sends again what it lacks
  EXPECT_EQ(server.waiting().workers, 0U);
}

TEST(ServerMachine, SaysWhoWaitsForWhom) {
  ServerMachine server = server_of(3, 0);
  server.receive(push(1, 0));
  server.receive(pull(1, 1));
  EXPECT_EQ(server.waiting().workers, 1U);
  EXPECT_EQ(server.waiting().first_missing, 0U);
  EXPECT_EQ(server.waiting().missing, 2U);
  server.receive(push(0, 0));
  EXPECT_EQ(server.waiting().first_missing, 2U);
  server.receive(push(2, 0));
  EXPECT_EQ(server.waiting().workers, 0U);
}

Leave leave(std::uint32_t worker, std::uint64_t step, std::uint64_t generation = 1) {
  return {.worker = worker, .generation = generation, .step = step};
}

TEST(ServerMachine, TellsWhoWaitsForAWorkerThatHasLeft) {
  ServerMachine server = server_of(2, 1);
  for (const std::uint64_t step : {0, 1}) server.receive(push(0, step));
  server.receive(push(1, 0));
  server.receive(pull(0, 3));
  EXPECT_THAT(refusal(server.receive(leave(1, 1))),
              Mentions("worker 1", "before step 1", "worker 0", "step 3"));
  EXPECT_EQ(server.waiting().workers, 0U);
  EXPECT_EQ(refusal(server.receive(pull(0, 2))), "");  // the staleness allows that
  EXPECT_THAT(refusal(server.receive(pull(0, 4))), Mentions("worker 1", "step 4"));
}

TEST(ServerMachine, WaitsForPushesThatComeBehindTheEndOfTheirWorker) {
  ServerMachine server = server_of(2, 0);
  server.receive(push(0, 0));
  server.receive(pull(0, 1));
  EXPECT_EQ(refusal(server.receive(leave(1, 1))), "");
  EXPECT_EQ(count<Answer>(server.receive(push(1, 0))), 1U);
}

TEST(ServerMachine, WaitsAgainInANewGenerationForAWorkerThatHadLeft) {
  ServerMachine server = server_of(2, 0);
  server.receive(leave(1, 0));
  server.receive(hello(0, 2, 0));
  server.receive(push(0, 0, 2));
  EXPECT_EQ(refusal(server.receive(pull(0, 1, 2))), "");
}

TEST(ServerMachine, NeverWaitsWithoutABound) {
  ServerMachine server = server_of(2, std::nullopt);
  EXPECT_EQ(count<Apply>(server.receive(push(0, 0))), 1U);
  EXPECT_EQ(count<Answer>(server.receive(pull(0, 7))), 1U);
}

TEST(ServerMachine, RefusesAnOlderGeneration) {
  ServerMachine server = server_of(2, 0);
  server.receive(hello(0, 2, 0));
  EXPECT_THAT(refusal(server.receive(push(1, 0, 1))), Mentions("generation 1", "generation 2"));
  EXPECT_THAT(refusal(server.receive(hello(1, 2, 5))), Mentions("begins at step 0", "worker 1", "step 5"));
  EXPECT_THAT(refusal(server.receive(hello(9))), Mentions("worker 9", "MS_WORKER_NUM"));
}

TEST(ServerMachine, GoesBackToTheStepOfANewGeneration) {
  ServerMachine server = server_of(1, 0);
  server.receive(push(0, 0));
  server.receive(push(0, 1));
  const Actions actions = server.receive(hello(0, 2, 1));
  EXPECT_EQ(count<Reset>(actions), 1U);
  EXPECT_EQ(count<Apply>(actions), 1U);  // step 0 again
  EXPECT_EQ(server.next(0), 1U);
  EXPECT_EQ(count<Reset>(server.receive(hello(0, 3, 1))), 0U);  // it is there already
}

TEST(ServerMachine, GoesNotBackBehindItsBase) {
  ServerMachine server = server_of(1, 0);
  server.receive(push(0, 0));
  server.receive(push(0, 1));
  server.receive(CommonPoint{.worker = 0, .generation = 1, .step = 2});
  server.base_moved({2});
  EXPECT_THAT(refusal(server.receive(hello(0, 2, 1))), Mentions("back to step 1", "step 2"));
}

TEST(ServerMachine, SaysThatItsDiskHasLostWhatWasKept) {
  ServerMachine server = server_of(2, 0);
  server.receive(push(0, 0));
  const Actions said = server.receive(CommonPoint{.worker = 0, .generation = 1, .step = 1});
  EXPECT_THAT(refusal(said), Mentions("worker 1", "step 0", "step 1", "MUSTER_FRESH=1"));
  EXPECT_EQ(server.common_point(), 0U);
}

TEST(ServerMachine, NamesTheOtherServerThatHasLostItsRowsToo) {
  ServerMachine server({.worker_num = 1, .server = 2, .other_holder = 0});
  server.receive(hello(0));
  const Actions said = server.receive(CommonPoint{.worker = 0, .generation = 1, .step = 1});
  EXPECT_THAT(refusal(said), Mentions("parameter server 2", "parameter server 0", "same rows"));
}

std::uint64_t told_kept(const Actions& actions) {
  std::uint64_t kept = 0;
  for (const Action& action : actions)
    if (const auto* send = std::get_if<Send>(&action))
      if (const auto* taken = std::get_if<Taken>(&send->message)) kept = std::max(kept, taken->kept);
  return kept;
}

Hello hello_of_origin(std::uint64_t origin, std::uint64_t generation = 1) {
  return {.worker = 0, .generation = generation, .begin = origin, .origin = origin};
}

TEST(ServerMachine, BeginsAtTheStepOfALoadedCheckpoint) {
  ServerMachine server({.worker_num = 1});
  server.receive(hello_of_origin(20));
  EXPECT_EQ(server.next(0), 20U);
  EXPECT_EQ(count<Apply>(server.receive(push(0, 20))), 1U);
  EXPECT_THAT(refusal(server.receive(hello_of_origin(30, 2))), Mentions("step 30", "step 20", "checkpoint"));

  ServerMachine again({.worker_num = 1});  // with its log alone
  const std::vector<LogRecord> log{GenerationRecord{.generation = 1, .begin = 20, .origin = 20},
                                   PushRecord{.worker = 0, .step = 20, .body = body()}};
  ASSERT_TRUE(again.restore({.log = log}));
  EXPECT_EQ(again.next(0), 21U);
}

// Else a server that has lost its disk would go on with rows of nobody.
TEST(ServerMachine, BeginsWithTheFirstStepWhereNoWorkerKnowsOfAnother) {
  ServerMachine server({.worker_num = 1});
  server.receive(hello(0, 2, 20));
  EXPECT_EQ(server.next(0), 0U);
}

TEST(ServerMachine, HearsLateThatTheJobBeganAtALaterStep) {
  ServerMachine server({.worker_num = 2});
  server.receive(hello(1, 1, 20));  // was started again
  server.receive(hello_of_origin(20));
  EXPECT_EQ(server.next(1), 20U);
  EXPECT_EQ(std::get<GenerationRecord>(server.carried()[0]).origin, 20U);
}

TEST(WorkerMachine, SaysToAllServersThatItHasLeft) {
  WorkerMachine worker({.server_num = 2});
  worker.begin(1, 0);
  EXPECT_TRUE(worker.leave().empty());  // they do not know it yet
  for (const std::uint32_t server : {0, 1})
    worker.receive(server, Taken{.generation = 1, .is_welcome = true});
  worker.push({body(), body()});
  const ToServerMessages said = worker.leave();
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(std::get<Leave>(said[1].message).step, 1U);
}

TEST(WorkerMachine, WaitsForTheStepAtWhichTheJobBegan) {
  WorkerMachine worker({.worker = 1});
  worker.begin(2, 20);  // it was started again
  worker.receive(0, Taken{.generation = 2, .next = 0, .is_welcome = true});
  EXPECT_TRUE(worker.lacks_origin());
  EXPECT_FALSE(worker.failure());
  worker.receive(0, Taken{.generation = 2, .next = 20, .kept = 20, .origin = 20, .is_welcome = true});
  EXPECT_TRUE(worker.is_welcome());
  EXPECT_EQ(worker.origin(), 20U);
}

TEST(WorkerMachine, SaysThatPushesAreLostWhereNoWorkerKnowsOfALaterBeginning) {
  WorkerMachine worker({.worker = 1});
  worker.begin(2, 20);
  const Taken lost{.generation = 2, .next = 0, .is_welcome = true};
  worker.receive(0, lost);
  EXPECT_EQ(worker.assume_origin().size(), 1U);
  worker.receive(0, lost);
  EXPECT_THAT(worker.failure().value_or(Error{}).message, Mentions("step 0", "worker 1"));
}

// Of another server, of which the own disk knows nothing yet.
TEST(ServerMachine, SaysThatFetchedPushesAreKeptOnceTheyAreOnItsDisk) {
  ServerMachine server({.worker_num = 1});
  const std::vector<LogRecord> log{GenerationRecord{.generation = 1, .begin = 0},
                                   PushRecord{.worker = 0, .step = 0, .body = body()},
                                   PushRecord{.worker = 0, .step = 1, .body = body()}};
  ASSERT_TRUE(server.restore({.log = log, .is_kept = false}));
  EXPECT_EQ(server.next(0), 2U);
  EXPECT_EQ(told_kept(server.receive(hello(0))), 0U);
  server.receive(hello(0, 2, 1));  // and they go back by one step
  EXPECT_EQ(told_kept(server.restored_kept()), 1U);
}

TEST(ServerMachine, CarriesWhatItsRowsLack) {
  ServerMachine server = server_of(2, 0);
  server.receive(push(0, 0));
  server.receive(push(1, 0));
  server.receive(push(0, 1));
  EXPECT_EQ(server.position(), Position({1, 1}));
  const std::vector<LogRecord> carried = server.carried();
  ServerMachine again({.worker_num = 2});
  ASSERT_TRUE(again.restore({.base = server.position(), .log = carried}));
  EXPECT_EQ(again.generation(), 1U);
  EXPECT_EQ(again.next(0), 2U);
  EXPECT_EQ(again.next(1), 1U);
}

TEST(ServerMachine, LimitsThePullsThatWait) {
  ServerMachine server = server_of(2, 0);
  constexpr std::uint64_t most = 8192;
  for (std::uint64_t step = 1; step <= most; ++step) ASSERT_EQ(refusal(server.receive(pull(0, step))), "");
  EXPECT_THAT(refusal(server.receive(pull(0, most + 1))), Mentions("worker 0", "8192 pulls"));
}

TEST(ServerMachine, SaysThatItsLogContradictsItself) {
  ServerMachine server({.worker_num = 1});
  EXPECT_THAT(server.restore({.log = {PushRecord{.worker = 0, .step = 1, .body = body()}}}).error().message,
              Mentions("step 1", "worker 0"));
}

TEST(WorkerMachine, KeepsPushesUntilTheyAreOnTheDisk) {
  WorkerMachine worker({.worker = 0, .server_num = 1});
  worker.begin(1, 0);
  worker.receive(0, Taken{.generation = 1, .next = 0, .kept = 0, .is_welcome = true});
  worker.push({body()});
  worker.push({body()});
  EXPECT_EQ(worker.held(), 2U);
  worker.receive(0, Taken{.generation = 1, .next = 2, .kept = 1});
  EXPECT_EQ(worker.held(), 1U);
  EXPECT_EQ(worker.kept(), 1U);
  worker.retry(0);
  const auto again = worker.receive(0, Taken{.generation = 1, .next = 1, .kept = 1, .is_welcome = true});
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(std::get<Push>(again[0].message).step, 1U);
}

TEST(WorkerMachine, SaysThatNobodyHasWhatAServerLacks) {
  WorkerMachine worker({.worker = 2, .server_num = 1});
  worker.begin(4, 7);
  worker.receive(0, Taken{.generation = 4, .next = 6, .kept = 6, .is_welcome = true});
  ASSERT_TRUE(worker.failure());
  EXPECT_EQ(worker.failure()->code, Code::peer_lost);
  EXPECT_THAT(worker.failure()->message, Mentions("server 0", "step 6", "worker 2"));
}

TEST(WorkerMachine, SaysWhatToBringBackWhereGoingBackLeadsToTheSameStep) {
  const auto lack = [](WorkerMachine& worker, std::uint64_t generation, std::uint64_t begin) {
    worker.begin(generation, begin);
    worker.receive(0, Taken{.generation = generation, .next = 3, .kept = 3, .is_welcome = true});
    return worker.failure().value().code;
  };
  WorkerMachine worker({.worker = 2, .server_num = 1});
  EXPECT_EQ(lack(worker, 4, 7), Code::peer_lost);
  EXPECT_EQ(lack(worker, 5, 6), Code::peer_lost) << "they went back, if not far enough";
  worker.begin(6, 3);
  worker.receive(0, Taken{.generation = 6, .next = 3, .kept = 3, .is_welcome = true});
  EXPECT_FALSE(worker.failure());
  EXPECT_EQ(lack(worker, 7, 6), Code::peer_lost) << "they went back far enough in between";
  EXPECT_EQ(lack(worker, 8, 6), Code::not_found);
  EXPECT_THAT(worker.failure()->message,
              Mentions("server 0", "worker 2", "step 3", "step 6", "MS_RECOVERY_PATH", "MUSTER_FRESH=1"));
}

Taken welcome(std::uint64_t next, std::uint64_t generation = 1) {
  return {.generation = generation, .next = next, .kept = next, .is_welcome = true};
}

// Two servers, each row on both: holders 0 and 2 have the share of server 0.
WorkerMachine worker_of_copies() {
  WorkerMachine worker({.worker = 0, .server_num = 2, .copies = 2, .nothing = body()});
  worker.begin(1, 0);
  for (std::uint32_t holder = 0; holder < 4; ++holder) worker.receive(holder, welcome(0));
  return worker;
}

TEST(WorkerMachine, KeepsPushesUntilEveryServerWithTheirRowsHasThem) {
  WorkerMachine worker = worker_of_copies();
  EXPECT_EQ(worker.push({body(), body()}).size(), 4U);
  worker.receive(0, Taken{.generation = 1, .next = 1, .kept = 1});
  EXPECT_EQ(worker.held(), 2U);
  worker.receive(2, Taken{.generation = 1, .next = 1, .kept = 1});
  EXPECT_EQ(worker.held(), 1U);
}

// The one that is ahead may lose its disk then, and gets what the other one has.
TEST(WorkerMachine, ForgetsInANewGenerationWhichServersAreAheadOfOthers) {
  WorkerMachine worker = worker_of_copies();
  worker.push({body(), body()});
  worker.receive(0, Taken{.generation = 1, .next = 1, .kept = 1});
  worker.begin(2, 1);
  worker.receive(2, welcome(1, 2));
  EXPECT_EQ(worker.held(), 2U);
  const auto again = worker.receive(0, welcome(0, 2));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(std::get<Push>(again[0].message).step, 0U);
}

TEST(WorkerMachine, WaitsForAllServersWithARowAndAsksOneForIt) {
  WorkerMachine worker = worker_of_copies();
  const auto asked = worker.pull(0, {body(), body()});
  ASSERT_EQ(asked.size(), 4U);
  const auto serial = [&](std::size_t i) { return std::get<Pull>(asked[i].message).serial; };
  EXPECT_EQ(std::get<Pull>(asked[2].message).body, std::get<Pull>(asked[3].message).body);
  for (std::uint32_t holder = 0; holder < 3; ++holder)
    worker.receive(holder, Rows{.generation = 1, .serial = serial(holder)});
  EXPECT_FALSE(worker.take_rows(0));
  worker.receive(3, Rows{.generation = 1, .serial = serial(3)});
  ASSERT_TRUE(worker.pull(1, {body(), body()}).size() == 4U);
  const auto rows = worker.take_rows(0);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->size(), 2U);
}

TEST(WorkerMachine, NamesBothServersThatHaveLostARow) {
  WorkerMachine worker = worker_of_copies();
  worker.begin(2, 4);
  worker.receive(3, welcome(1, 2));
  ASSERT_TRUE(worker.failure());
  EXPECT_EQ(worker.failure()->code, Code::peer_lost);
  EXPECT_THAT(worker.failure()->message, Mentions("server 0 (and server 1", "same rows", "step 1"));
}

TEST(WorkerMachine, DoesNotHearWhatIsSaidToAnEarlierGeneration) {
  WorkerMachine worker({.worker = 0, .server_num = 1});
  worker.begin(2, 0);
  worker.receive(0, Refusal{.generation = 1, .reason = "it has ended"});
  EXPECT_FALSE(worker.failure());
  worker.receive(0, Refusal{.generation = 2, .reason = "it has ended"});
  EXPECT_TRUE(worker.failure());
}

}  // namespace machines_test
}  // namespace
}  // namespace muster::server
