// Processes of a recovering job are killed, stopped and started again; real sockets, real signals.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "job.h"
#include "muster/cluster/cluster.h"
#include "tests/unit/base/mentions.h"

namespace muster::process_test {
namespace {
namespace recovery_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-recovery-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A recovering job that has formed, of workers "0", "1", …
class Recovering : public ::testing::Test {
 protected:
  void form(std::uint32_t worker_num, const Variables& more = {}) {
    job_.emplace(worker_num);
    job_->set("MS_ENABLE_RECOVERY", "1");
    job_->set("MS_RECOVERY_PATH", folder_.path() + "/recovery");
    for (const auto& [name, value] : more) job_->set(name, value);
    scheduler_.emplace(job_->scheduler());
    start_workers(worker_num);
    for (Child& worker : workers_) EXPECT_TRUE(worker.printed("epoch 1 ")) << worker.output();
  }
  void start_workers(std::uint32_t count) {
    workers_.clear();
    for (std::uint32_t i = 0; i < count; ++i) workers_.push_back(job_->worker(std::to_string(i)));
  }
  void restart_worker(std::size_t i) { workers_[i] = job_->worker(std::to_string(i)); }
  void kill_scheduler() {
    scheduler_->signal(SIGKILL);
    scheduler_.reset();
  }
  void lose_log() { std::filesystem::remove(folder_.path() + "/recovery/scheduler.log"); }
  void expect_epoch(std::uint64_t epoch) {
    std::string said;
    for (Child& worker : workers_) {
      ASSERT_TRUE(worker.printed(fmt::format("epoch {} job ", epoch))) << worker.output();
      const std::string roster = worker.after(fmt::format("epoch {} job ", epoch));
      if (said.empty()) said = roster;
      EXPECT_EQ(roster, said) << "all have one roster";
    }
    for (std::size_t i = 0; i < workers_.size(); ++i)
      EXPECT_THAT(said, HasSubstr(fmt::format(" {}:{}:", i, workers_[i].pid()))) << "ranks stay";
  }
  void expect_end_well() {
    for (Child& worker : workers_) worker.tell("leave");
    for (Child& worker : workers_) EXPECT_THAT(worker.ended_within(soon), Optional(0)) << worker.output();
    EXPECT_THAT(scheduler_->ended_within(soon), Optional(0)) << scheduler_->output();
  }

