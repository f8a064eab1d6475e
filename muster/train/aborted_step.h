// Private to train: end of a step of a recoverable loop in which a process is lost.
//
// The body is the user's and cannot be stopped in the middle. So its first collective call waits in the body
// until another process has taken the place of the lost one and makes the same step, and then ends with the
// right values. Where that cannot be (what the body had before it has changed, or something in it is each
// worker's own) the body is void: its calls return at once, with what they were given or with zeros,
// optimizers do nothing, and the loop goes back when the body is done.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "muster/base/base.h"
#include "muster/train/recovering_call.h"

namespace muster::train {

// A body begins behind `steps` steps. Main thread, as end_body().
void begin_body(RecoveringCall& call, std::uint64_t steps);
struct BodyEnd {
  bool is_aborted = false;
  std::optional<RecoveringCall::Start> start =
      {};  // of one that is void: where all go on, if they have agreed
};
BodyEnd end_body();

// Whether the body that runs now is void already: then nothing is sent. Any thread.
bool step_is_aborted();
// What the rest of a void body computes with, instead of what a call would have given: zeros. Nothing
// elsewhere.
void zero_if_aborted(std::span<std::byte> out);
inline std::span<std::byte> bytes_at(void* data, std::size_t size_bytes) {
  return {static_cast<std::byte*>(data), size_bytes};
}
// Success instead of an error that means a lost process, in a body, which is void from then on; and `done` as
// it is elsewhere. Any thread.
Result<> or_abort(Result<> done);

// A collective call of all workers, in a body or elsewhere. It may be made more than once.
Result<> call_in_body(const std::function<Result<>()>& make);
// Whether this thread is in a body, so that a call may be made again.
bool in_body();

}  // namespace muster::train
