#include "muster/launch/outputs.h"

#include <gmock/gmock.h>

namespace muster::launch {
namespace {

TEST(Tail, OfNoRanksShowsEverybody) {
  EXPECT_TRUE(is_tailed({.role = "scheduler", .label = "scheduler"}, {}));
}

TEST(Tail, ShowsTheWorkersOfItsRanksAndWhatHasNone) {
  const std::vector<std::int64_t> tail = {0, 3};
  EXPECT_TRUE(is_tailed({.role = "worker", .label = "worker 0"}, tail));
  EXPECT_TRUE(is_tailed({.role = "worker", .label = "worker 3"}, tail));
  EXPECT_TRUE(is_tailed({.role = "mpirun", .label = "mpirun"}, tail));
  EXPECT_FALSE(is_tailed({.role = "worker", .label = "worker 1"}, tail));
  EXPECT_FALSE(is_tailed({.role = "worker", .label = "worker 13"}, tail));
  EXPECT_FALSE(is_tailed({.role = "ps", .label = "ps 0"}, tail));
  EXPECT_FALSE(is_tailed({.role = "server", .label = "server 3"}, tail));
  EXPECT_FALSE(is_tailed({.role = "scheduler", .label = "scheduler"}, tail));
  EXPECT_FALSE(is_tailed({.kind = ProcessSpec::Kind::service, .role = "sshd", .label = "sshd"}, tail));
}

}  // namespace
}  // namespace muster::launch
