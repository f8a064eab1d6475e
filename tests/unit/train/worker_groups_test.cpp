#include "muster/train/worker_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "muster/base/state_clock.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/collective/ranks.h"

namespace muster::train {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::uint32_t workers = 2;

const Error killed{Code::peer_lost, "worker 1 was killed"};

Result<> no_interruption() { return {}; }

// Two workers as the cluster moves them from epoch to epoch.
class Cluster {
 public:
  explicit Cluster(Duration patience_with_left = 20s) {
    for (std::uint32_t rank = 0; rank < workers; ++rank) {
      auto listener = collective::Listener::open("127.0.0.1").value();
      endpoints_.push_back({.port = listener.port(), .local_name = listener.local_name()});
      listeners_.push_back(std::move(listener));
    }
    const auto first = next_roster();
    for (std::uint32_t rank = 0; rank < workers; ++rank)
      made_.push_back(
          std::make_unique<WorkerGroups>(first, std::move(listeners_[rank]),
                                         WorkerGroups::Options{.clock = real_clock(),
                                                               .rank = rank,
                                                               .address = "127.0.0.1",
                                                               .connect_timeout = 20s,
                                                               .call_timeout = 20s,
                                                               .patience_with_left = patience_with_left}));
  }

  WorkerGroups& worker(std::uint32_t rank) { return *made_[rank]; }

  void lose_epoch() {
    for (std::uint32_t rank = 0; rank < workers; ++rank) endpoints_[rank] = made_[rank]->lost(killed).value();
  }
  void form_next() {
    const auto roster = next_roster();
    for (const auto& groups : made_) groups->formed(roster);
  }

  // On every worker at once.
  void on_each(const std::function<void(WorkerGroups&, std::uint32_t)>& work) {
    collective::run_threads(workers, [&](std::uint32_t rank) { work(*made_[rank], rank); });
  }

 private:
  std::shared_ptr<const cluster::Roster> next_roster() {
    auto roster = std::make_shared<cluster::Roster>();
    roster->epoch = ++epoch_;
    roster->job_id = 7;
    roster->recovers = true;
    for (std::uint32_t rank = 0; rank < workers; ++rank) {
      cluster::Member member{.rank = rank, .host_key = "host", .address = "127.0.0.1"};
      member.data_port = endpoints_[rank].port;
      member.local_name = endpoints_[rank].local_name;
      roster->workers.push_back(member);
    }
    return roster;
  }

  std::uint64_t epoch_ = 0;
  std::vector<cluster::DataEndpoint> endpoints_;
  std::vector<collective::Listener> listeners_;
  std::vector<std::unique_ptr<WorkerGroups>> made_;
};

void expect_barrier(WorkerGroups& groups) {
  const auto group = groups.communicator();
  ASSERT_TRUE(group) << group.error().message;
  EXPECT_TRUE((*group)->barrier());
}

TEST(AnEpoch, IsConnectedByTheFirstCallToWhichAllCome) {
  Cluster cluster;
  cluster.on_each([](WorkerGroups& groups, std::uint32_t) { expect_barrier(groups); });
}

TEST(AnEpoch, ThatIsLostEndsTheCallThatWaits) {
  Cluster cluster;
  cluster.on_each([](WorkerGroups& groups, std::uint32_t) { expect_barrier(groups); });
  Result<> done;
  std::thread waiting([&] { done = (*cluster.worker(0).communicator())->barrier(); });
  cluster.lose_epoch();
  waiting.join();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, killed.message);
}

TEST(AnEpoch, ThatIsLostEndsTheConnectingUnderWay) {
  Cluster cluster;
  Result<Communicator*> made = nullptr;
  std::thread waiting([&] { made = cluster.worker(0).communicator(); });
  cluster.lose_epoch();
  waiting.join();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, killed.message);
}

TEST(TheNextEpoch, HasAGroupOfItsOwn) {
  Cluster cluster;
  cluster.on_each([](WorkerGroups& groups, std::uint32_t) { expect_barrier(groups); });
  cluster.lose_epoch();
  cluster.form_next();
  cluster.on_each([](WorkerGroups& groups, std::uint32_t) {
    EXPECT_FALSE(groups.communicator().and_then([](auto* group) { return group->barrier(); }));
    ASSERT_TRUE(groups.next(&no_interruption));
    EXPECT_EQ(groups.roster().epoch, 2u);
    expect_barrier(groups);
  });
}

