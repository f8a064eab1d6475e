#include "muster/graph/partition/search.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace muster::graph {
namespace {

using Rank = std::uint32_t;
using Ranks = std::vector<Rank>;
using FixedRanks = std::span<const std::optional<Rank>>;

// Moves that help are made until there is none; each makes the sum smaller, so it ends. This is against
// surprises only.
constexpr int rounds_max = 100;

std::size_t cost_of(const Flow& flow, const Ranks& ranks) {
  std::set<Rank> others;
  for (const std::size_t piece : flow.to)
    if (ranks[piece] != ranks[flow.from]) others.insert(ranks[piece]);
  return flow.bytes * others.size();
}

class Search {
 public:
  Search(FixedRanks fixed, std::span<const Flow> flows, Rank otherwise)
      : fixed_(fixed), flows_(flows), otherwise_(otherwise), incident_(fixed.size()) {
    for (std::size_t i = 0; i < flows.size(); ++i) {
      incident_[flows[i].from].push_back(i);
      for (const std::size_t piece : flows[i].to) incident_[piece].push_back(i);
    }
  }

  // From the start in which free pieces go with what they are made of, or with those that use them.
  Ranks run(bool with_users) const {
    Ranks ranks = begin(with_users);
    for (int round = 0; round < rounds_max; ++round) {
      const bool moved = move_pieces(ranks);
      if (!move_groups(ranks) && !moved) break;
    }
    return ranks;
  }

 private:
  using Known = std::vector<std::optional<Rank>>;

  Ranks begin(bool with_users) const {
    Known known(fixed_.begin(), fixed_.end());
    while (follow(known, with_users) || follow(known, !with_users)) {
    }
    Ranks ranks;
    for (const auto& rank : known) ranks.push_back(rank.value_or(otherwise_));
    return ranks;
  }

  // Whether any piece got a rank. Users of users come last first.
  bool follow(Known& known, bool users) const {
    bool any = false;
    for (std::size_t n = 0; n < known.size(); ++n) {
      const std::size_t piece = users ? known.size() - 1 - n : n;
      if (known[piece]) continue;
      known[piece] = users ? rank_of_user(piece, known) : rank_of_source(piece, known);
      any = any || known[piece];
    }
    return any;
  }

  // Where the largest of what the piece uses is made.
  std::optional<Rank> rank_of_source(std::size_t piece, const Known& known) const {
    const Flow* best = nullptr;
    for (const std::size_t i : incident_[piece]) {
      const Flow& flow = flows_[i];
      if (flow.from == piece || !known[flow.from]) continue;
      if (best == nullptr || flow.bytes > best->bytes) best = &flow;
    }
    return best != nullptr ? known[best->from] : std::nullopt;
  }

  std::optional<Rank> rank_of_user(std::size_t piece, const Known& known) const {
    const Flow* best = nullptr;
    std::optional<Rank> rank;
    for (const std::size_t i : incident_[piece]) {
      const Flow& flow = flows_[i];
      if (flow.from != piece || (best != nullptr && flow.bytes <= best->bytes)) continue;
      const auto user =
          std::find_if(flow.to.begin(), flow.to.end(), [&](std::size_t to) { return known[to].has_value(); });
      if (user == flow.to.end()) continue;
      best = &flow;
      rank = known[*user];
    }
    return rank;
  }

  std::size_t cost(std::span<const std::size_t> flows, const Ranks& ranks) const {
    return std::accumulate(flows.begin(), flows.end(), std::size_t{0},
                           [&](std::size_t sum, std::size_t i) { return sum + cost_of(flows_[i], ranks); });
  }

  // Moves `pieces`, which are on one worker and touch `flows`, to where they cost least.
  bool move(std::span<const std::size_t> pieces, std::span<const std::size_t> flows, Ranks& ranks) const {
    std::set<Rank> neighbours;
    for (const std::size_t i : flows) {
      neighbours.insert(ranks[flows_[i].from]);
      for (const std::size_t piece : flows_[i].to) neighbours.insert(ranks[piece]);
    }
    const auto put = [&](Rank rank) {
      for (const std::size_t piece : pieces) ranks[piece] = rank;
    };
    const Rank before = ranks[pieces[0]];
    Rank best = before;
    std::size_t least = cost(flows, ranks);
    for (const Rank rank : neighbours) {
      put(rank);
      const std::size_t bytes = cost(flows, ranks);
      if (bytes < least) {
        least = bytes;
        best = rank;
      }
    }
    put(best);
    return best != before;
  }

  bool move_pieces(Ranks& ranks) const {
    bool any = false;
    for (std::size_t piece = 0; piece < ranks.size(); ++piece)
      if (!fixed_[piece] && move({&piece, 1}, incident_[piece], ranks)) any = true;
    return any;
  }

  // Free pieces that hang together on one worker, and that one by one would cost more on the way.
  bool move_groups(Ranks& ranks) const {
    bool any = false;
    std::vector<bool> seen(ranks.size(), false);
    for (std::size_t piece = 0; piece < ranks.size(); ++piece) {
      if (fixed_[piece] || seen[piece]) continue;
      std::vector<std::size_t> group{piece};
      std::set<std::size_t> flows;
      seen[piece] = true;
      for (std::size_t next = 0; next < group.size(); ++next)
        for (const std::size_t i : incident_[group[next]])
          if (flows.insert(i).second) add_free(flows_[i], ranks, seen, group);
      const std::vector<std::size_t> touched(flows.begin(), flows.end());
      any = move(group, touched, ranks) || any;
    }
    return any;
  }

  // To `group`, the free pieces at `flow` that are where the group is.
  void add_free(const Flow& flow, const Ranks& ranks, std::vector<bool>& seen,
                std::vector<std::size_t>& group) const {
    const auto add = [&](std::size_t piece) {
      if (fixed_[piece] || seen[piece] || ranks[piece] != ranks[group[0]]) return;
      seen[piece] = true;
      group.push_back(piece);
    };
    add(flow.from);
    for (const std::size_t piece : flow.to) add(piece);
  }

  FixedRanks fixed_;
  std::span<const Flow> flows_;
  Rank otherwise_;
  std::vector<std::vector<std::size_t>> incident_;  // flows, by piece
};

}  // namespace

std::size_t transferred_bytes(std::span<const std::uint32_t> ranks, std::span<const Flow> flows) {
  const Ranks at(ranks.begin(), ranks.end());
  return std::accumulate(flows.begin(), flows.end(), std::size_t{0},
                         [&](std::size_t sum, const Flow& flow) { return sum + cost_of(flow, at); });
}

std::vector<std::uint32_t> fewest_bytes(std::span<const std::optional<std::uint32_t>> fixed,
                                        std::span<const Flow> flows, std::uint32_t otherwise) {
  const Search search(fixed, flows, otherwise);
  Ranks with_sources = search.run(false);
  Ranks with_users = search.run(true);
  return transferred_bytes(with_users, flows) < transferred_bytes(with_sources, flows) ? with_users
                                                                                       : with_sources;
}

}  // namespace muster::graph
