// Record of what the workers of a simulated job have reported as durable and no disk has lost since, and what
// must hold of it whatever happens (docs/adr/0022-nothing-is-lost.md). Nothing in here asks the code under
// test.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint.h"

namespace muster::train::sim {

using checkpoint::PointId;

class Book {
 public:
  using Broken = std::function<void(std::string what)>;
  Book(std::uint32_t worker_num, std::size_t names_max, Broken broken)
      : ranks_(worker_num), names_max_(names_max), broken_(std::move(broken)) {}

  // ---- What the workers report
  void kept(std::size_t rank, const PointId& id, bool is_shared);
  // It has the end of the call, which a process may have written that died before it said so.
  void has_end(std::size_t rank, std::uint64_t call, bool is_shared) {
    ranks_[rank].ends_ever[call] = is_shared;
  }

  // ---- What happens to disks, and is nobody's fault
  void lost_all(std::size_t rank) { ranks_[rank] = {.ends_ever = ranks_[rank].ends_ever}; }
  // A byte of it has changed, and nobody knows.
  void lost_point(std::size_t rank, const PointId& id) {
    ranks_[rank].points.erase(id);
    ranks_[rank].damaged.insert(id);
  }
  void lost_records(std::size_t rank) { ranks_[rank].records = 0; }

  // ---- What must hold
  // The last usable point of an unfinished job is deleted by nobody but the user, the records of its ends
  // neither; what a worker has on its disk does not grow without bound. `names`: what is in its folder;
  // `records`: of how many calls, as its journal there says; `common`: what it knows that all have.
  void look(std::size_t rank, const std::vector<std::string>& names, std::uint64_t records,
            const std::optional<PointId>& common);
  // Nobody goes back further than the newest point that all who are needed have. `floor`: what that was at
  // the least while they agreed.
  void goes_to(const PointId& id, const std::optional<PointId>& floor);
  // A call counts as finished only when all have kept its end, or another one has it for them.
  void expect_finished(std::uint64_t calls) const;

  // The newest point from which all can go on. `can_read`: by rank, whether its disk counts.
  std::optional<PointId> newest_usable(const std::vector<bool>& can_read) const;
  // As many calls count as finished: their ends can be had of others.
  void set_finished(std::uint64_t calls) { finished_ = calls; }
  bool has_anything(std::size_t rank) const {
    return !ranks_[rank].points.empty() || ranks_[rank].records > 0;
  }
  std::uint64_t records(std::size_t rank) const { return ranks_[rank].records; }
  // Whether all of so many calls can be told to the script by this worker alone.
  bool has_all_ends(std::size_t rank, std::uint64_t calls) const;

 private:
  struct Rank {
    std::map<PointId, bool> points = {};  // to whether others can go on from it
    std::uint64_t records = 0;            // of the ends of calls
    std::map<std::uint64_t, bool> ends_ever = {};
    std::set<PointId> damaged = {};
  };
  bool is_damaged(const PointId& id) const;
  bool has(std::size_t rank, const PointId& id) const;
  bool gives(std::size_t rank, const PointId& id) const;
  bool is_usable(const PointId& id, const std::vector<bool>& can_read) const;

  std::vector<Rank> ranks_;
  std::size_t names_max_;
  std::uint64_t finished_ = 0;
  Broken broken_;
};

}  // namespace muster::train::sim
