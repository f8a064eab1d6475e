#include "muster/cluster/roster.h"

#include <gtest/gtest.h>

namespace muster::cluster {
namespace {
namespace roster_test {

TEST(WorkersOnCores, AreThoseOfTheHostThatMayRunOnTheSameOnes) {
  const auto worker = [](std::string host, std::uint64_t cores) {
    return Member{.host_key = std::move(host), .cores_key = cores};
  };
  const Roster roster{.workers = {worker("a", 1), worker("a#tcp", 1), worker("b", 1), worker("a", 2)},
                      .servers = {worker("a", 1)}};
  EXPECT_EQ(workers_on_cores_of(roster.workers[0], roster), 2U);
  EXPECT_EQ(workers_on_cores_of(roster.workers[2], roster), 1U);
  EXPECT_EQ(workers_on_cores_of(roster.workers[3], roster), 1U);
}

}  // namespace roster_test
}  // namespace
}  // namespace muster::cluster
