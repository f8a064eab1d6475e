// Rows at hand: what a worker has of the rows that a step looks up, without asking for them then: rows of its
// cache, and those that were asked for ahead. Private to server.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "muster/server/parameter_client.h"
#include "muster/server/row_cache.h"
#include "muster/server/rows_ahead.h"
#include "muster/server/sorted_ids.h"

namespace muster::server {

// The rows of one lookup, and where they come from.
struct SoughtRows {
  std::uint32_t table = 0;
  SortedIds ids;
  std::span<float> batch = {};  // where the rows go, by place of the batch
  std::uint64_t applied = 0;    // in all cached ones, which are there already
  bool asks_for_all = true;
  // Else: which of the ids the servers are asked for, the ids themselves, and where each server's begin.
  std::vector<std::uint32_t> places = {};
  std::vector<std::uint64_t> asked_ids = {};
  std::vector<std::size_t> begins = {};
  // Which ids were asked for ahead, and which ones of those they are.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ahead = {};

  std::span<const std::uint64_t> asked(std::uint32_t server) const {
    if (asks_for_all) return ids.ids(server);
    return std::span(asked_ids).subspan(begins[server], begins[server + 1] - begins[server]);
  }
  bool asks() const { return asks_for_all || !asked_ids.empty(); }
};

class RowsAtHand {
 public:
  // A row may be used where it lacks no more than `staleness` steps; nothing: in the step that pulled it.
  RowsAtHand(std::uint32_t servers, std::optional<std::uint64_t> staleness)
      : servers_(servers), staleness_(staleness) {}

  void add_table(std::size_t width, std::size_t cached_rows);
  // What is known is void: another generation begins.
  void clear();

  // Copies what is cached into the batch.
  SoughtRows seek(std::uint64_t step, std::uint32_t table, SortedIds ids, std::span<float> batch);
  // Whether what was asked for ahead of them is there.
  bool has_come(std::span<const SoughtRows> sought) const;
  struct Answer {
    std::span<const float> values = {};
    std::uint64_t applied = 0;
  };
  // What a server has answered, and what was asked for ahead; the latter returns what is applied in all rows
  // that were at hand.
  void take(std::uint64_t step, SoughtRows& sought, std::uint32_t server, const Answer& answer);
  std::uint64_t take_rest(std::uint64_t step, SoughtRows& sought);

  // ---- Asking ahead
  // Those that are not cached, or too old for the step.
  std::vector<std::uint64_t> lacking(std::uint64_t step, std::uint32_t table,
                                     std::span<const std::uint64_t> ids);
  void expect(std::uint64_t step, std::uint32_t table, SortedIds ids);
  // The step for which the table's rows were asked, if they were.
  std::optional<std::uint64_t> forget(std::uint32_t table);
  // Steps and tables of what was asked for and not used.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> forget_before(std::uint64_t step);
  std::map<std::uint32_t, RowsAhead>& ahead() { return ahead_; }
  bool expects() const;

  const ParameterClient::Counts& counts() const { return counts_; }

 private:
  // Of a row that is used in this step, and of those that may be.
  std::uint64_t stamp(std::uint64_t applied, std::uint64_t step) const { return staleness_ ? applied : step; }
  std::uint64_t least_stamp(std::uint64_t step) const {
    return step - std::min(step, staleness_.value_or(0));
  }

  std::uint32_t servers_;
  std::optional<std::uint64_t> staleness_;
  std::vector<std::size_t> widths_;           // by table
  std::vector<RowCache> caches_;              // by table
  std::map<std::uint32_t, RowsAhead> ahead_;  // by table
  ParameterClient::Counts counts_;
};

}  // namespace muster::server
