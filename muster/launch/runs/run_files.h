// Files of a run's folder, as they are read: by `muster runs`, after the job or beside it. Whatever is in
// them, reading them does no harm: texts are printable, and a damaged line is left out.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/dashboard/job_history.h"

namespace muster::launch {

inline constexpr const char* training_name = "training.json";  // of rank 0: muster/train/flight.cpp

struct RunFiles {
  std::string folder = {};
  std::string name = {};              // the last part of `folder`
  nlohmann::json description = {};    // run.json
  nlohmann::json repository = {};     // null: nothing is known of it
  nlohmann::json training = {};       // of rank 0: its seed, and at its end its last point; null: nothing
  nlohmann::json last_state = {};     // null: nothing was seen of the job
  nlohmann::json end = {};            // null: its launcher has not said how it ended
  std::optional<bool> runs = {};      // nothing: the file system cannot tell
  std::vector<JobPoint> points = {};  // of the history, or of the metrics file, which has each step
  std::vector<JobEvent> events = {};

  std::string state() const;  // "done", "failed (1)", "interrupted", "running", "recovering", "cut off"
  double began() const;       // seconds since 1970; 0: not known
  std::optional<double> seconds(double now) const;
  JobPoint last_point() const;
  std::optional<double> last_step() const;
  std::optional<double> last_loss() const;
};

enum class RunDepth {
  summary,  // without points and events
  whole,
};
// Fails where the folder has no run.json that can be read.
Result<RunFiles> read_run(const std::string& folder, RunDepth depth);

// The folder itself, or that of the name in `muster-logs`. Fails where neither is a run's.
Result<std::string> find_run(const std::string& name);

// To be read; what is no file of bytes, as a pipe that may never end, cannot be.
std::ifstream file_of_bytes(const std::string& path);
// A member of an object; null: there is none, or `object` is none.
nlohmann::json member(const nlohmann::json& object, const char* name);
// Its text or number, for people; empty: there is none.
std::string member_text(const nlohmann::json& object, const char* name);

}  // namespace muster::launch
