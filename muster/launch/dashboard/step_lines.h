// Step lines: one step across ranks, of what the workers keep in the folder of a run
// (muster/train/step_lines).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace muster::launch {

inline constexpr const char* timeline_folder = "timeline";

// {"step": 50, "begin_ns": "1700000000000000000", "length_ns": 1000, "hosts": ["a"], "ranks": [{"rank": 0,
// "host": "a", "begin": 0, "end": 1000, "phases": [["computing", 0, 1000]], "parts": [...], "calls":
// [["all_reduce", "9f", 7, 10, 20]]}]}: the newest step that all ranks with a file have, else the one that
// most have; all times in nanoseconds after the first of them. Null: there is none.
nlohmann::json step_across_ranks(const std::string& folder);

}  // namespace muster::launch
