// Recorded calls of a group: what its flight recorder is told of collective calls and messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "muster/collective/call.h"
#include "muster/collective/collective.h"
#include "muster/telemetry/telemetry.h"

namespace muster::collective {

// Threads: as those of a Communicator's calls.
class RecordedCalls {
 public:
  // A null recorder: nothing is recorded.
  RecordedCalls(std::shared_ptr<telemetry::FlightRecorder> recorder, const Group& group);

  std::uint64_t begin(const Call& call);
  std::uint64_t begin_send(std::uint32_t to, std::size_t size_bytes);
  std::uint64_t begin_receive(std::uint32_t from, std::size_t size_bytes);
  // What one of these returned, and how that ended.
  void end(std::uint64_t record, const Result<>& done) {
    if (recorder_) recorder_->end(record, done ? std::nullopt : std::optional(done.error().code));
  }

 private:
  const std::shared_ptr<telemetry::FlightRecorder> recorder_;
  const std::uint64_t group_;
  // By rank; messages to one rank, and from one rank, come from one thread at a time.
  std::vector<std::uint64_t> sent_, received_;
};

}  // namespace muster::collective
