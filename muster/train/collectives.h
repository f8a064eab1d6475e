// Collective calls of this worker with the others, in the epoch of the cluster that is in use.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "muster/base/base.h"
#include "muster/collective/collective.h"
#include "muster/train/membership.h"
#include "muster/train/worker_groups.h"

namespace muster::train {

// A call that is lost with its epoch is not made again here: see SessionRecovery::explicit_collective.
//
// Threads: main, and those of a plan that goes on beside it.
class Collectives {
 public:
  // Borrowed.
  Collectives(const Membership& membership, WorkerGroups& groups)
      : membership_(membership), groups_(groups) {}
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  // All workers; connected at the latest by the first call, to which all workers come.
  Result<Communicator*> communicator() { return groups_.communicator(); }
  // The workers that do the same stage of each copy of a placed network, numbered by their copies. The first
  // call in an epoch, and the first for another number of stages, is a collective one of all workers.
  Result<Communicator*> stage_group(std::uint32_t stages) { return groups_.stage_group(stages); }

  using GroupCall = std::function<Result<>(Communicator&)>;
  // One collective call of all workers, or of those of a stage group; its error says what
  // Membership::verdict() does.
  Result<> call(std::optional<std::uint32_t> stages, const GroupCall& make);
  Result<> call_all(const GroupCall& make) { return call({}, make); }

  // Whether other workers of the group are on this host, and this process may share memory with them; false
  // for a stage group that is not formed.
  bool shares_memory(std::optional<std::uint32_t> stages = {}) const;
  // Memory that makes reductions of it cheaper in this epoch, over all workers or those of a stage group.
  Result<std::shared_ptr<std::byte>> shared_buffer(std::size_t size_bytes,
                                                   std::optional<std::uint32_t> stages);

 private:
  Result<> call_now(std::optional<std::uint32_t> stages, const GroupCall& make);
  Result<Communicator*> group(std::optional<std::uint32_t> stages);
  bool stage_shares_memory(std::uint32_t stages) const;

  const Membership& membership_;
  WorkerGroups& groups_;
};

}  // namespace muster::train
