#include <gmock/gmock.h>

#include <csignal>

#include "job.h"

#include "tests/unit/base/mentions.h"

namespace muster::launch::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

// A shell that says its pid and then does nothing for a long time.
const std::string waits = "echo pid $$; exec sleep 1000";

TEST(Supervisor, PutsTheLabelBeforeEveryLineAndKeepsALogOfEachProcess) {
  Job job({"echo rank $RANK; echo trouble >&2", "echo rank $RANK; printf unfinished"});
  EXPECT_THAT(job.wait(), Eq(0)) << job.text();
  EXPECT_THAT(job.text(), AllOf(HasSubstr("[worker 0] rank 0\n"), HasSubstr("[worker 0] trouble\n"),
                                HasSubstr("[worker 1] rank 1\n"), HasSubstr("[worker 1] unfinished\n")));
  EXPECT_THAT(job.log(0), AllOf(HasSubstr("rank 0\n"), HasSubstr("trouble\n")));
  EXPECT_THAT(job.log(1), Eq("rank 1\nunfinished"));
}

TEST(Supervisor, ShowsOnlyTheLastStateOfAProgressLine) {
  Job job({"printf 'step 1\\rstep 2\\rstep 3\\n'"});
  EXPECT_THAT(job.wait(), Eq(0));
  EXPECT_THAT(job.text(), Eq("[worker 0] step 3\n"));
}

TEST(Supervisor, GivesItsProcessesAnEmptyInput) {
  Job job({"cat; echo over"});
  EXPECT_THAT(job.wait(), Eq(0));
  EXPECT_THAT(job.text(), Eq("[worker 0] over\n"));
}

TEST(Supervisor, EndsAllWhenOneFailsAndRepeatsItsMessageLast) {
  Job job({waits, "echo about to fail >&2; echo no such column >&2; exit 3", waits}, {.settle_ms = 50});
  EXPECT_THAT(job.wait(), Eq(3));
  EXPECT_THAT(job.text(), AllOf(Mentions("muster", "failed", "worker 1", "code 3"),
                                EndsWith("[worker 1] about to fail\n[worker 1] no such column\n")));
}

TEST(Supervisor, SaysHowEachProcessEndedOrThatItRanOn) {
  // In the others' words a process that never comes to init() is absent; here it is told what it did.
  Job job({waits, "echo no roster; exit 75", waits, "exit 0"}, {.settle_ms = 50});
  EXPECT_THAT(job.wait(), Eq(75));
  EXPECT_THAT(job.text(), Mentions("muster", "processes", "worker 0", "2 ran", "worker 1", "code 75",
                                   "worker 3", "code 0"));
}

TEST(Supervisor, LetsTheOthersNoticeAFailureThemselves) {
  // Only when worker 1 has ended by itself does the job end: nobody asks it to within the minute to settle.
  Job job({"echo boom; exit 5", "trap 'echo asked to end' TERM; echo lost a peer; exit 69"});
  EXPECT_THAT(job.wait(), Eq(5));
  EXPECT_THAT(job.text(), AllOf(Not(HasSubstr("asked to end")), EndsWith("[worker 0] boom\n")));
}

TEST(Supervisor, BlamesTheProcessThatWasKilledAndNotThoseThatLostIt) {
  Job job({"echo lost a peer; exit 69", "kill -KILL $$"});
  EXPECT_THAT(job.wait(), Eq(128 + SIGKILL));
  EXPECT_THAT(job.text(), EndsWith("the job failed: worker 1 was killed by signal 9 (Killed)\n"));
}

TEST(Supervisor, KillsWhatDoesNotEndWithinTheGrace) {
  Job job({"trap '' TERM; echo pid $$; while :; do sleep 1000; done", "read x; exit 4"},
          {.settle_ms = 50, .grace_ms = 50});
  const auto stubborn = job.process_announced();
  EXPECT_THAT(job.wait(), Eq(4));
  EXPECT_TRUE(ends(stubborn));
}

TEST(Supervisor, PassesTheFirstSignalOnAndWaits) {
  Job job({"trap 'echo saved; exit 0' INT; echo ready; sleep 1000 & wait"});
  job.line_with("ready");
  job.signal(SIGINT);
  EXPECT_THAT(job.wait(), Eq(128 + SIGINT));
  EXPECT_THAT(job.text(), AllOf(HasSubstr("[worker 0] saved\n"), HasSubstr("ended by signal 2 (Interrupt)")));
}

