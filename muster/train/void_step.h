// Private to train: what happens in the body of a recoverable loop when a process is lost.
//
// The body is the user's and cannot be stopped in the middle. So its collective calls return at once, with
// what they were given or with zeros, optimizers do nothing, and the loop goes back when the body is done.
#pragma once

#include "muster/base/base.h"
#include "muster/train/recovery.h"

namespace muster::train {

// A body begins; calls within it may void it. Main thread, as end_body().
void begin_body(Recovery& recovery);
// Whether it was void.
bool end_body();

// Whether the body that runs now is void already: then nothing is sent. Any thread.
bool step_is_void();
// Success instead of an error that means a lost process, in a body, which is void from then on; and `done` as
// it is elsewhere. Any thread.
Result<> or_void(Result<> done);

}  // namespace muster::train
