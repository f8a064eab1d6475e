// Agents on the other hosts of a job, from the first connection until the supervisor takes them over.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/launch/hosts/agent_crew.h"
#include "muster/launch/presets/preset.h"

namespace muster::launch {

class Agents {
 public:
  Agents(Agents&&) = default;
  Agents& operator=(Agents&&) = default;
  // Lets those that were not taken end by themselves for a moment: what they made there is gone then.
  ~Agents();

  // All at once; fails when one of them cannot be had, naming the host and what to do. To be called by a
  // process with one thread, and within `keep`: a signal may end the wait, and so does the keeper's end.
  static Result<Agents> connect(const std::vector<std::string>& hosts, const SshOptions& options,
                                int keeper_fd, const Clock& clock);

  // Free ports of each host that is asked, kept until its agent ends; none of the others.
  Result<std::vector<std::vector<std::uint16_t>>> reserve(const PortsWanted& wanted,
                                                          const std::vector<bool>& is_asked);
  // The folder for files on that host, which is there.
  const std::string& run_folder(std::size_t index) const { return crews_[index]->hello()->run_folder; }
  // For supervise(), which ends it.
  std::unique_ptr<Crew> take(std::size_t index) { return std::move(crews_[index]); }

 private:
  explicit Agents(const Clock& clock) : clock_(&clock) {}
  template <class Done>
  Result<> wait_until(const Done& is_done, std::string_view what);
  bool poll_once();
  Result<> losses() const;

  const Clock* clock_;  // borrowed
  std::vector<std::unique_ptr<AgentCrew>> crews_;
  int keeper_fd_ = -1;
};

// Whether the name is one of this host itself, where no agent is needed.
bool is_this_host(const std::string& name);

}  // namespace muster::launch
