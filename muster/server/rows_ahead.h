// Rows ahead: rows of a table that a worker has asked for ahead of the step that looks them up. Private to
// server.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/server/protocol.h"
#include "muster/server/sorted_ids.h"
#include "muster/server/wire.h"

namespace muster::server {

// The body of Rows at a worker.
struct ArrivedRows {
  Batch batch = {};
};

class RowsAhead {
 public:
  RowsAhead(std::uint64_t step, SortedIds ids, std::size_t width)
      : step_(step), ids_(std::move(ids)), width_(width) {}

  std::uint64_t step() const { return step_; }
  const SortedIds& ids() const { return ids_; }
  // Which one of the ids an id of this server is; `from`, 0 at first, makes a search of ascending ids short.
  std::optional<std::uint32_t> find(std::uint32_t server, std::uint64_t id, std::size_t& from) const;

  // What the servers have answered, by server. Code::corrupt where that is something else.
  Result<> arrive(std::vector<Rows> rows);
  bool has_come() const { return !arrived_.empty(); }
  // Steps before this one are in all of the rows.
  std::uint64_t applied() const;
  const float* row(std::uint32_t which) const { return rows_[which]; }

 private:
  Result<> arrive_from(std::uint32_t server, const Rows& rows);

  std::uint64_t step_;
  SortedIds ids_;
  std::size_t width_;
  std::vector<Rows> arrived_;
  std::vector<const float*> rows_;  // in arrived_
};

}  // namespace muster::server
