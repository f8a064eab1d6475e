// A rank that shares a core moves to one without ranks, and may run anywhere again.
#include <gtest/gtest.h>
#include <sched.h>

#include <cstring>
#include <thread>

#include "muster/collective/core_sharing.h"

namespace muster::collective {
namespace {

cpu_set_t allowed_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  EXPECT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  return allowed;
}

// Waits in vain as often as it takes, on a thread of its own. Whether that was on another core afterwards.
bool moves(bool is_shared, bool others_have_ranks) {
  bool has_moved = false;
  std::thread([&] {
    CoreSharing sharing(2);
    const cpu_set_t before = allowed_cpus();
    for (int round = 0; round < 20 && !has_moved; ++round) {  // the system may move it back at once
      const std::uint32_t cpu = CoreSharing::own_cpu();
      for (int i = 0; i < 64; ++i)
        sharing.look(cpu, is_shared, [&](std::uint32_t) { return others_have_ranks; });
      has_moved = CoreSharing::own_cpu() != cpu;
    }
    const cpu_set_t after = allowed_cpus();
    EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "it may run where it might before";
  }).join();
  return has_moved;
}

TEST(CoreSharing, MovesTheLaterRankToACoreWithoutRanks) {
  const cpu_set_t allowed = allowed_cpus();
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "this process has one core";
  EXPECT_TRUE(moves(true, false));
}

TEST(CoreSharing, IsLetBeWithMoreRanksThanCores) {
  EXPECT_FALSE(CoreSharing(CPU_SETSIZE + 1).is_possible());
  EXPECT_FALSE(CoreSharing(1).is_possible());
}

}  // namespace
}  // namespace muster::collective
