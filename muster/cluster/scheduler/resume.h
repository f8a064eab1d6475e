// A scheduler that was started again: it goes on where its recovery log ends.
#pragma once

namespace muster::cluster {

class Job;
struct SavedJob;

// No process is connected yet. A job that had ended by a failure has told its processes so: all seats are
// vacant. Otherwise they may all live, and come back.
void resume(Job& job, const SavedJob& saved);

}  // namespace muster::cluster
