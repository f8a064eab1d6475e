// Who talks to whom, and what that costs in a world of any size: nothing here opens a connection.
#include "muster/collective/layout.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <string>

#include "muster/collective/collective.h"
#include "muster/collective/local_group.h"
#include "muster/collective/plan.h"

namespace muster::collective {
namespace {

using Names = std::vector<std::string>;

std::vector<std::string_view> views_of(const Names& names) { return {names.begin(), names.end()}; }

// Ranks in any order on hosts of any size.
Names drawn_hosts(const RandomStream& random, std::uint64_t ranks) {
  const std::uint64_t hosts = 1 + random.below(0, ranks);
  Names names;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    const std::uint64_t some = 1 + random.below(2 * rank + 1, hosts);
    names.push_back(fmt::format("host {}", random.below(2 * rank + 2, some)));
  }
  return names;
}

Names equal_hosts(std::uint32_t ranks, std::uint32_t ranks_of_host) {
  Names names;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    names.push_back(fmt::format("host {}", rank / ranks_of_host));
  return names;
}

TEST(Layout, PutsTheRanksOfAHostTogetherInTheirOrder) {
  const Layout layout(views_of({"a", "b", "a", "b", "b", "c"}), 4);
  EXPECT_EQ(layout.host_count(), 3u);
  EXPECT_THAT(layout.ranks_of(1), ::testing::ElementsAre(1, 3, 4));
  EXPECT_EQ(layout.own_host(), 1u);
  EXPECT_EQ(layout.place_of(4), 2u);
  std::vector<std::uint32_t> positions, remote;
  for (std::uint32_t rank = 0; rank < 6; ++rank) positions.push_back(layout.position_of(rank));
  EXPECT_THAT(positions, ::testing::ElementsAre(0, 2, 1, 3, 4, 5));
  for (const std::uint32_t rank : {0u, 2u, 5u}) remote.push_back(layout.remote_index_of(rank));
  EXPECT_THAT(remote, ::testing::ElementsAre(0, 1, 2));
  EXPECT_FALSE(layout.is_even());
}

TEST(Layout, GivesEachRankOfEqualHostsItsOwnLaneToEachOtherHost) {
  const Names names = equal_hosts(12, 3);
  const Layout layout(views_of(names), 4);
  ASSERT_TRUE(layout.is_even());
  std::vector<std::uint32_t> peers;
  for (const Lane& lane : layout.lanes()) {
    peers.push_back(lane.peer);
    EXPECT_EQ(std::pair(lane.ours.begin, lane.ours.count), std::pair(1u, 1u));
    EXPECT_EQ(std::pair(lane.theirs.begin, lane.theirs.count), std::pair(1u, 1u));
  }
  EXPECT_THAT(peers, ::testing::ElementsAre(1, 7, 10));
}

// Both ranks of a lane know of it and what it carries; what each place of a host has for each other host goes
// over one lane; and nobody has two lanes to one host.
TEST(Layout, HasALaneForEverythingThatGoesBetweenTwoHosts) {
  const std::uint64_t seed = entropy();
  fmt::print("seed {}\n", seed);
  for (std::uint64_t round = 0; round < 300; ++round) {
    const RandomStream random(seed, round);
    const Names names = drawn_hosts(random, 1 + random.below(1000, 24));
    std::vector<Layout> layouts;
    for (std::uint32_t rank = 0; rank < names.size(); ++rank) layouts.emplace_back(views_of(names), rank);
    std::map<std::array<std::uint32_t, 3>, int> carried;  // by host, place and other host
    for (std::uint32_t rank = 0; rank < names.size(); ++rank) {
      const Layout& own = layouts[rank];
      std::map<std::uint32_t, int> lanes_to;
      for (const Lane& lane : own.lanes()) {
        ASSERT_EQ(own.host_of(lane.peer), lane.host);
        ASSERT_EQ(++lanes_to[lane.host], 1);
        const auto& back = layouts[lane.peer].lanes();
        const auto same = std::ranges::find(back, rank, &Lane::peer);
        ASSERT_NE(same, back.end()) << "rank " << rank << " to rank " << lane.peer;
        EXPECT_EQ(std::pair(same->ours.begin, same->ours.count),
                  std::pair(lane.theirs.begin, lane.theirs.count));
        EXPECT_EQ(std::pair(same->theirs.begin, same->theirs.count),
                  std::pair(lane.ours.begin, lane.ours.count));
        for (std::uint32_t place = lane.ours.begin; place < lane.ours.end(); ++place) {
          ++carried[{own.own_host(), place, lane.host}];
          const auto ends = own.ends_of_lane(own.own_host(), place, lane.host);
          EXPECT_EQ(std::pair(ends.near, ends.far), std::pair(rank, lane.peer));
        }
      }
    }
    const Layout& any = layouts.front();
    std::size_t pairs = 0;
    for (std::uint32_t host = 0; host < any.host_count(); ++host)
      pairs += any.ranks_of(host).size() * (any.host_count() - 1);
    EXPECT_EQ(carried.size(), pairs);
    for (const auto& [key, times] : carried) EXPECT_EQ(times, 1);
  }
}

// Every host's slices together are the chunk, and each rank's lie in its host's.
TEST(Layout, CutsAChunkIntoTheHostsSlices) {
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{5000}, std::size_t{1} << 20}) {
    const Layout layout(views_of({"a", "b", "a", "b", "b", "c"}), 0);
    std::size_t end = 0;
    for (std::uint32_t host = 0; host < layout.host_count(); ++host) {
      const Range slices = slices_of(bytes, layout.positions_of(host), layout.size());
      EXPECT_EQ(slices.begin, end);
      end = slices.begin + slices.size;
    }
    EXPECT_EQ(end, bytes);
  }
}

