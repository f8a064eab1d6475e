// Stacks desk: asks processes of the job for their stacks, for observers and when the job is stuck.
#pragma once

#include <map>
#include <set>

#include "muster/cluster/messages.h"

namespace muster::cluster {

class Job;
struct Peer;

class StacksDesk {
 public:
  explicit StacksDesk(Job& job) : job_(job) {}

  // Each process gets an answer or a problem, in a few seconds; then the observer's connection ends.
  void ask(PeerId observer, const message::StacksRequest& request);
  void answered(PeerId id, const message::Stacks& stacks);
  // The connection of an observer, or of a process, is gone.
  void forget(PeerId id);
  void check();
  // All workers keep theirs in the folder of the run.
  void keep_all();

 private:
  struct Asking {
    TimePoint until = {};
    std::set<PeerId> awaited = {};
    std::uint32_t left_out = 0;
  };

  void turn_away(PeerId observer, const std::string& reason);
  void tell(PeerId observer, const Peer& peer, const std::string& problem, const std::string& text = {});
  void settle(PeerId id, const std::string& problem, const std::string& text = {});
  void end_if_done(PeerId observer);

  Job& job_;
  std::map<PeerId, Asking> askings_ = {};  // by the observer
};

}  // namespace muster::cluster
