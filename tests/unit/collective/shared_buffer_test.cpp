// Memory that the ranks of a host reach: where it comes from, and what becomes of it.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "ranks.h"

#include "tests/unit/base/mentions.h"

namespace muster::collective {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t count = 100'000;
constexpr std::size_t bytes = count * sizeof(float);

std::shared_ptr<float> floats_of(Communicator& comm, float value) {
  const auto made = comm.shared_buffer(bytes).value();
  const std::shared_ptr<float> floats(made, reinterpret_cast<float*>(made.get()));
  std::fill_n(floats.get(), count, value);
  return floats;
}

Result<> sum_in_place(Communicator& comm, const std::shared_ptr<float>& data) {
  return comm.all_reduce(data.get(), data.get(), count, DType::float32, Reduction::sum);
}

TEST(SharedBuffer, IsReducedInPlaceOnEveryRank) {
  const Ranks comms = connect_ranks(3, Hosts::one);
  run_threads(3, [&](std::uint32_t rank) {
    const auto data = floats_of(*comms[rank], static_cast<float>(rank + 1));
    ASSERT_TRUE(sum_in_place(*comms[rank], data));
    EXPECT_EQ(std::vector<float>(data.get(), data.get() + count), std::vector<float>(count, 6));
  });
}

// Reduced through memory that another rank had mapped before: a new buffer where an old one lay.
TEST(SharedBuffer, GivesItsMemoryBackAndComesZeroed) {
  const Ranks comms = connect_ranks(2, Hosts::one);
  run_threads(2, [&](std::uint32_t rank) {
    for (int round = 0; round < 3; ++round) {
      const auto made = comms[rank]->shared_buffer(bytes).value();
      const auto* floats = reinterpret_cast<const float*>(made.get());
      EXPECT_EQ(std::vector<float>(floats, floats + count), std::vector<float>(count, 0));
      const auto more = floats_of(*comms[rank], 1);
      std::memcpy(made.get(), more.get(), bytes);
      ASSERT_TRUE(sum_in_place(*comms[rank], {made, reinterpret_cast<float*>(made.get())}));
      EXPECT_EQ(floats[count - 1], 2);
      EXPECT_EQ(more.get()[count - 1], 1);
    }
  });
}

// What is mapped of another rank's memory grows with it, also in the middle of a call.
TEST(SharedBuffer, MayBeLargerThanAllBefore) {
  constexpr std::size_t large = std::size_t{40} << 20;
  const Ranks comms = connect_ranks(2, Hosts::one);
  run_threads(2, [&](std::uint32_t rank) {
    ASSERT_TRUE(sum_in_place(*comms[rank], floats_of(*comms[rank], 1)));
    const auto in = comms[rank]->shared_buffer(large).value();
    const auto out = comms[rank]->shared_buffer(large).value();
    auto* values = reinterpret_cast<std::int32_t*>(in.get());
    std::fill_n(values, large / 4, static_cast<std::int32_t>(rank + 1));
    ASSERT_TRUE(comms[rank]->all_reduce(in.get(), out.get(), large / 4, DType::int32, Reduction::sum));
    const auto* sums = reinterpret_cast<const std::int32_t*>(out.get());
    EXPECT_EQ(std::count(sums, sums + large / 4, 3), static_cast<std::ptrdiff_t>(large / 4));
  });
}

TEST(SharedBuffer, MayOutliveItsGroup) {
  Ranks comms = connect_ranks(2, Hosts::one);
  const auto data = floats_of(*comms[0], 7);
  comms.clear();
  EXPECT_EQ(data.get()[count - 1], 7);
}

TEST(SharedBuffer, StaysWholeWhenAForkedChildDropsItsCopy) {
  Ranks comms = connect_ranks(2, Hosts::one);
  auto data = floats_of(*comms[0], 7);
  const pid_t child = ::fork();
  if (child == 0) {
    data.reset();
    std::_Exit(comms[0]->shared_buffer(bytes) ? 1 : 0);  // nor does it get one
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(data.get()[count - 1], 7);
}

TEST(SharedBuffer, ThatIsTooLargeIsRefusedAndHarmsNothing) {
  const Ranks comms = connect_ranks(2, Hosts::one);
  const auto first = comms[0]->shared_buffer(1).value();
  const auto made = comms[0]->shared_buffer(std::size_t{1} << 40);  // all that a rank has room for
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::invalid_argument);
  EXPECT_THAT(made.error().message, Mentions("1099511627776", "shared"));
  run_threads(
      2, [&](std::uint32_t rank) { ASSERT_TRUE(sum_in_place(*comms[rank], floats_of(*comms[rank], 1))); });
}

TEST(SharedBuffer, IsRefusedAfterTheGroupHasEnded) {
  const Ranks comms = connect_ranks(2, Hosts::one);
  comms[1]->abort({Code::peer_lost, "worker 1 was killed"});
  const auto made = comms[0]->shared_buffer(bytes);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "worker 1 was killed");
}

TEST(SharedBuffer, ALateRankIsNamedAtTheDeadline) {
  const Ranks comms = connect_ranks(2, Hosts::one, Options{.call_timeout = std::chrono::milliseconds(100)});
  const auto done = sum_in_place(*comms[0], floats_of(*comms[0], 1));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::timeout);
  EXPECT_THAT(done.error().message, HasSubstr("rank 1"));
}

}  // namespace
}  // namespace muster::collective
