// Activity of a process of the job, as its heartbeats report it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "muster/base/base.h"

namespace muster::cluster {

// What the process's main thread does. `script`: whatever the user's own code does.
enum class WorkPhase : std::uint8_t { starting, script, reading_data, computing, saving, evaluating };

struct Activity {
  WorkPhase phase = WorkPhase::starting;
  CallKind call = CallKind::none;  // with other workers, that some thread of the process is in
  // Of a collective call: its place among those of its group, 1 is the first. Of send and receive: the other
  // rank.
  std::uint64_t call_number = 0;
  // Counts whatever is finished beside steps: collective calls, batches of an evaluation.
  std::uint64_t finished = 0;
  std::uint64_t train_epoch = 0;  // 1 is the first; 0: not in Model.train or fit

  friend bool operator==(const Activity&, const Activity&) = default;
};

// "starting", "script", "reading_data", "computing", "saving", "evaluating": for programs.
std::string_view phase_name(WorkPhase phase);
// "in all_reduce 18", "waiting for a message from rank 1", "in data loading", "in the script".
std::string to_string(const Activity& activity);
// "rank 2", "ranks 0, 1, 3", "ranks 0-5, 9": of ascending numbers, the first of many.
std::string ranks_text(std::span<const std::uint32_t> ranks);

}  // namespace muster::cluster
