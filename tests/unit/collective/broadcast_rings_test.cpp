// Broadcasts on one host whose root does not wait for the others.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <future>

#include "ranks.h"

#include "tests/unit/base/mentions.h"

namespace muster::collective {
namespace {

// A number that the root of a broadcast gives, and the others find.
Result<std::uint64_t> pass_on(Communicator& group, std::uint32_t root, std::uint64_t number,
                              std::size_t size_bytes = 64) {
  std::vector<std::uint64_t> values(size_bytes / sizeof(number), group.rank() == root ? number : 0);
  if (auto done = group.broadcast(values.data(), size_bytes, root); !done) return fail(done.error());
  for (const std::uint64_t value : values)
    if (value != values.front()) return fail(Code::internal, "a broadcast brought parts of two");
  return values.front();
}

TEST(BroadcastRings, LetTheRootRunAheadOfTheOthers) {
  const Ranks groups = connect_ranks(3, Hosts::one, patient);
  for (std::uint64_t number = 1; number <= 500; ++number) ASSERT_TRUE(pass_on(*groups[0], 0, number));
  for (const std::uint32_t rank : {2U, 1U})
    for (std::uint64_t number = 1; number <= 500; ++number)
      ASSERT_EQ(pass_on(*groups[rank], 0, 0).value(), number);
}

TEST(BroadcastRings, BringEveryRootsBytesInOrder) {
  constexpr std::uint32_t ranks = 4;
  const Ranks groups = connect_ranks(ranks, Hosts::one, patient);
  const std::uint64_t seed = entropy();
  run_threads(ranks, [&](std::uint32_t rank) {
    const RandomStream random(seed, 1);
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const auto root = static_cast<std::uint32_t>(random.below(3 * i, ranks));
      const std::size_t longest = std::size_t{1} << random.below(3 * i + 1, 18);  // some are met for
      const Bytes given = bytes_of(seed, i, 1 + random.below(3 * i + 2, longest));
      Bytes data = rank == root ? given : Bytes(given.size());
      const auto done = groups[rank]->broadcast(data.data(), data.size(), root);
      ASSERT_TRUE(done) << done.error().message;
      ASSERT_TRUE(data == given) << "seed " << seed << ", broadcast " << i << " of " << given.size();
      const auto met = i % 97 == 0 ? groups[rank]->barrier() : Result<>{};
      ASSERT_TRUE(met) << met.error().message;
    }
  });
}

TEST(BroadcastRings, NameWhoHasNotReadWhereTheRootMustWait) {
  const Ranks groups = connect_ranks(3, Hosts::one, hasty);
  Result<> end;
  while (end) {
    const auto given = pass_on(*groups[0], 0, 1, 64 << 10);
    if (!given) {
      end = fail(given.error());
    } else {
      ASSERT_TRUE(pass_on(*groups[1], 0, 0, 64 << 10));
    }
  }
  EXPECT_EQ(end.error().code, Code::timeout);
  EXPECT_THAT(end.error().message, Mentions("broadcast #", "(65536 bytes from rank 0)", "for rank 2"));
  EXPECT_THAT(end.error().message, ::testing::Not(::testing::HasSubstr("rank 1")));
}

TEST(BroadcastRings, WakeTheRootWhenThereIsRoom) {
  const Ranks groups = connect_ranks(2, Hosts::one, patient);
  auto root = std::async(std::launch::async, [&] {
    for (std::uint64_t number = 1; number <= 64; ++number)
      if (!pass_on(*groups[0], 0, number, 64 << 10)) return false;
    return true;
  });
  while (groups[0]->in_flight_call().finished < 3) std::this_thread::yield();
  const TimePoint start = real_clock().now();
  for (std::uint64_t number = 1; number <= 64; ++number)
    ASSERT_EQ(pass_on(*groups[1], 0, 0, 64 << 10).value(), number);
  EXPECT_TRUE(root.get());
  EXPECT_LT(real_clock().now() - start, soon);
}

TEST(BroadcastRings, NameTheRootThatDoesNotCome) {
  const Ranks groups = connect_ranks(3, Hosts::one, hasty);
  const auto end = pass_on(*groups[1], 2, 0);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::timeout);
  EXPECT_THAT(end.error().message, Mentions("broadcast #1 (64 bytes from rank 2) waited 0.", "for rank 2"));
}

