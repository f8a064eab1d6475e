// Observer desk: serves connections that ask for the status or measure the network, and take no part in the
// job.
#pragma once

#include <memory>

#include "muster/cluster/messages.h"
#include "muster/cluster/observers.h"
#include "muster/cluster/scheduler/stacks_desk.h"

namespace muster::cluster {

class Job;

class ObserverDesk {
 public:
  explicit ObserverDesk(Job& job) : stacks(job), job_(job) {}

  // Whether this was for an observer.
  bool serve(PeerId id, const Message& message);
  // It is gone, or no observer any more.
  void forget(PeerId id);
  // Lets go of answers that no observer will get any more.
  void check();

  StacksDesk stacks;

 private:
  void tell_status(PeerId id);
  void ended_early(const std::string& node_id);
  void tell_doctors();

  Job& job_;
  Observers observers_ = {};
  std::shared_ptr<const Message> status_ = {};  // as it was told last; null when that is a while ago
  TimePoint status_until_ = {};
};

}  // namespace muster::cluster
