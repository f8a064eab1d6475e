// Real processes, real sockets, real signals.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "job.h"
#include "muster/cluster/cluster.h"
#include "tests/unit/base/mentions.h"

namespace muster::process_test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Optional;

// A formed job: one scheduler, workers "0", "1", …
struct Formed {
  explicit Formed(std::uint32_t worker_num, Variables more = {})
      : job(worker_num), scheduler(job.scheduler(more)) {
    for (std::uint32_t i = 0; i < worker_num; ++i) workers.push_back(job.worker(std::to_string(i), more));
    for (Child& worker : workers) EXPECT_TRUE(worker.printed("rank ")) << worker.output();
  }
  Job job;
  Child scheduler;
  std::vector<Child> workers;
};

void expect_ends_with(Child& child, int code, const std::string& text) {
  EXPECT_THAT(child.ended_within(soon), Optional(code)) << child.output();
  EXPECT_THAT(child.output(), HasSubstr(text));
}

class ClusterOver : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Host, ClusterOver, ::testing::Values("127.0.0.1", "::1", "localhost"),
                         [](const auto& test) {
                           return std::string(test.index == 0 ? "IPv4" : test.index == 1 ? "IPv6" : "AName");
                         });

TEST_P(ClusterOver, FormsWithWorkersBeforeTheSchedulerAndEndsWell) {
  Job job(2, GetParam());
  Child first = job.worker("1");
  Child second = job.worker("blue");
  Child scheduler = job.scheduler({{"MS_NODE_ID", "7"}});
  EXPECT_EQ(first.after("rank ").substr(0, 4), "1 of");
  EXPECT_EQ(second.after("rank ").substr(0, 4), "0 of");
  EXPECT_EQ(first.after("seed "), second.after("seed "));
  if (std::string(GetParam()) != "localhost") {
    EXPECT_EQ(first.after("address "), GetParam()) << "it stays on loopback";
  }
  first.tell("leave");
  EXPECT_THAT(first.ended_within(soon), Optional(0)) << first.output();
  EXPECT_EQ(first.after("threads "), "1")
      << "OpenSSL cleans up when a process ends: no thread may use it then";
  second.tell("leave");
  EXPECT_THAT(second.ended_within(soon), Optional(0)) << second.output();
  EXPECT_THAT(scheduler.ended_within(soon), Optional(0)) << scheduler.output();
  EXPECT_EQ(scheduler.output(), "");
}

TEST(Cluster, EndsAServerWithTheJob) {
  Job job(1);
  job.set("MS_SERVER_NUM", "1");
  Child scheduler = job.scheduler();
  Child server = job.start("MS_PSERVER", {});
  Child worker = job.worker("0");
  ASSERT_TRUE(worker.printed("rank 0")) << worker.output();
  ASSERT_TRUE(server.printed("rank 0")) << server.output();
  worker.tell("leave");
  EXPECT_THAT(worker.ended_within(soon), Optional(0));
  EXPECT_THAT(server.ended_within(soon), Optional(0)) << server.output();
  EXPECT_THAT(scheduler.ended_within(soon), Optional(0)) << scheduler.output();
}

TEST(Cluster, SaysEverywhereWhoIsMissing) {
  Job job(3);
  job.set("MS_TOPO_TIMEOUT", "1");
  Child scheduler = job.scheduler();
  Child worker = job.worker("green");
  for (Child* child : {&scheduler, &worker})
    expect_ends_with(*child, cluster::exit_code_timeout, "1 of 3 workers came, 2 missing");
}

TEST(Cluster, RefusesTheRedundantWorkerAndGoesOn) {
  Formed formed(2);
  Child redundant = formed.job.worker("2");
  expect_ends_with(redundant, cluster::exit_code_refused, "all of its 2 workers");
  for (Child& worker : formed.workers) worker.tell("leave");
  EXPECT_THAT(formed.scheduler.ended_within(soon), Optional(0)) << formed.scheduler.output();
}

TEST(Cluster, RefusesAnotherWorkerNumberNamingBoth) {
  Job job(2);
  Child scheduler = job.scheduler();
  Child odd = job.worker("0", {{"MS_WORKER_NUM", "4"}});
  expect_ends_with(odd, cluster::exit_code_refused, "MS_WORKER_NUM is 4 there and 2 at the scheduler");
  EXPECT_EQ(scheduler.ended_within(0s), std::nullopt);
}