TEST(BroadcastRings, StillBringWhatTheRootGaveBeforeItLeft) {
  Ranks groups = connect_ranks(3, Hosts::one, patient);
  for (std::uint64_t number = 1; number <= 3; ++number) ASSERT_TRUE(pass_on(*groups[0], 0, number));
  groups[0].reset();
  for (const std::uint32_t rank : {1U, 2U}) {
    for (std::uint64_t number = 1; number <= 3; ++number)
      ASSERT_EQ(pass_on(*groups[rank], 0, 0).value(), number);
    const auto end = pass_on(*groups[rank], 0, 0);
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code, Code::peer_lost);
    groups[rank].reset();
  }
}

TEST(BroadcastRings, EndTheWaitsOfBothSidesWhenOneAborts) {
  const Ranks groups = connect_ranks(3, Hosts::one, patient);
  auto root = std::async(std::launch::async, [&] {
    while (pass_on(*groups[0], 0, 1, 64 << 10)) continue;
    return real_clock().now();
  });
  auto reader = std::async(std::launch::async, [&] {
    while (pass_on(*groups[1], 0, 0, 64 << 10)) continue;
    return real_clock().now();
  });
  while (groups[0]->in_flight_call().finished < 3) std::this_thread::yield();
  const TimePoint start = real_clock().now();
  groups[2]->abort({Code::aborted, "rank 2 gave up"});
  EXPECT_LT(root.get() - start, soon);
  EXPECT_LT(reader.get() - start, soon);
}

TEST(BroadcastRings, MakeTheRootWaitWhereTheGroupWantsIt) {
  Options options = hasty;
  options.roots_wait = true;
  const Ranks groups = connect_ranks(2, Hosts::one, options);
  const auto end = pass_on(*groups[0], 0, 1);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::timeout);
}

// ---- Calls that do not match ------------------------------------------------------------------------------

std::string ends_of(const Ranks& groups, const std::function<Result<>(Communicator&)>& calls) {
  std::vector<std::string> ends(groups.size());
  run_threads(static_cast<std::uint32_t>(groups.size()), [&](std::uint32_t rank) {
    const auto done = calls(*groups[rank]);
    ends[rank] = done ? "none" : done.error().message;
  });
  return fmt::format("{}", fmt::join(ends, "\n"));
}

Result<> broadcast_from(Communicator& group, std::uint32_t root, std::size_t size_bytes = 64) {
  MUSTER_TRY_VOID(pass_on(group, root, 1, size_bytes));
  return {};
}

TEST(BroadcastRings, NameBothSidesOfOtherSizes) {
  const Ranks groups = connect_ranks(2, Hosts::one, patient);
  const std::string ends = ends_of(groups, [](Communicator& group) -> Result<> {
    MUSTER_TRY_VOID(broadcast_from(group, 0, group.rank() == 0 ? 64 : 128));
    return group.barrier();
  });
  EXPECT_THAT(ends, Mentions("rank 0 called broadcast #1 (64 bytes from rank 0)",
                             "rank 1 called broadcast #1 (128 bytes from rank 0)"));
}

TEST(BroadcastRings, NameBothSidesOfOtherRoots) {
  const Ranks groups = connect_ranks(3, Hosts::one, patient);
  const std::string ends = ends_of(groups, [](Communicator& group) -> Result<> {
    MUSTER_TRY_VOID(broadcast_from(group, group.rank() == 1 ? 1 : 0));
    return group.barrier();
  });
  EXPECT_THAT(ends, Mentions("called broadcast #1 (64 bytes from rank 0)",
                             "called broadcast #1 (64 bytes from rank 1)"));
}

TEST(BroadcastRings, NameTheBroadcastThatAnotherRankDidNotCall) {
  const Ranks groups = connect_ranks(3, Hosts::one, patient);
  const std::string ends = ends_of(groups, [](Communicator& group) -> Result<> {
    if (group.rank() != 1) MUSTER_TRY_VOID(broadcast_from(group, 0));
    return group.barrier();
  });
  EXPECT_THAT(ends,
              Mentions("rank 0 called broadcast #1 (64 bytes from rank 0)", "rank 1 called barrier #1"));
}

// The root has gone on to something else: nobody meets.
TEST(BroadcastRings, NameItAlsoWhileTheRootMakesNoCall) {
  const Ranks groups = connect_ranks(2, Hosts::one, patient);
  ASSERT_TRUE(broadcast_from(*groups[0], 0));
  const TimePoint start = real_clock().now();
  const auto end = groups[1]->barrier();
  EXPECT_LT(real_clock().now() - start, soon);
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message,
              Mentions("rank 0 called broadcast #1 (64 bytes from rank 0)", "rank 1 called barrier #1"));
}

}  // namespace
}  // namespace muster::collective
