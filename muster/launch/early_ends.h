// Early ends: workers that ended with status 0 while others of their job run on. One that never called init()
// would be waited for until MS_TOPO_TIMEOUT; only its launcher sees that it has ended, and tells the
// scheduler, which knows who has registered. Programs that have no scheduler are let be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/launch_spec.h"

namespace muster::launch {

class EarlyEnds {
 public:
  // `token` lets itself be heard by the scheduler; empty: as the environment of the process says.
  EarlyEnds(std::string token, const Clock& clock) : token_(std::move(token)), clock_(clock) {}

  // `spec` is borrowed. Only workers with a node id can be told of.
  void note(const ProcessSpec& spec);
  // When to tell: where a job ends well, all of it ends within a moment.
  std::optional<TimePoint> due() const { return due_; }
  // In a process of its own, which tries until it was heard, or until this one ends.
  void tell();
  // The same for a launcher that ends with its last worker, and leaves a job on other hosts: it tries for so
  // long. Where the job has ended well, no other launcher is there any more.
  void tell_before_end(Duration limit);

 private:
  std::string token_;
  const Clock& clock_;
  std::vector<const ProcessSpec*> ended_ = {};
  std::optional<TimePoint> due_ = {};
};

}  // namespace muster::launch