TEST(Supervisor, KillsAtTheSecondSignal) {
  Job job({"trap 'echo not yet' INT; echo pid $$; while :; do sleep 1000 & wait; done"});
  const auto stubborn = job.process_announced();
  job.signal(SIGINT);
  job.line_with("not yet");
  job.signal(SIGINT);
  EXPECT_THAT(job.wait(), Eq(128 + SIGINT));
  EXPECT_TRUE(ends(stubborn));
}

TEST(Supervisor, ShowsTheRanksOfTheTailAndTheFailuresOfAll) {
  Job job({"echo of rank 0", "echo of rank 1; exit 3", "echo of rank 2"}, {.settle_ms = 50, .tail = "2"});
  EXPECT_THAT(job.wait(), Eq(3));
  EXPECT_THAT(job.text(), AllOf(Not(HasSubstr("of rank 0")), HasSubstr("[worker 2] of rank 2\n"),
                                EndsWith("its last lines:\n[worker 1] of rank 1\n")));
  EXPECT_THAT(job.log(0), Eq("of rank 0\n"));
}

TEST(Supervisor, RepeatsAPythonTracebackFromItsFirstLine) {
  Job job(
      {"echo 'Traceback (most recent call last):' >&2; i=0; while [ $i -lt 50 ]; do echo \"  line $i\" >&2; "
       "i=$((i + 1)); done; echo 'ValueError: no such column' >&2; exit 1"},
      {.settle_ms = 50});
  EXPECT_THAT(job.wait(), Eq(1));
  EXPECT_THAT(job.text(), AllOf(HasSubstr("its last lines:\n[worker 0] Traceback (most recent call last):\n"
                                          "[worker 0]   line 0\n"),
                                EndsWith("[worker 0]   line 49\n[worker 0] ValueError: no such column\n")));
}

const std::string fails =
    "{ echo 'Traceback (most recent call last):'; echo '  line 3'; echo 'ValueError: no'; } >&2; ";

TEST(Supervisor, ShowsATracebackOnceHoweverManyFailAlike) {
  Job job({fails + "exit 1", fails + "exit 1", fails + "exit 1"}, {.settle_ms = 5000});
  EXPECT_THAT(job.wait(), Eq(1));
  const std::string text = job.text();
  EXPECT_THAT(text.find("ValueError: no"), Eq(text.rfind("ValueError: no"))) << text;
  EXPECT_THAT(text, AllOf(HasSubstr(" failed the same way as worker "), EndsWith("] ValueError: no\n")));
}

TEST(Supervisor, ShowsTracebacksThatDifferAndTheLastOfThoseThatFollowed) {
  const std::string follows =
      "{ echo 'Traceback (most recent call last):'; echo '  line 7'; echo 'muster.JobAbortedError: worker 1 "
      "failed'; } >&2; exit 1";
  Job job({follows, fails + "read x; exit 1",
           "echo 'Traceback (most recent call last):' >&2; echo 'KeyError: 3' >&2; exit 1"},
          {.settle_ms = 5000});
  EXPECT_THAT(job.wait(), Eq(1));
  EXPECT_THAT(job.text(), AllOf(HasSubstr("muster: worker 0: muster.JobAbortedError: worker 1 failed\n"),
                                Not(HasSubstr("line 7")), HasSubstr("KeyError: 3"),
                                HasSubstr("ValueError: no"), Not(HasSubstr("the job failed: worker 0"))));
}

TEST(Supervisor, ShowsATracebackThatAProcessHasHandled) {
  Job job({fails + "exit 0"});
  EXPECT_THAT(job.wait(), Eq(0));
  EXPECT_THAT(job.text(), EndsWith("[worker 0]   line 3\n[worker 0] ValueError: no\n"));
  Job going_on({fails + "echo ready; sleep 1000 & wait"});
  going_on.line_with("ValueError: no");
}

TEST(Supervisor, SaysOneLineOfCtrlC) {
  const std::string interrupted =
      "trap '{ echo \"Traceback (most recent call last):\"; echo KeyboardInterrupt; } >&2; exit 130' INT; "
      "echo ready; sleep 1000 & wait";
  Job job({interrupted, interrupted});
  job.line_with("ready");
  job.line_with("ready");
  job.signal(SIGINT);
  EXPECT_THAT(job.wait(), Eq(128 + SIGINT));
  EXPECT_THAT(job.text(), Not(HasSubstr("KeyboardInterrupt")));
  EXPECT_THAT(job.log(0), HasSubstr("KeyboardInterrupt"));
}

