// Activity of a process of the job, as its heartbeats report it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "muster/base/base.h"

namespace muster::cluster {

// What the process's main thread does. `script`: whatever the user's own code does. `serving`: all that a
// parameter server does.
enum class WorkPhase : std::uint8_t {
  starting,
  script,
  reading_data,
  computing,
  saving,
  evaluating,
  serving
};
inline constexpr WorkPhase work_phases[] = {WorkPhase::starting,  WorkPhase::script, WorkPhase::reading_data,
                                            WorkPhase::computing, WorkPhase::saving, WorkPhase::evaluating,
                                            WorkPhase::serving};

// Processes of the other role that one waits for: the first of them and how many; 0: none.
struct Awaited {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  friend bool operator==(const Awaited&, const Awaited&) = default;
};

// What a parameter server has of all tables.
struct Serving {
  std::uint64_t rows = 0;        // that are kept
  std::uint64_t size_bytes = 0;  // of these rows with their optimizers' state
  std::uint64_t updates = 0;     // steps that are applied, of all optimizers
  std::uint32_t waiting = 0;     // workers that wait here for the next one
  friend bool operator==(const Serving&, const Serving&) = default;
};

struct Activity {
  WorkPhase phase = WorkPhase::starting;
  CallKind call = CallKind::none;  // with other workers, that some thread of the process is in
  // Of a collective call: its place among those of its group, 1 is the first. Of send and receive: the other
  // rank.
  std::uint64_t call_number = 0;
  // Counts whatever is finished beside steps: collective calls, batches of an evaluation.
  std::uint64_t finished = 0;
  std::uint64_t train_epoch = 0;  // 1 is the first; 0: not in Model.train or fit
  // Of a worker, parameter servers whose answer it waits for; of a server on which workers wait, those whose
  // gradients are missing.
  Awaited awaited = {};
  Serving serving = {};  // of a server

  friend bool operator==(const Activity&, const Activity&) = default;
};

// "starting", "script", "reading_data", "computing", "saving", "evaluating", "serving": for programs.
std::string_view phase_name(WorkPhase phase);
// Whether it can only go on when another process does something.
bool waits(const Activity& activity);
// "in all_reduce 18", "waiting for a message from rank 1", "waiting for parameter server 0 and 1 more", "in
// data loading", "in the script", "serving 40000 rows, 12.4 MiB; 2 workers wait for rank 1".
std::string to_string(const Activity& activity);
// "rank 2", "ranks 0, 1, 3", "ranks 0-5, 9": of ascending numbers, the first of many.
std::string ranks_text(std::span<const std::uint32_t> ranks);

}  // namespace muster::cluster