  Folder folder_;
  std::optional<Job> job_;
  std::optional<Child> scheduler_;
  std::vector<Child> workers_;
};

TEST_F(Recovering, GoesOnWhenAKilledWorkerIsStartedAgain) {
  form(3);
  workers_[1].tell("step 41");
  ASSERT_TRUE(workers_[1].printed("at step 41"));
  workers_[0].tell("progress 2");
  ASSERT_TRUE(workers_[0].printed("has finished 2"));
  const pid_t dead = workers_[1].pid();
  const auto killed = std::chrono::steady_clock::now();
  workers_[1].signal(SIGKILL);
  ASSERT_TRUE(
      workers_[0].printed(fmt::format("lost: worker 1 (node '1' at 127.0.0.1, pid {}) is gone", dead)));
  EXPECT_LT(std::chrono::steady_clock::now() - killed, 1s) << "half a second is promised";
  ASSERT_TRUE(workers_[2].printed("epoch 2: waiting for node 1 (it was killed or crashed"));
  EXPECT_THAT(workers_[2].after("waiting for node 1"), Mentions("start", "MS_NODE_ID=1"));
  restart_worker(1);
  expect_epoch(2);
  EXPECT_THAT(workers_[1].output(), AllOf(HasSubstr("finished 2"), HasSubstr(":101"))) << "survivors moved";
  expect_end_well();
}

TEST_F(Recovering, GoesOnWhenSeveralAreKilledOneDuringTheRecoveryOfAnother) {
  form(4);
  for (const std::size_t i : {1, 2}) workers_[i].signal(SIGKILL);
  ASSERT_TRUE(workers_[0].printed("epoch 2: waiting for"));
  restart_worker(1);
  workers_[3].signal(SIGKILL);
  ASSERT_TRUE(workers_[0].printed("node 3 (it was killed"));
  restart_worker(3);
  restart_worker(2);
  expect_epoch(2);
  expect_end_well();
}

TEST_F(Recovering, GoesOnWithAServer) {
  job_.emplace(1);
  for (const auto& [name, value] :
       Variables{{"MS_ENABLE_RECOVERY", "1"}, {"MS_RECOVERY_PATH", folder_.path()}, {"MS_SERVER_NUM", "1"}})
    job_->set(name, value);
  scheduler_.emplace(job_->scheduler());
  Child server = job_->start("MS_PSERVER", {{"MS_NODE_ID", "0"}});
  start_workers(1);
  ASSERT_TRUE(workers_[0].printed("epoch 1 "));
  server.signal(SIGKILL);
  ASSERT_TRUE(workers_[0].printed("waiting for server 0"));
  server = job_->start("MS_PSERVER", {{"MS_NODE_ID", "0"}});
  expect_epoch(2);
  workers_[0].signal(SIGKILL);
  restart_worker(0);
  expect_epoch(3);
  expect_end_well();
  EXPECT_THAT(server.ended_within(soon), Optional(0)) << server.output();
}

TEST_F(Recovering, GoesOnWhenAllWorkersAreKilled) {
  form(2);
  for (Child& worker : workers_) worker.signal(SIGKILL);
  start_workers(2);
  expect_epoch(2);
  expect_end_well();
}

TEST_F(Recovering, DoesNotPauseWhenTheSchedulerIsKilledAndStartedAgain) {
  form(3);
  kill_scheduler();
  for (Child& worker : workers_) ASSERT_TRUE(worker.printed("the scheduler at")) << worker.output();
  scheduler_.emplace(job_->scheduler({{"MS_NODE_ID", "sched"}, {"MUSTER_LOG", "debug"}}));
  for (Child& worker : workers_) ASSERT_TRUE(worker.printed("is there again")) << worker.output();
  for (Child& worker : workers_) EXPECT_THAT(worker.output(), Not(HasSubstr("lost: ")));
  workers_[2].signal(SIGKILL);
  ASSERT_TRUE(workers_[0].printed("lost: worker 2")) << "the new scheduler watches";
  restart_worker(2);
  expect_epoch(2);
  expect_end_well();
}

TEST_F(Recovering, DoesNotPauseWhenTheSchedulerLosesItsFolder) {
  form(3);
  const std::string job = workers_[0].after("epoch 1 job ").substr(0, 16);
  kill_scheduler();
  lose_log();
  scheduler_.emplace(job_->scheduler());
  for (Child& worker : workers_) ASSERT_TRUE(worker.printed("is there again")) << worker.output();
  EXPECT_TRUE(scheduler_->printed("all processes of epoch 1 are known again")) << scheduler_->output();
  for (Child& worker : workers_) EXPECT_THAT(worker.output(), Not(HasSubstr("lost: ")));
  workers_[2].signal(SIGKILL);
  ASSERT_TRUE(workers_[0].printed("lost: worker 2"));
  restart_worker(2);
  ASSERT_TRUE(workers_[2].printed("job " + job)) << workers_[2].output();
  expect_end_well();
}

TEST_F(Recovering, TakesInWhoDiedWithTheSchedulersFolder) {
  form(3);
  const std::string job = workers_[0].after("epoch 1 job ").substr(0, 16);
  kill_scheduler();
  lose_log();
  workers_[1].signal(SIGKILL);
  scheduler_.emplace(job_->scheduler());
  restart_worker(1);
  ASSERT_TRUE(workers_[1].printed("job " + job)) << workers_[1].output() << scheduler_->output();
  expect_end_well();
}

TEST_F(Recovering, NoticesWhoDiedWhileTheSchedulerWasDead) {
  form(3);
  kill_scheduler();
  workers_[1].signal(SIGKILL);
  ASSERT_NE(workers_[1].ended_within(soon), std::nullopt);
  scheduler_.emplace(job_->scheduler());
  ASSERT_TRUE(workers_[0].printed("lost: worker 1")) << workers_[0].output();
  restart_worker(1);
  expect_epoch(2);
  expect_end_well();
}

TEST_F(Recovering, GoesOnInItsRecoveryLogWhenEverybodyWasKilled) {
  form(2);
  const std::string job = workers_[0].after("epoch 1 job ").substr(0, 16);
  kill_scheduler();
  for (Child& worker : workers_) worker.signal(SIGKILL);
  scheduler_.emplace(job_->scheduler());
  start_workers(2);
  expect_epoch(2);
  EXPECT_EQ(workers_[0].after("epoch 2 job ").substr(0, 16), job);
  EXPECT_TRUE(scheduler_->printed("resuming job " + job)) << scheduler_->output();
  expect_end_well();
}

TEST_F(Recovering, GoesOnWithAJobThatFailedAndStartsAnewAfterOneThatEndedWell) {
  form(2);
  const std::string job = workers_[0].after("epoch 1 job ").substr(0, 16);
  workers_[0].tell("fail 3 a mistake");
  EXPECT_THAT(scheduler_->ended_within(soon), Optional(3)) << scheduler_->output();
  for (Child& worker : workers_) worker.ended_within(soon);
  scheduler_.emplace(job_->scheduler());
  start_workers(2);
  expect_epoch(2);
  EXPECT_EQ(workers_[0].after("epoch 2 job ").substr(0, 16), job);
  expect_end_well();
  scheduler_.emplace(job_->scheduler());
  start_workers(2);
  expect_epoch(1);
  EXPECT_NE(workers_[0].after("epoch 1 job ").substr(0, 16), job);
  expect_end_well();
}

TEST_F(Recovering, RefusesAnotherWorkerNumberThanTheUnfinishedJobHas) {
  form(2);
  kill_scheduler();
  Child other = job_->scheduler({{"MS_WORKER_NUM", "3"}});
  EXPECT_THAT(other.ended_within(soon), Optional(cluster::exit_code_configuration));
  EXPECT_THAT(other.output(),
              AllOf(HasSubstr("MS_WORKER_NUM is 3"), HasSubstr("has 2"), HasSubstr("MUSTER_FRESH=1")));
}

TEST_F(Recovering, RefusesASecondSchedulerOnItsPath) {
  form(1);
  Job elsewhere(1);
  Child second =
      elsewhere.scheduler({{"MS_ENABLE_RECOVERY", "1"}, {"MS_RECOVERY_PATH", folder_.path() + "/recovery"}});
  EXPECT_THAT(second.ended_within(soon), Optional(cluster::exit_code_refused));
  EXPECT_THAT(second.output(), HasSubstr("scheduler"));
  expect_end_well();
}

// Another job on the path of one whose scheduler is away: its processes look for that one elsewhere.
TEST_F(Recovering, RefusesASecondJobWhileProcessesOfTheFirstLiveWithoutAScheduler) {
  form(2);
  kill_scheduler();
  const std::string held_by = folder_.path() + "/held";
  std::ofstream(held_by) << "worker 0 is pid 4711 on node-a\n";
  const Variables here{{"MS_ENABLE_RECOVERY", "1"},
                       {"MS_RECOVERY_PATH", folder_.path() + "/recovery"},
                       {"MS_TOPO_TIMEOUT", "1"},
                       {"PROBE_HELD_BY", held_by}};
  Job elsewhere(2);
  Child second = elsewhere.scheduler(here);
  EXPECT_THAT(second.ended_within(soon), Optional(cluster::exit_code_refused));
  EXPECT_THAT(second.output(), AllOf(Mentions("worker 0", "pid 4711"), HasSubstr("whose scheduler is away"),
                                     HasSubstr(fmt::format("started again at 127.0.0.1:{}", job_->port()))));
  scheduler_.emplace(job_->scheduler({{"PROBE_HELD_BY", held_by}}));
  for (Child& worker : workers_) ASSERT_TRUE(worker.printed("is there again")) << worker.output();
  for (Child& worker : workers_) EXPECT_THAT(worker.output(), Not(HasSubstr("lost: ")));
  expect_end_well();
}

TEST_F(Recovering, GoesOnElsewhereOnceNobodyOfTheJobLives) {
  form(2);
  const std::string job = workers_[0].after("epoch 1 job ").substr(0, 16);
  kill_scheduler();
  const std::string held_by = folder_.path() + "/held";
  std::ofstream(held_by) << "worker 0 is pid 4711 on node-a\n";
  Job elsewhere(2);
  Child second = elsewhere.scheduler({{"MS_ENABLE_RECOVERY", "1"},
                                      {"MS_RECOVERY_PATH", folder_.path() + "/recovery"},
                                      {"PROBE_HELD_BY", held_by}});
  ASSERT_TRUE(second.printed("whose scheduler is away")) << second.output();
  for (Child& worker : workers_) worker.signal(SIGKILL);
  ASSERT_EQ(std::remove(held_by.c_str()), 0);
  EXPECT_TRUE(second.printed("resuming job " + job)) << second.output();
}

TEST_F(Recovering, FencesAStoppedDuplicateThatWakesUpLater) {
  form(2);
  workers_[1].signal(SIGSTOP);
  Child duplicate = job_->worker("1");
  std::swap(duplicate, workers_[1]);
  expect_epoch(2);
  duplicate.signal(SIGCONT);
  EXPECT_THAT(duplicate.ended_within(soon), Optional(cluster::exit_code_refused)) << duplicate.output();
  EXPECT_THAT(duplicate.output(), Mentions("newer", "took"));
  expect_end_well();
}

TEST_F(Recovering, RefusesADuplicateOfALiveWorkerAndGoesOn) {
  form(2);
  Child duplicate = job_->worker("1");
  EXPECT_THAT(duplicate.ended_within(soon), Optional(cluster::exit_code_refused)) << duplicate.output();
  EXPECT_THAT(duplicate.output(), Mentions("taken", "live"));
  for (Child& worker : workers_) EXPECT_THAT(worker.output(), Not(HasSubstr("lost: ")));
  expect_end_well();
}

TEST_F(Recovering, TakesAStoppedWorkerBackThatCountedAsDead) {
  form(2, {{"MS_NODE_TIMEOUT", "3"}});
  workers_[1].signal(SIGSTOP);
  ASSERT_TRUE(workers_[0].printed("lost: worker 1")) << workers_[0].output();
  workers_[1].signal(SIGCONT);
  expect_epoch(2);
  expect_end_well();
}

TEST_F(Recovering, EndsWhenNobodyComesBackWithinTheNodeTimeout) {
  form(2, {{"MS_NODE_TIMEOUT", "1"}});
  workers_[1].signal(SIGKILL);
  EXPECT_THAT(workers_[0].ended_within(soon), Optional(cluster::exit_code_peer_lost)) << workers_[0].output();
  EXPECT_THAT(workers_[0].output(), AllOf(Mentions("within", "1 s", "(MS_NODE_TIMEOUT)", "epoch 2", "node 1"),
                                          HasSubstr("MS_NODE_ID=1")));
  EXPECT_THAT(scheduler_->ended_within(soon), Optional(cluster::exit_code_peer_lost));
}

TEST_F(Recovering, FormsANewEpochOfTheSameProcessesWhenTheirLinksBreak) {
  form(2);
  workers_[0].tell("link-lost 1");
  expect_epoch(2);
  workers_[1].tell("link-lost 1");  // of an epoch that is over
  workers_[1].tell("step 1");
  ASSERT_TRUE(workers_[1].printed("at step 1"));
  expect_end_well();
  EXPECT_THAT(workers_[0].output(), Not(HasSubstr("epoch 3")));
}

TEST_F(Recovering, GivesTheOnlyVacantRankToAWorkerWithoutAnId) {
  form(2);
  workers_[0].signal(SIGKILL);
  ASSERT_TRUE(workers_[1].printed("waiting for node 0"));
  workers_[0] = job_->start("MS_WORKER", {});
  expect_epoch(2);
  expect_end_well();
}

TEST_F(Recovering, WaitsForAFailedWorkerThatIsStartedAgain) {
  form(2, {{"MUSTER_MAX_RESTARTS", "3"}});
  workers_[0].tell("fail 3 a mistake");
  ASSERT_TRUE(workers_[1].printed("node 0 (it failed: a mistake")) << workers_[1].output();
  restart_worker(0);
  expect_epoch(2);
  expect_end_well();
}

TEST_F(Recovering, EndsWellForAWorkerThatComesBackWhenTheOthersAreDone) {
  form(2);
  for (Child& worker : workers_) {
    worker.tell("progress 1");
    ASSERT_TRUE(worker.printed("has finished 1"));
  }
  workers_[0].tell("leave");
  ASSERT_THAT(workers_[0].ended_within(soon), Optional(0));
  workers_[1].signal(SIGKILL);
  ASSERT_TRUE(scheduler_->printed("waiting for node 1"));
  restart_worker(1);
  ASSERT_TRUE(workers_[1].printed("epoch 2 ")) << workers_[1].output();
  EXPECT_THAT(workers_[1].after("epoch 2 "), HasSubstr("finished 1"));
  workers_[1].tell("leave");
  EXPECT_THAT(workers_[1].ended_within(soon), Optional(0)) << workers_[1].output();
  EXPECT_THAT(scheduler_->ended_within(soon), Optional(0)) << scheduler_->output();
}

TEST_F(Recovering, LeavesWhenTheSchedulerHasComeBackForIt) {
  form(1);
  kill_scheduler();
  ASSERT_TRUE(workers_[0].printed("the scheduler at")) << workers_[0].output();
  workers_[0].tell("leave");
  scheduler_.emplace(job_->scheduler());
  EXPECT_THAT(workers_[0].ended_within(soon), Optional(0)) << workers_[0].output();
  EXPECT_THAT(scheduler_->ended_within(soon), Optional(0)) << scheduler_->output();
}

TEST_F(Recovering, LeavesWithoutTheSchedulerAfterTheNodeTimeout) {
  form(1, {{"MS_NODE_TIMEOUT", "1"}});
  kill_scheduler();
  ASSERT_TRUE(workers_[0].printed("the scheduler at"));
  workers_[0].tell("leave");
  EXPECT_THAT(workers_[0].ended_within(soon), Optional(0)) << workers_[0].output();
  EXPECT_THAT(workers_[0].output(), HasSubstr("left without the scheduler"));
}

TEST_F(Recovering, NeedsARecoveryPath) {
  Job job(1);
  Child scheduler = job.scheduler({{"MS_ENABLE_RECOVERY", "1"}});
  EXPECT_THAT(scheduler.ended_within(soon), Optional(cluster::exit_code_configuration));
  EXPECT_THAT(scheduler.output(), HasSubstr("MS_RECOVERY_PATH"));
}

}  // namespace recovery_test
}  // namespace
}  // namespace muster::process_test
