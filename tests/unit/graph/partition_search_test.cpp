#include "muster/graph/partition/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace muster::graph {
namespace {

// ---- Fewest bytes
// ------------------------------------------------------------------------------------------

TEST(FewestBytes, AreFoundOnSmallGraphsAlmostAlways) {
  std::mt19937 random(5);
  const auto below = [&](std::size_t count) { return random() % count; };
  std::size_t best = 0, all = 0;
  for (int round = 0; round < 200; ++round) {
    constexpr std::size_t pieces = 7;
    std::vector<std::optional<std::uint32_t>> fixed(pieces);
    for (const std::size_t piece : {0, 3, 6}) fixed[piece] = static_cast<std::uint32_t>(below(3));
    std::vector<Flow> flows;
    for (std::size_t from = 0; from + 1 < pieces; ++from) {
      Flow flow{.from = from, .to = {}, .bytes = 1 + below(9)};
      for (std::size_t to = from + 1; to < pieces; ++to)
        if (below(3) == 0) flow.to.push_back(to);
      if (!flow.to.empty()) flows.push_back(flow);
    }
    const std::vector<std::uint32_t> found = fewest_bytes(fixed, flows, 0);
    EXPECT_EQ(found, fewest_bytes(fixed, flows, 0));
    std::size_t least = SIZE_MAX;
    for (std::uint32_t code = 0; code < 81; ++code) {
      std::vector<std::uint32_t> ranks;
      std::uint32_t rest = code;
      for (const auto& rank : fixed) {
        ranks.push_back(rank ? *rank : rest % 3);
        if (!rank) rest /= 3;
      }
      least = std::min(least, transferred_bytes(ranks, flows));
    }
    for (std::size_t i = 0; i < pieces; ++i) EXPECT_EQ(found[i], fixed[i].value_or(found[i]));
    best += transferred_bytes(found, flows) == least ? 1 : 0;
    ++all;
  }
  EXPECT_GE(best * 100, all * 97);
}

}  // namespace
}  // namespace muster::graph