TEST(Cluster, RefusesADuplicateIdAndTheFirstGoesOn) {
  Job job(2);
  Child scheduler = job.scheduler({{"MUSTER_LOG", "debug"}});
  Child first = job.worker("0");
  ASSERT_TRUE(scheduler.printed("registered"));
  Child second = job.worker("0");
  expect_ends_with(second, cluster::exit_code_refused, "node id '0' (MS_NODE_ID) is taken");
  Child other = job.worker("1");
  EXPECT_TRUE(first.printed("rank 0 of 2")) << first.output();
  EXPECT_TRUE(other.printed("rank 1 of 2")) << other.output();
}

TEST(Cluster, NamesTheProcessThatHoldsThePort) {
  Formed formed(1);
  Child second = formed.job.scheduler();
  expect_ends_with(second, cluster::exit_code_refused,
                   fmt::format("process {} (cluster_probe)", formed.scheduler.pid()));
  formed.workers[0].tell("leave");
  EXPECT_THAT(formed.scheduler.ended_within(soon), Optional(0));
}

TEST(Cluster, IsNotHarmedByConnectionsThatSayNothingOrNonsense) {
  Formed formed(1);
  const net::Wait wait{.deadline = real_clock().now() + 10s};
  auto silent = net::Socket::connect({"127.0.0.1", formed.job.port()}, wait);
  auto rude = net::Socket::connect({"127.0.0.1", formed.job.port()}, wait);
  auto stale = net::Socket::connect({"127.0.0.1", formed.job.port()}, wait);
  ASSERT_TRUE(silent && rude && stale);
  const std::string nonsense = "GET / HTTP/1.1\r\nHost: here\r\n\r\n" + std::string(100, 'x');
  ASSERT_TRUE(rude->send_all(std::as_bytes(std::span(nonsense)), wait));
  const auto frame = net::encode_frame({.type = 0x0105, .epoch = 9, .job_id = 9}, std::vector<std::byte>(8));
  ASSERT_TRUE(stale->send_all(frame, wait));
  for (net::Socket* socket : {&*rude, &*stale}) {  // until the scheduler has closed them
    std::vector<std::byte> byte(1);
    while (socket->receive_all(byte, wait)) {
    }
  }
  formed.workers[0].tell("leave");
  EXPECT_THAT(formed.workers[0].ended_within(soon), Optional(0)) << formed.workers[0].output();
  EXPECT_THAT(formed.scheduler.ended_within(soon), Optional(0)) << formed.scheduler.output();
}

// Until the other side has closed it; false at the deadline.
bool was_closed(net::Socket& socket, const net::Wait& wait) {
  std::vector<std::byte> byte(1);
  const auto received = socket.receive_all(byte, wait);
  return !received && received.error().code == Code::peer_lost;
}

TEST(Cluster, DropsTheOldestOfTooManySilentConnectionsAndANodeStillJoins) {
  if (net::raise_descriptor_limit() <= 9000) GTEST_SKIP() << "this user may not open 9,000 files";
  Job job(1);
  Child scheduler = job.scheduler();
  const net::Wait wait{.deadline = real_clock().now() + 4900ms};  // before its time is over
  std::vector<net::Socket> crowd;
  for (int i = 0; i < 4200; ++i) {
    auto silent = net::Socket::connect({"127.0.0.1", job.port()}, wait);
    ASSERT_TRUE(silent) << i << ": " << silent.error().message;
    crowd.push_back(*std::move(silent));
  }
  EXPECT_TRUE(was_closed(crowd.front(), wait));
  EXPECT_FALSE(was_closed(crowd[200], {.deadline = real_clock().now()})) << "there is room for 4,096";
  const auto begin = real_clock().now();
  Child worker = job.worker("0");
  ASSERT_TRUE(worker.printed("rank 0 of 1")) << worker.output() << scheduler.output();
  EXPECT_LT(real_clock().now() - begin, soon);
  EXPECT_FALSE(was_closed(crowd.back(), {.deadline = real_clock().now()}));
  worker.tell("leave");
  EXPECT_THAT(scheduler.ended_within(soon), Optional(0)) << scheduler.output();
}

TEST(Cluster, DropsAConnectionThatDoesNotSayWhoItIsWithinFiveSeconds) {
  Formed formed(1);
  const auto begin = real_clock().now();
  auto silent =
      net::Socket::connect({"127.0.0.1", formed.job.port()}, {.deadline = real_clock().now() + 10s});
  ASSERT_TRUE(silent);
  EXPECT_TRUE(was_closed(*silent, {.deadline = begin + 20s}));
  EXPECT_GE(real_clock().now() - begin, 4900ms);
  formed.workers[0].tell("leave");
  EXPECT_THAT(formed.scheduler.ended_within(soon), Optional(0)) << formed.scheduler.output();
}