// The largest world, on hosts of every size.
TEST(Layout, OfTheLargestWorldIsMadeAtOnceAndTakesLittle) {
  const std::uint64_t seed = entropy();
  fmt::print("seed {}\n", seed);
  const auto ranks = static_cast<std::uint32_t>(ranks_max);
  for (const std::uint32_t ranks_of_host : {1u, 7u, 64u, 1000u, ranks, 0u}) {
    const Names names =
        ranks_of_host == 0 ? drawn_hosts(RandomStream(seed, 1), ranks) : equal_hosts(ranks, ranks_of_host);
    const std::vector<std::string_view> keys = views_of(names);
    const TimePoint start = real_clock().now();
    const Layout layout(keys, ranks / 2);
    // A thousand times what it takes, and a hundredth of what n * n steps would.
    EXPECT_LT(real_clock().now() - start, std::chrono::seconds(2)) << ranks_of_host;
    EXPECT_LT(layout.lanes().size(), layout.host_count());
    const Sizes sizes = sizes_of(layout);
    const LocalLayout memory({.ranks = layout.own_ranks(),
                              .local_rank = layout.place_of(ranks / 2),
                              .small_size_bytes = sizes.small_size_bytes,
                              .chunk_size_bytes = sizes.chunk_size_bytes,
                              .remote_ranks = layout.remote_count(),
                              .raw_size_bytes = sizes.raw_size_bytes});
    // A host shares this much among all its ranks; one that is alone has its part of it for itself.
    EXPECT_LT(memory.end, std::size_t{1} << 30) << ranks_of_host;
    EXPECT_LT(layout.remote_count() * std::max(sizes.small_size_bytes, sizes.raw_size_bytes),
              std::size_t{1} << 30)
        << ranks_of_host;
  }
}

TEST(Layout, OfEqualHostsNeedsAsManyConnectionsAsThereAreOtherHosts) {
  const Names names = equal_hosts(64 * 64, 64);
  for (const std::uint32_t rank : {0u, 1u, 63u, 64u, 2000u, 4095u})
    EXPECT_EQ(Layout(views_of(names), rank).lanes().size(), 63u);
}

}  // namespace
}  // namespace muster::collective
