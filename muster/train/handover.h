// A recovery point, or the end of a call, from one worker's memory or disk to another worker: what lies in
// the point's files goes over the data plane, and everything is under a hash as it is there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/base/base.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/train/recovery.h"
#include "muster/train/snapshot_memory.h"

namespace muster::train {

struct Handover {
  std::optional<checkpoint::Point> point = {};
  std::optional<std::string> result = {};  // of a call that is over
};

// The other side calls receive_handover(). Nothing in it says that this worker has it not after all.
Result<> send_handover(const Handover& given, std::uint32_t to, Recovery& recovery);
// Its tensors lie in `memory`. Limits hold before any is taken. An error (corrupt) names what does not fit
// its hash.
Result<Handover> receive_handover(std::uint32_t from, Recovery& recovery, SnapshotMemory& memory);

}  // namespace muster::train