TEST(Supervisor, ShowsAWarningOfManyOnce) {
  const std::string warns = "{ echo 'a.py:3: UserWarning: slow'; echo '  warn()'; } >&2; ";
  Job job({warns, warns + "echo other >&2"});
  EXPECT_THAT(job.wait(), Eq(0));
  const std::string text = job.text();
  EXPECT_THAT(text.find("slow"), Eq(text.rfind("slow"))) << text;
  EXPECT_THAT(text.find("warn()"), Eq(text.rfind("warn()"))) << text;
  EXPECT_THAT(text, HasSubstr("[worker 1] other\n"));
}

// ---- Services and files -----------------------------------------------------------------------------------

// Ends well when it is asked to, and work that does not ask before it can.
const std::string service =
    ": service; trap 'echo service over; exit 0' TERM; : >$FOLDER/served; sleep 1000 & wait";
const std::string once_served = "until [ -e $FOLDER/served ]; do sleep 0.01; done; ";

TEST(SupervisorServices, EndWhenTheWorkHasEnded) {
  Job job({once_served + "echo work; exit 0", service});
  EXPECT_THAT(job.wait(), Eq(0)) << job.text();
  EXPECT_THAT(job.text(), AllOf(HasSubstr("work\n"), HasSubstr("service over\n")));
}

TEST(SupervisorServices, AreKilledWhenTheyDoNotEnd) {
  Job job({": service; trap '' TERM; : >$FOLDER/served; echo pid $$; while :; do sleep 1000; done",
           once_served + "exit 0"},
          {.grace_ms = 50});
  const auto stubborn = job.process_announced();
  EXPECT_THAT(job.wait(), Eq(0)) << job.text();
  EXPECT_TRUE(ends(stubborn));
}

TEST(SupervisorServices, StayUntilAFailedJobIsOver) {
  Job job({service, once_served + "exit 3", "trap 'exit 0' TERM; sleep 1000 & wait"}, {.settle_ms = 50});
  EXPECT_THAT(job.wait(), Eq(3));
  EXPECT_THAT(job.text(), HasSubstr("service over\n"));
}

TEST(SupervisorServices, BringTheJobDownWhenTheyFailBeforeTheWorkHasEnded) {
  Job job({": service; echo no such port; exit 4", waits}, {.settle_ms = 50});
  EXPECT_THAT(job.wait(), Eq(4));
  EXPECT_THAT(job.text(),
              EndsWith("the job failed: worker 0 exited with code 4 before the work had ended; its last "
                       "lines:\n[worker 0] no such port\n"));
}

// ---- A lease ----------------------------------------------------------------------------------------------

TEST(SupervisorLease, KeepsTheServicesUntilAllHostsAreDone) {
  Job job({service, once_served + "exit 0"}, {.has_lease = true});
  job.line_with("own work ended with 0");
  job.end_elsewhere("0");
  EXPECT_THAT(job.wait(), Eq(0));
  EXPECT_THAT(job.text(), HasSubstr("service over\n"));
}

TEST(SupervisorLease, EndsWhatRunsHereWhenTheJobFailedElsewhere) {
  Job job({"trap '' TERM; echo pid $$; while :; do sleep 1000; done"}, {.has_lease = true});
  const auto stubborn = job.process_announced();
  job.end_elsewhere("7 host b was lost");
  EXPECT_THAT(job.wait(), Eq(7)) << "within two seconds, whatever the grace is";
  EXPECT_THAT(job.text(), HasSubstr("muster: host b was lost\n"));
  EXPECT_TRUE(ends(stubborn));
}

TEST(SupervisorLease, TellsTheOthersOfAFailureHere) {
  Job job({"exit 3"}, {.settle_ms = 50, .has_lease = true});
  EXPECT_THAT(job.wait(), Eq(3));
  EXPECT_THAT(job.text(), HasSubstr("own work ended with 3\n"));
}

TEST(SupervisorFiles, AreThereForTheUserAloneWhileTheJobRuns) {
  Job job({"stat -c '%a %n' $FOLDER/run $FOLDER/run/secret | sed 's: .*/: :'; cat $FOLDER/run/secret"});
  EXPECT_THAT(job.wait(), Eq(0)) << job.text();
  EXPECT_THAT(job.text(), Eq("[worker 0] 700 run\n[worker 0] 600 secret\n[worker 0] sesame\n"));
  EXPECT_FALSE(job.has_run_folder());
}

