// Retention rule: the recovery points that a worker may remove, a function of what it holds and of what all
// workers are known to hold.
//
// What is kept: the newest `keep_steps` step points and the newest start; of ends the newest of each set of
// tensors that all workers have kept, and the newest `keep_steps` that they have not; and, whatever their
// age, the point that all workers are known to hold or, while none is known, the oldest point and the oldest
// step of the calls that are not finished. Points behind the saved one belong to a future that the job has
// lost by going back; they are kept by the same rule until all hold a point before it. So a worker keeps at
// most two times these numbers, whatever the others do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/checkpoint/point.h"
#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

struct StoredPoint {
  std::uint64_t signature = 0;  // of its tensors
  bool is_shared = false;
};
using StoredPoints = std::map<PointId, StoredPoint>;

// What all workers are known to hold.
struct Common {
  std::optional<PointId> point = {};
  std::uint64_t finished_calls = 0;  // their ends

  friend bool operator==(const Common&, const Common&) = default;
};

// What is not needed after `saved` has been saved, oldest first.
std::vector<PointId> needless(const StoredPoints& held, const PointId& saved, const Common& common,
                              std::size_t keep_steps);

// As a small file (docs/formats/recovery-point.md), so that a worker that comes back removes no more than the
// one before it would have. Nothing where there is none, or none that is whole.
std::optional<Common> read_common(const std::string& path, const Storage& storage);
Result<> write_common(const std::string& path, const Common& common, Storage& storage);

}  // namespace muster::checkpoint
