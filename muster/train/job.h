// The job that this process is a part of: formed by init(), left when the process ends.
//
// How a process leaves: `done` when it exits with status 0, `failed` with any other status, `dead` when it
// ends without a word. init() registers an exit handler that tells the scheduler which; note_reason() says
// why beforehand. When the job fails, the next Muster call returns the reason, and a process that has not
// ended one second later is ended with the failure's exit code, its streams flushed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/cluster/cluster.h"
#include "muster/collective/collective.h"

namespace muster::train {

using cluster::Failure;
using cluster::Role;

struct InitOptions {
  cluster::Interrupted interrupted;  // asked about every 100 ms while init() blocks; true ends it
};

// Forms the cluster that `environment` describes, and waits for all of it. In a worker it returns when the
// job can start. In the scheduler and in servers it returns when the job has ended well. A second call
// returns the role at once. Where no MS_* variable is set, and in a process that `muster explain` has
// started, it forms no cluster: the process is rank 0 of 1, opens no socket, and everything works as in a
// job.
Result<Role, Failure> init(const Environment& environment = real_environment(),
                           const InitOptions& options = {});

// Forms the job that the environment describes (MS_ROLE and the others: docs/guide/cluster.md) and runs
// `body` in each of its workers; the scheduler and servers do their work in here. Without MS_* variables the
// process trains alone. The answer is the status for main(): 0, or that of the error, which is printed.
//
//   int main() { return muster::train::run([] { ... }); }
int run(const std::function<void()>& body);

// The rank of this worker, the world size, and the same among the workers of this host. An error before
// init().
Result<std::uint32_t> get_rank();
Result<std::uint32_t> get_group_size();
Result<std::uint32_t> get_local_rank();
Result<std::uint32_t> get_local_rank_size();

// The ranks of this host's workers, in their order.
Result<std::vector<std::uint32_t>> workers_here();

// Rank and world size for those who need not know whether there is a job: 0 and 1 in a process alone.
std::uint32_t rank();
std::uint32_t world_size();

// Groups of some workers, by name; their own ranks count from 0 in the order of `ranks`, which are those of
// the job. Who is not in a group need not know of it. The members connect at their first call together. The
// same name and ranks again change nothing. "" is the group of all workers. Refused in a job whose processes
// may come back, unless it is `of_steps`: of trainings alone, which go back to a point when one is lost; and
// for a worker that is none of the ranks.
Result<> create_group(const std::string& name, std::vector<std::uint32_t> ranks, bool of_steps = false);
// Its calls are over; an error for a name that is none.
Result<> destroy_group(const std::string& name);
Result<std::vector<std::uint32_t>> group_ranks(const std::string& name);

// A call under way: what it was given is borrowed until it is done.
struct StartedCall {
  std::shared_ptr<const collective::Work> work;
  std::string group;
  // Its end, waited for at most so long; what fails names the group.
  std::optional<Result<>> wait(Duration limit) const;
};
// Behind the calls of the group that were made or started before.
Result<StartedCall> start_call(const std::string& group, collective::AsyncGroup::Call call);
// `peer` is a rank of the group.
Result<StartedCall> start_send(const std::string& group, std::uint32_t peer, std::span<const std::byte> bytes,
                               std::int64_t tag);
Result<StartedCall> start_receive(const std::string& group, std::uint32_t peer, std::span<std::byte> bytes,
                                  std::int64_t tag);

// Why the job has failed, once it has. Any thread.
std::optional<Failure> job_failure();
// Whether lost processes of the job may come back (MS_ENABLE_RECOVERY). Without a job: no.
bool job_recovers();
// Why this process is about to fail, e.g. an uncaught exception; the exit handler passes it on.
void note_reason(const std::string& reason);
// Tells the scheduler that this process ends, before its exit handler does. Bounded; without a job nothing.
void leave_job(int exit_status);

// The seed of everything random: what set_seed() chose, else the job's, else one drawn for this process.
std::uint64_t seed();
void set_seed(std::uint64_t seed);

// Threads for kernels: OMP_NUM_THREADS where the user chose, else the cores that this process may use, shared
// with the workers that run on the same ones.
int threads();

}  // namespace muster::train