TEST(TheNextEpoch, MayBeLostBeforeAnybodyUsesIt) {
  Cluster cluster;
  for (int i = 0; i < 3; ++i) {
    cluster.lose_epoch();
    cluster.form_next();
  }
  cluster.on_each([](WorkerGroups& groups, std::uint32_t) {
    ASSERT_TRUE(groups.next(&no_interruption));
    EXPECT_EQ(groups.roster().epoch, 4u);
    expect_barrier(groups);
  });
}

TEST(TheNextEpoch, IsWaitedForByAClockThatSaysSo) {
  static StateClock main_clock;
  Cluster cluster;
  cluster.lose_epoch();
  std::thread([&] {
    set_thread_clock(main_clock);
    main_clock.enter(1, real_clock().now());
    const auto moved = cluster.worker(0).next([&]() -> Result<> {  // asked in the middle of the wait
      EXPECT_GT(main_clock.spent(real_clock().now()).at(StateClock::waiting), 0s);
      cluster.form_next();
      return {};
    });
    EXPECT_TRUE(moved);
    const auto waited = main_clock.spent(real_clock().now()).at(StateClock::waiting);
    cluster.worker(0).wait_until_over(1ms);
    EXPECT_GE(main_clock.spent(real_clock().now()).at(StateClock::waiting), waited + 1ms);
  }).join();
}

TEST(TheNextEpoch, IsNotWaitedForOnceTheJobHasFailed) {
  Cluster cluster;
  cluster.lose_epoch();
  cluster.worker(0).end({Code::timeout, "nobody came back"});
  const Result<> next = cluster.worker(0).next(&no_interruption);
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().message, "nobody came back");
}

TEST(TheNextEpoch, IsNotWaitedForAfterAnInterruption) {
  Cluster cluster;
  cluster.lose_epoch();
  const Result<> next = cluster.worker(0).next([]() -> Result<> { return fail(Code::aborted, "Ctrl-C"); });
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().message, "Ctrl-C");
}

TEST(AWorkerThatHasLeft, IsNamedByWhoNeedsIt) {
  auto roster = std::make_shared<cluster::Roster>();
  roster->epoch = 3;
  roster->workers = {{.rank = 0}, {.rank = 1, .has_left = true}};
  WorkerGroups groups(roster, collective::Listener::open("127.0.0.1").value(),
                      {.clock = real_clock(), .rank = 0, .address = "127.0.0.1"});
  const auto made = groups.communicator();
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, Mentions("worker 1", "finished"));
}

// As the cluster does, says again and again that worker 1 has left `epoch`, while worker 0 connects.
Result<Communicator*> connect_without_the_other(Cluster& cluster, std::uint64_t epoch) {
  Result<Communicator*> made = nullptr;
  std::atomic<bool> is_done = false;
  std::thread connecting([&] {
    made = cluster.worker(0).communicator();
    is_done = true;
  });
  while (!is_done) cluster.worker(0).left(epoch, 1);
  connecting.join();
  return made;
}

TEST(AWorkerThatHasLeft, InTheMiddleOfTheEpochIsNotWaitedFor) {
  Cluster cluster(0s);
  const auto made = connect_without_the_other(cluster, 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::aborted);
  EXPECT_THAT(made.error().message, Mentions("worker 1", "left"));
  EXPECT_THAT(made.error().message, HasSubstr("Start all processes again"));
}

TEST(AWorkerThatHasLeft, AnEarlierEpochMayBeHereInThisOne) {
  Cluster cluster(0s);
  cluster.lose_epoch();
  cluster.form_next();
  cluster.on_each([](WorkerGroups& groups, std::uint32_t rank) {
    ASSERT_TRUE(groups.next(&no_interruption));
    if (rank == 0) groups.left(1, 1);
    expect_barrier(groups);
  });
}

}  // namespace
}  // namespace muster::train