double peak_memory_mib(const Child& child) {
  std::ifstream status(fmt::format("/proc/{}/status", child.pid()));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

// A flood at full speed, for a minute: ./dev bench cluster
TEST(Cluster, TakesAWorkerAtOnceThoughUnauthorizedPeersFillThePortOfTheScheduler) {
  net::raise_descriptor_limit();
  Job job(1);
  Child scheduler = job.scheduler();
  const net::Wait wait{.deadline = real_clock().now() + 30s};
  std::vector<net::Socket> unauthorized_peers;
  double before = 0;
  for (int i = 0; i < 1500; ++i) {
    auto unauthorized = net::Socket::connect({"127.0.0.1", job.port()}, wait);
    ASSERT_TRUE(unauthorized) << unauthorized.error().message;
    if (i == 0) before = peak_memory_mib(scheduler);
    const std::string noise(i % 3 == 0 ? 100 : 0, 'x');
    static_cast<void>(unauthorized->send_all(std::as_bytes(std::span(noise)), wait));
    unauthorized_peers.push_back(*std::move(unauthorized));
  }
  Child worker = job.worker("0");
  EXPECT_TRUE(worker.printed("rank 0", 2s)) << worker.output();
  EXPECT_LT(peak_memory_mib(scheduler) - before, 16);
  worker.tell("leave");
  EXPECT_THAT(scheduler.ended_within(soon), Optional(0));
}

TEST(Cluster, EndsForAllWhenAWorkerIsKilledAndNamesItAndItsStep) {
  Formed formed(3, {{"MUSTER_LOG", "debug"}});
  formed.workers[1].tell("step 41");
  ASSERT_TRUE(formed.scheduler.printed("has done step 41"));
  formed.workers[1].signal(SIGKILL);
  for (Child* child : {&formed.workers[0], &formed.workers[2], &formed.scheduler}) {
    expect_ends_with(
        *child, cluster::exit_code_peer_lost,
        fmt::format("worker 1 (node '1' at 127.0.0.1, pid {}) is gone: it was killed or crashed; its last "
                    "known step was 41",
                    formed.workers[1].pid()));
    EXPECT_LT(child->time_to_end(), 2s);
  }
}

TEST(Cluster, EndsForAllWhenTheSchedulerIsKilled) {
  Formed formed(2);
  formed.workers[0].tell("step 7");
  ASSERT_TRUE(formed.workers[0].printed("at step 7"));
  formed.scheduler.signal(SIGKILL);
  for (Child& worker : formed.workers)
    expect_ends_with(worker, cluster::exit_code_peer_lost, "the scheduler at 127.0.0.1:");
  EXPECT_THAT(formed.workers[0].output(), Mentions("last", "was 7"));
}

TEST(Cluster, EndsWhenAWorkerIsKilledWhileOthersAreMissing) {
  Job job(3);
  Child scheduler = job.scheduler({{"MUSTER_LOG", "debug"}});
  Child first = job.worker("0");
  Child second = job.worker("1");
  ASSERT_TRUE(scheduler.printed("'0'"));
  ASSERT_TRUE(scheduler.printed("'1'"));
  second.signal(SIGKILL);
  expect_ends_with(first, cluster::exit_code_peer_lost, "worker (node '1'");
  expect_ends_with(scheduler, cluster::exit_code_peer_lost, "worker (node '1'");
}

TEST(Cluster, NoticesAStoppedWorkerAfterTheNodeTimeout) {
  Formed formed(2, {{"MS_NODE_TIMEOUT", "1"}});
  formed.workers[1].signal(SIGSTOP);
  expect_ends_with(formed.workers[0], cluster::exit_code_peer_lost,
                   "no heartbeat came for 1 s (MS_NODE_TIMEOUT)");
  EXPECT_GE(formed.workers[0].time_to_end(), 700ms);
  expect_ends_with(formed.scheduler, cluster::exit_code_peer_lost, "worker 1");
  formed.workers[1].signal(SIGCONT);
  EXPECT_THAT(formed.workers[1].ended_within(soon), Optional(AnyOf(cluster::exit_code_peer_lost)));
}

TEST(Cluster, NoticesAStoppedSchedulerAfterTheNodeTimeout) {
  Formed formed(2, {{"MS_NODE_TIMEOUT", "1"}});
  formed.scheduler.signal(SIGSTOP);
  for (Child& worker : formed.workers)
    expect_ends_with(worker, cluster::exit_code_peer_lost, "no heartbeat came for 1 s (MS_NODE_TIMEOUT)");
}

TEST(Cluster, NoticesAKilledWorkerWhoseForkedChildLivesOn) {
  Formed formed(2);
  formed.workers[1].tell("fork");
  const std::string said = formed.workers[1].after("child ");
  const pid_t child = std::stoi(said);
  EXPECT_THAT(said, Mentions("forked", "child"));
  formed.workers[1].signal(SIGKILL);
  expect_ends_with(formed.workers[0], cluster::exit_code_peer_lost, "worker 1");
  expect_ends_with(formed.scheduler, cluster::exit_code_peer_lost, "worker 1");
  EXPECT_EQ(::kill(child, 0), 0) << "the child should have lived until now";
  ::kill(child, SIGKILL);
}

TEST(Cluster, RepeatsTheReasonOfAFailedWorkerEverywhere) {
  Formed formed(3);
  formed.workers[2].tell("fail 3 ValueError: the data is wrong");
  EXPECT_THAT(formed.workers[2].ended_within(soon), Optional(3));
  for (Child* child : {&formed.workers[0], &formed.workers[1], &formed.scheduler})
    expect_ends_with(*child, 3, "failed: ValueError: the data is wrong");
}

TEST(Cluster, EndsForAllWhenTheSchedulerIsInterrupted) {
  Formed formed(2);
  formed.scheduler.signal(SIGINT);
  EXPECT_THAT(formed.scheduler.ended_within(soon), Optional(cluster::exit_code_interrupted));
  for (Child& worker : formed.workers)
    expect_ends_with(worker, cluster::exit_code_interrupted, "the scheduler was interrupted");
}

TEST(Cluster, KeepsASchedulerThatIsToldToEndUntilTheLastWorkerHasLeft) {
  Formed formed(2);
  formed.scheduler.signal(SIGTERM);
  EXPECT_TRUE(formed.scheduler.printed("it ends when the last worker has left")) << formed.scheduler.output();
  for (Child& worker : formed.workers) {
    worker.tell("step 7");
    EXPECT_TRUE(worker.printed("at step 7")) << worker.output();
    worker.tell("leave");
    EXPECT_THAT(worker.ended_within(soon), Optional(0)) << worker.output();
  }
  EXPECT_THAT(formed.scheduler.ended_within(soon), Optional(0)) << formed.scheduler.output();
}

TEST(Cluster, EndsASchedulerThatIsToldToEndAgain) {
  Formed formed(1);
  const auto begin = real_clock().now();
  std::optional<int> code;  // signals of the first second are one request
  for (; !code && real_clock().now() - begin < soon; code = formed.scheduler.ended_within(100ms))
    formed.scheduler.signal(SIGTERM);
  EXPECT_THAT(code, Optional(-SIGTERM)) << formed.scheduler.output();
  EXPECT_NE(formed.workers[0].ended_within(soon), std::nullopt) << formed.workers[0].output();
}

TEST(Cluster, EndsASchedulerAtOnceThatIsToldToEndWhereNobodyTrains) {
  Job job(2);
  Child scheduler = job.scheduler({{"MUSTER_LOG", "debug"}});
  Child worker = job.worker("0");
  ASSERT_TRUE(scheduler.printed("registered")) << scheduler.output();
  scheduler.signal(SIGTERM);
  EXPECT_THAT(scheduler.ended_within(soon), Optional(-SIGTERM)) << scheduler.output();
}

TEST(Cluster, StopsWaitingWhenInterrupted) {
  Job job(2);
  Child worker = job.worker("0", {{"MUSTER_LOG", "debug"}});
  Child scheduler = job.scheduler({{"MUSTER_LOG", "debug"}});
  ASSERT_TRUE(scheduler.printed("registered")) << scheduler.output();
  worker.signal(SIGINT);
  EXPECT_THAT(worker.ended_within(soon), Optional(cluster::exit_code_interrupted));
  expect_ends_with(scheduler, cluster::exit_code_interrupted, "failed: interrupted");
  Child alone = job.worker("0");
  alone.signal(SIGINT);
  EXPECT_NE(alone.ended_within(soon), std::nullopt);
}

TEST(Cluster, SaysThatThereIsNoScheduler) {
  Job job(1);
  job.set("MS_CLUSTER_RETRY_NUM", "1");
  Child worker = job.worker("0");
  expect_ends_with(worker, cluster::exit_code_timeout, "no scheduler could be reached");
  EXPECT_GE(worker.time_to_end(), 2900ms);
  EXPECT_THAT(worker.output(),
              AllOf(HasSubstr("MS_CLUSTER_RETRY_NUM"), HasSubstr(std::to_string(job.port()))));
}

TEST(Cluster, WaitsForANameThatIsNotYetKnown) {
  Job job(1, "no-such-host.invalid");
  job.set("MUSTER_RESOLVE_TIMEOUT", "2");
  Child worker = job.worker("0");
  expect_ends_with(worker, cluster::exit_code_configuration, "MS_SCHED_HOST='no-such-host.invalid'");
  EXPECT_GE(worker.time_to_end(), 1900ms);
}

// Where the name of the scheduler leads elsewhere here: behind a service or a NAT.
TEST(Cluster, ListensWhereMusterBindSaysWhateverItsHostIsCalled) {
  Job job(1);
  Child scheduler = job.scheduler({{"MS_SCHED_HOST", "no-such-host.invalid"}, {"MUSTER_BIND", "127.0.0.1"}});
  Child worker = job.worker("0");
  ASSERT_TRUE(worker.printed("rank 0")) << worker.output() << scheduler.output();
  worker.tell("leave");
  EXPECT_THAT(scheduler.ended_within(soon), Optional(0));
  EXPECT_EQ(scheduler.output(), "") << "nobody but this host comes in: no warning";
}

TEST(Cluster, ListensOnlyWhereTheSchedulersHostIs) {
  Job job(1, "127.0.0.2");
  Child scheduler = job.scheduler();
  Child elsewhere = job.worker("0", {{"MS_SCHED_HOST", "127.0.0.1"}, {"MS_CLUSTER_RETRY_NUM", "1"}});
  EXPECT_THAT(elsewhere.ended_within(10s), Optional(cluster::exit_code_timeout));
  EXPECT_THAT(elsewhere.output(), HasSubstr("connection refused"));
  Child worker = job.worker("0");
  EXPECT_TRUE(worker.printed("rank 0")) << worker.output();
}

TEST(Cluster, SaysThatAJobOffLoopbackIsOpenToItsNetwork) {
  Job job(1);
  Child scheduler = job.scheduler({{"MUSTER_BIND", "0.0.0.0"}});
  Child worker = job.worker("0");
  ASSERT_TRUE(worker.printed("rank 0")) << worker.output() << scheduler.output();
  EXPECT_TRUE(scheduler.printed("the job is open to any process that reaches 0.0.0.0 over the network"));
}

struct BadValue {
  const char* role;
  const char* name;
  const char* value;
  const char* range;
};
class ABadValue : public ::testing::TestWithParam<BadValue> {};
INSTANTIATE_TEST_SUITE_P(
    Of, ABadValue,
    ::testing::Values(BadValue{"MS_WORKER", "MS_SCHED_PORT", "70000", "1024 to 65535"},
                      BadValue{"MS_SCHED", "MS_WORKER_NUM", "1000000000", "1 to 16384"},
                      BadValue{"MS_WORKER", "MS_ROLE", "MS_BOSS", "MS_SCHED | MS_WORKER | MS_PSERVER"},
                      BadValue{"MS_WORKER", "MS_SCHED_HOST", "no-such-host.invalid", "host name"},
                      BadValue{"MS_SCHED", "MS_SCHED_HOST", "no-such-host.invalid", "host name"},
                      BadValue{"MS_SCHED", "MS_SCHED_HOST", "192.0.2.1", "no address of this host"},
                      BadValue{"MS_SCHED", "MS_SCHED_HOST", "192.0.2.1", "set MUSTER_BIND to"},
                      BadValue{"MS_SCHED", "MUSTER_BIND", "192.0.2.1", "this host's addresses are"},
                      BadValue{"MS_SCHED", "MUSTER_BIND", "a-name", "it is no IP address"},
                      BadValue{"MS_WORKER", "MS_WORKER_IP", "192.0.2.1", "address of this host"},
                      BadValue{"MS_WORKER", "MS_WORKER_IP", "here", "address of this host"},
                      BadValue{"MS_WORKER", "MS_NODE_TIMEOUT", "0", "1 to 1000000000"},
                      BadValue{"MS_WORKER", "MS_RECOVERY_PATH", "/proc/version/x", "folder"}),
    [](const auto& test) { return fmt::format("{}{}", test.param.name, test.index); });

TEST_P(ABadValue, EndsTheProcessNamingVariableValueAndRange) {
  Job job(1);
  Child child = job.start(GetParam().role, {{GetParam().name, GetParam().value}});
  EXPECT_THAT(child.ended_within(soon), Optional(cluster::exit_code_configuration)) << child.output();
  EXPECT_LT(child.time_to_end(), 2s);
  EXPECT_THAT(child.output(), AllOf(HasSubstr(fmt::format("{}='{}'", GetParam().name, GetParam().value)),
                                    HasSubstr(GetParam().range)));
}

}  // namespace
}  // namespace muster::process_test