// The shell of the second command stays; below it, one process moved to a session of its own.
class SupervisorLeavesNothing : public ::testing::Test {
 protected:
  Job job_{{waits, "setsid sh -c '" + waits + "' & echo pid $$; wait"}};
  const net::Descriptor first_ = job_.process_announced();
  const net::Descriptor second_ = job_.process_announced();
  const net::Descriptor third_ = job_.process_announced();

  void expect_nothing_left() const {
    EXPECT_TRUE(ends(first_));
    EXPECT_TRUE(ends(second_));
    EXPECT_TRUE(ends(third_));
    EXPECT_FALSE(job_.has_run_folder());
  }
};

TEST_F(SupervisorLeavesNothing, WhenTheLauncherIsKilled) {
  const auto supervisor = job_.supervisor();
  job_.signal(SIGKILL);
  EXPECT_TRUE(ends(supervisor));
  expect_nothing_left();
}

TEST_F(SupervisorLeavesNothing, WhenTheSupervisorIsKilled) {
  job_.signal_supervisor(SIGKILL);
  EXPECT_THAT(job_.wait(), Eq(128 + SIGKILL));
  EXPECT_THAT(job_.text(), Mentions("signal 9", "everything"));
  expect_nothing_left();
}

TEST_F(SupervisorLeavesNothing, WhenItIsInterrupted) {
  job_.signal(SIGINT);
  EXPECT_THAT(job_.wait(), Eq(128 + SIGINT));
  expect_nothing_left();
}

// ---- Starting again ---------------------------------------------------------------------------------------

// Dies in its first life; in its second it tells so.
const std::string dies_once =
    "[ -e $FOLDER/died ] && echo second life && exit 0; touch $FOLDER/died; "
    "echo first life; kill -KILL $$";

TEST(SupervisorRestarts, WhatDiedAndSaysWhy) {
  Job job({dies_once}, {.restarts = 3});
  EXPECT_THAT(job.wait(), Eq(0)) << job.text();
  EXPECT_THAT(job.text(), ::testing::MatchesRegex("\\[worker 0\\] first life\n"
                                                  "muster: worker 0 \\(pid [0-9]+\\) was killed by signal 9 "
                                                  "\\(Killed\\): starting it again \\(1 of 3\\)\n"
                                                  "(muster: [^\n]*out-of-memory[^\n]*\n)?"
                                                  "\\[worker 0\\] second life\n"));
  EXPECT_THAT(job.log(0), Eq("first life\nsecond life\n")) << "its log goes on";
}

TEST(SupervisorRestarts, OneAndLetsTheOthersGoOn) {
  Job job({dies_once + "; exit 3", "echo pid $$; until [ -e $FOLDER/over ]; do read x; done; echo still here",
           "until [ -e $FOLDER/died ]; do :; done; touch $FOLDER/over"},
          {.restarts = 1});
  EXPECT_THAT(job.wait(), Eq(0)) << job.text();
  EXPECT_THAT(job.text(), AllOf(HasSubstr("[worker 1] still here\n"), HasSubstr("second life")));
}

TEST(SupervisorRestarts, ASchedulerAsLongAsThereIsAWorker) {
  Job needed({": scheduler; trap 'touch $FOLDER/over' EXIT; " + dies_once,
              "until [ -e $FOLDER/over ]; do read x; done"},
             {.restarts = 1});
  EXPECT_THAT(needed.wait(), Eq(0)) << needed.text();
  EXPECT_THAT(needed.text(), HasSubstr("second life"));
}

TEST(SupervisorRestarts, NoSchedulerWhoseWorkersHaveLeft) {
  // The worker's pid is there until the supervisor has taken note of its end.
  Job job({": scheduler; until [ -s $FOLDER/pid ]; do :; done; while kill -0 $(cat $FOLDER/pid) 2>/dev/null; "
           "do :; done; kill -KILL $$",
           "echo $$ > $FOLDER/pid"},
          {.settle_ms = 50, .restarts = 5});
  EXPECT_THAT(job.wait(), Eq(128 + SIGKILL));
  EXPECT_THAT(job.text(), Not(HasSubstr("starting it again")));
}

// As the scheduler of a job that bears deaths does.
const std::string keeps_a_log =
    ": scheduler; mkdir -p $FOLDER/recovery; touch $FOLDER/recovery/scheduler.log; ";

