#include "muster/train/pipeline_group.h"

#include <algorithm>
#include <utility>

#include "muster/train/aborted_step.h"

namespace muster::train {

Result<> PipelineGroup::explained(Result<> done) const {
  if (done || !verdict_) return done;
  return fail(verdict_(std::move(done).error()));
}

Result<> PipelineGroup::send(std::uint32_t to, SentPieces pieces) {
  if (step_is_aborted()) return {};
  return or_abort(explained(
      source_().and_then([&](Communicator* group) { return group->send(range_.first + to, pieces); })));
}

Result<> PipelineGroup::receive(std::uint32_t from, ReceivedPieces pieces) {
  if (!step_is_aborted())
    MUSTER_TRY_VOID(or_abort(explained(source_().and_then(
        [&](Communicator* group) { return group->receive(range_.first + from, pieces); }))));
  // What the rest of a void step computes with.
  if (step_is_aborted())
    for (const std::span<std::byte> piece : pieces) std::fill(piece.begin(), piece.end(), std::byte{0});
  return {};
}

}  // namespace muster::train
