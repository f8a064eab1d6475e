// Comparison of the workers' parameters: workers that train together hold equal ones after the same step, and
// drift apart without a word where gradients are not reduced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/cluster/parameter_report.h"

namespace muster::cluster {

class Job;
struct Peer;

class ParameterCheck {
 public:
  explicit ParameterCheck(Job& job) : job_(job) {}

  // Steps of the epoch before may be made again.
  void begin_epoch() { rows_.clear(); }
  // The first difference is told to all, once in a job; under MUSTER_STRICT it ends the job.
  void note(const Peer& peer, const ParameterReport& report);

 private:
  struct Difference {
    std::uint32_t ranks[2] = {};
    std::size_t index = 0;  // of the first hash that differs
    bool reduces = false;
  };
  struct Row {
    std::uint32_t rank = 0;  // whose hashes these are
    std::vector<std::uint32_t> hashes;
    std::vector<std::string> names = {};  // empty before rank 0 has said them
    std::optional<Difference> difference = {};
  };

  void compare(Row& row, const Peer& peer, const ParameterReport& report) const;
  void tell(const Row& row, std::uint64_t step);

  Job& job_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Row> rows_;  // by series and step
  bool has_told_ = false;
};

}  // namespace muster::cluster
