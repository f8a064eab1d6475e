// Ledger: what the job has come to, most of which its recovery log says as well. A plain value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "muster/cluster/messages.h"

namespace muster::cluster {

struct Ledger {
  std::uint64_t job_id = 0;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 1;                    // the newest that has begun; while recovering, the lost one
  std::uint64_t epoch_min = 0;                // of the next one
  bool is_recorded = true;                    // whose job it is; nothing else before that
  std::shared_ptr<const Roster> roster = {};  // of that epoch; null: not known
  std::shared_ptr<const Message> roster_ready = {};  // which says it
  std::uint32_t workers_left = 0;
  std::optional<std::uint32_t> left_in_epoch = {};  // a worker that the roster still has as one who is there
  std::uint64_t finished_calls = 0;
  bool has_points = false;                   // some worker, of this job
  std::vector<std::uint64_t> given_up = {};  // jobs whose points were found
  std::optional<Failure> failure = {};       // by which the job ended

  std::uint64_t next_epoch() const { return std::max(epoch + 1, epoch_min); }
};

}  // namespace muster::cluster
