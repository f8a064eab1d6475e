// History of a job, as its scheduler's answers tell it: curves, and events for a time line. A pure value: an
// answer and the time in, what is new out.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/launch/status.h"

namespace muster::launch {

// What curves show of one moment; nothing where it is not known.
struct JobPoint {
  double time = 0;                             // seconds since 1970
  std::optional<std::uint64_t> step = {};      // the newest of all workers
  std::optional<double> loss = {};             // mean over the workers that have one
  std::optional<double> learning_rate = {};    // of the first worker that has one
  std::optional<double> step_seconds = {};     // median of the workers
  std::optional<double> samples = {};          // a second, all workers together
  std::optional<double> memory_bytes = {};     // of the worker with the most
  std::map<std::string, double> metrics = {};  // of the last evaluation, of the first worker that has one
};
JobPoint point_of(const JobStatus& job, double time);

struct JobEvent {
  // formed, recovering, lost, back, left, slow, not_slow, saved, evaluated, warning, error, asked, ended
  std::string kind;
  double time = 0;
  std::string process = {};  // "worker 3"; empty: the whole job
  std::string text = {};     // for people
};

// Seconds since 1970 that never fall, of a clock that may be set back: who goes by them loses nothing until
// that clock is again where it was.
class RisingTime {
 public:
  double at(double wall_seconds);

 private:
  double last_ = 0;
  double shift_ = 0;
};

class JobHistory {
 public:
  static constexpr std::size_t points_max = 1200;
  static constexpr std::size_t events_max = 500;

  // What has happened since the answer before.
  std::vector<JobEvent> add(const JobStatus& job, double time);
  void add(const JobEvent& event);
  void add(const JobPoint& point);
  // Whether a process has just said the same: what concerns the job, all of them say.
  bool has_late(const JobEvent& event) const;

  // Thinned out where a job lasts: over the whole time, evenly.
  const std::vector<JobPoint>& points() const { return points_; }
  const std::deque<JobEvent>& events() const { return events_; }

 private:
  struct Process {
    bool is_there = false;
    bool has_left = false;
    std::int32_t pid = 0;
    std::uint64_t saving_us = 0;
    std::string evaluation = {};
  };

  void look_at_state(const JobStatus& job, double time, std::vector<JobEvent>& news);
  void look_at_process(const cluster::message::Status::Node& node, double time, std::vector<JobEvent>& news);
  void look_for_lost(const JobStatus& job, double time, std::vector<JobEvent>& news);
  void look_at_slow(const JobStatus& job, double time, std::vector<JobEvent>& news);

  std::vector<JobPoint> points_;
  double interval_ = 0;  // between points, at least
  std::deque<JobEvent> events_;
  std::optional<cluster::message::Status::State> state_;
  std::uint64_t epoch_ = 0;
  std::map<std::string, Process> processes_;
  std::map<std::uint32_t, std::string> slow_;  // its cause
  double saved_told_at_ = 0;
};

}  // namespace muster::launch