TEST(SupervisorRestarts, NobodyWhoDiesWhenTheJobHasEnded) {
  Job job({keeps_a_log + "echo $$ > $FOLDER/pid",
           "until [ -s $FOLDER/pid ]; do :; done; while kill -0 $(cat $FOLDER/pid) 2>/dev/null; do :; done; "
           "kill -SEGV $$"},
          {.restarts = 5});
  EXPECT_THAT(job.wait(), Eq(0));
  EXPECT_THAT(job.text(), AllOf(Mentions("worker 1", "signal 11", "had ended", "nothing is lost"),
                                Not(HasSubstr("starting it again"))));
}

TEST(SupervisorRestarts, AndEndsWhoComesBackWhenTheJobHasEnded) {
  Job job({keeps_a_log + "until [ -e $FOLDER/second ]; do :; done",
           "[ -e $FOLDER/died ] && touch $FOLDER/second && exec sleep 60; touch $FOLDER/died; kill -KILL $$"},
          {.settle_ms = 50, .restarts = 5});
  EXPECT_THAT(job.wait(), Eq(0));
  EXPECT_THAT(job.text(), AllOf(Mentions("worker 1", "is ended", "had ended when it came"),
                                Not(HasSubstr("nothing is lost"))));
}

TEST(SupervisorRestarts, NothingThatFailsForTheThirdTimeInOnePlace) {
  Job job({"echo no such column >&2; exit 3"}, {.settle_ms = 50, .restarts = 10});
  EXPECT_THAT(job.wait(), Eq(3));
  EXPECT_THAT(job.text(), AllOf(Mentions("code 3", "starting", "(1 of 10)"),
                                Mentions("code 3", "starting", "0.001", "(2 of 10)"),
                                Not(HasSubstr("(3 of 10)")), Mentions("code 3", "3 times", "between"),
                                EndsWith("the job failed: worker 0 exited with code 3; its last lines:\n"
                                         "[worker 0] no such column\n")));
}

TEST(SupervisorRestarts, WhatFailsAgainAsLongAsTheJobGetsOn) {
  Job job(
      {"point=$FOLDER/recovery/job-0123456789abcdef/worker_0/call_0.step_$(ls $FOLDER/recovery/*/* | wc -l); "
       "mkdir -p $point; case $point in *step_5) exit 0;; esac; exit 3"},
      {.restarts = 10});
  EXPECT_THAT(job.wait(), Eq(0)) << job.text();
  EXPECT_THAT(job.text(),
              AllOf(HasSubstr("(5 of 10)"), Not(HasSubstr("(6 of 10)")), Not(HasSubstr(" in 0.001 s"))));
}

TEST(SupervisorRestarts, NothingMoreOftenThanItMay) {
  Job job({"echo >> $FOLDER/lives; exit $(wc -l < $FOLDER/lives)"}, {.settle_ms = 50, .restarts = 2});
  EXPECT_THAT(job.wait(), Eq(3));
  EXPECT_THAT(job.text(), Mentions("code 3", "2 times", "--max-restarts", "allows"));
}

TEST(SupervisorRestarts, NobodyWhoOnlySaysWhatTheJobDecided) {
  Job job({"exit 69"}, {.settle_ms = 50, .restarts = 5});
  EXPECT_THAT(job.wait(), Eq(69));
  EXPECT_THAT(job.text(), Not(HasSubstr("starting it again")));
}

TEST(SupervisorRestarts, NothingAfterItWasInterrupted) {
  Job job({"exit 3"}, {.restarts = 10, .restart_delay_ms = 60'000});
  job.line_with("starting it again in 60 s (2 of 10)");
  job.signal(SIGINT);
  EXPECT_THAT(job.wait(), Eq(128 + SIGINT));
}

TEST(Supervisor, EndsWhatAProcessLeftBehind) {
  Job job({"trap 'exit 0' USR1; setsid sh -c 'echo pid $$; kill -USR1 $PPID; exec sleep 1000' & wait"});
  const auto left_behind = job.process_announced();
  EXPECT_THAT(job.wait(), Eq(0));
  EXPECT_TRUE(ends(left_behind));
}

TEST(Supervisor, GoesOnWhenNobodyReadsItsOutputAnyMore) {
  Job job({"i=0; while [ $i -lt 20000 ]; do echo more than a pipe can hold; i=$((i + 1)); done"});
  job.line_with("more than");
  job.stop_reading();
  EXPECT_THAT(job.wait(), Eq(0));
  EXPECT_THAT(job.log(0).size(), Eq(20000 * std::string("more than a pipe can hold\n").size()));
}

}  // namespace
}  // namespace muster::launch::testing
