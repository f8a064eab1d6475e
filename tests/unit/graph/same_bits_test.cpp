// Placed networks over several workers train to the bits of one process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "placed_nets.h"

namespace muster::graph {
namespace {

template <class N, class... Arguments>
void expect_same_bits_on(std::uint32_t size, const std::string& optimizer, Loop loop,
                         const Arguments&... arguments) {
  const Seen alone = Training(std::make_unique<N>(arguments...), optimizer, loop).run({.seed = 3});
  ASSERT_FALSE(alone.problem) << *alone.problem;
  for (const bool buffered : {false, true}) {
    const std::vector<Seen> seen = on_workers<Seen>(
        size,
        [&](const RunContext& context) {
          return Training(std::make_unique<N>(arguments...), optimizer, loop).run(context);
        },
        buffered);
    std::map<std::string, Bits> together;
    std::set<std::size_t> fingerprints;
    for (const Seen& worker : seen) {
      ASSERT_FALSE(worker.problem) << *worker.problem;
      EXPECT_EQ(worker.losses, alone.losses);
      for (const auto& [name, values] : worker.parameters)
        EXPECT_TRUE(together.emplace(name, values).second) << name << " was made twice";
      ASSERT_TRUE(worker.partition);
      fingerprints.insert(worker.partition->fingerprint);
    }
    EXPECT_EQ(fingerprints.size(), 1u);
    EXPECT_EQ(together, alone.parameters);
  }
}

// ---- The same bits ---------------------------------------------------------------------------------------

class SameBits : public ::testing::TestWithParam<std::tuple<std::string, Loop>> {
 protected:
  std::string optimizer() const { return std::get<0>(GetParam()); }
  Loop loop() const { return std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Training, SameBits,
                         ::testing::Combine(::testing::Values("momentum", "adam", "lamb", "ftrl"),
                                            ::testing::Values(Loop::one_graph, Loop::by_hand)),
                         [](const auto& chosen) {
                           return std::get<0>(chosen.param) +
                                  (std::get<1>(chosen.param) == Loop::one_graph ? "InOneGraph" : "ByHand");
                         });

TEST_P(SameBits, OfAChainThatComesBackToItsFirstWorker) {
  expect_same_bits_on<Chain>(3, optimizer(), loop(), std::vector{on(0), on(1), on(0), PlacementPtr(), on(2)});
}

TEST_P(SameBits, OfLeNetOnFiveWorkers) { expect_same_bits_on<LeNet>(5, optimizer(), loop()); }

// As many samples as some kernels take side by side, which a graph in one piece keeps so between its layers.
TEST_P(SameBits, OfLeNetBatchBlocked) {
  expect_same_bits_on<LeNet>(5, optimizer(), loop(), std::int64_t{32});
}

TEST_P(SameBits, OfAResidualNetWhoseSkipsCross) { expect_same_bits_on<Residual>(3, optimizer(), loop()); }

TEST_P(SameBits, OfALayerUsedByTwoWorkers) { expect_same_bits_on<Shared>(3, optimizer(), loop()); }

TEST_P(SameBits, OfOpsThatAreRowsAlone) { expect_same_bits_on<Rows>(3, optimizer(), loop()); }

TEST_P(SameBits, OnWorkersThatOwnNothing) {
  expect_same_bits_on<Chain>(4, optimizer(), loop(), std::vector{on(2), PlacementPtr(), on(1)});
}

TEST(SameBitsOfAnyGraph, OnAnyPlacement) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    expect_same_bits_on<Random>(2 + seed % 3, seed % 2 == 0 ? "adam" : "momentum",
                                seed % 4 < 2 ? Loop::one_graph : Loop::by_hand, seed, 2 + seed % 3);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(SameBitsOfAnyGraph, OfImagesOnAnyPlacement) {
  for (std::uint32_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    expect_same_bits_on<RandomImages>(2 + seed % 2, "momentum",
                                      seed % 4 < 2 ? Loop::one_graph : Loop::by_hand, seed, 2 + seed % 2);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(SameBitsOfAnyGraph, OfImagesInMixedPrecision) {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    expect_same_bits_on<RandomImages>(
        2 + seed % 2, "momentum", seed % 4 < 2 ? Loop::one_graph : Loop::by_hand, seed, 2 + seed % 2, true);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace muster::graph
