// The main function of a C++ training program.
#pragma once

#include <cstdint>
#include <functional>

namespace muster::train {

// Forms the job that the environment describes (MS_ROLE and the others: docs/guide/cluster.md) and runs
// `body` in each of its workers; the scheduler and servers do their work in here. Without MS_ROLE the process
// trains alone. The answer is the status for main(): 0, or that of the error, which is printed.
//
//   int main() { return muster::train::run([] { ... }); }
int run(const std::function<void()>& body);

// The place of this worker in the job, and how many workers there are: 0 and 1 in a process alone.
std::uint32_t rank();
std::uint32_t world_size();

}  // namespace muster::train
