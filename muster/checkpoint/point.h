// Recovery point: the state from which one worker resumes.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/checkpoint/format.h"

namespace muster::checkpoint {

// Calls of train, fit and eval are numbered from 0 in the order of the script. Points are ordered as a job
// passes them: the start of a call, its steps, its end.
struct PointId {
  enum class Moment : std::uint8_t { start, step, end };

  std::uint64_t call = 0;
  Moment moment = Moment::start;
  std::uint64_t step = 0;  // of a step point: the steps of the call that are done

  friend auto operator<=>(const PointId&, const PointId&) = default;
};

// "start of call 0", "step 300 of call 0", "end of call 0".
std::string to_string(const PointId& id);
// "start", "step", "end".
std::string_view to_string(PointId::Moment moment);

// The name of its folder: "call_0.start", "call_0.step_300", "call_0.end".
std::string folder_name(const PointId& id);
// Nothing of any other name.
std::optional<PointId> point_of_folder(std::string_view name);

struct Point {
  PointId id = {};
  // Names are unique and not empty. A caller that saves in the background hands over tensors that are not
  // written to any more.
  std::vector<Entry> tensors = {};
  // Named sections of any bytes, JSON by convention: "training", "callback 0 ModelCheckpoint".
  std::map<std::string, std::string> state = {};
  // Another worker of the same part of the network may go on from it: nothing in it is this worker's own.
  bool is_shared = false;
  // What in it is this worker's own, for people; empty if it is shared.
  std::string own = {};
};

// Of tensors and sections, without heads and manifest.
std::size_t size_bytes(const Point& point);

}  // namespace muster::checkpoint
