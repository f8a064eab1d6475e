// The live roster of a job, for people and for programs: asked from its scheduler, or from PyTorch's ranks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/cluster/cluster.h"
#include "muster/net/net.h"

namespace muster::launch {

struct JobStatus {
  std::string scheduler = {};  // as it was asked for
  std::uint64_t job_id = 0;
  std::uint64_t epoch = 0;
  cluster::message::Status status = {};
};

// Where MS_SCHED_HOST and MS_SCHED_PORT say that the scheduler is, unless `given` ("host:port") does.
Result<net::HostPort> find_scheduler(const std::string& given, const Environment& environment);

// What protects the connections of a process with this environment; null: nothing.
Result<std::shared_ptr<const net::Security>> find_security(const Environment& environment);
// The same for who looks at a job from outside: where the environment says nothing, as a process of the job
// says that this user runs on this host, since `muster run` made a token for it.
Result<std::shared_ptr<const net::Security>> find_security(const Environment& environment,
                                                           const net::HostPort& scheduler);
// How a connection to a scheduler is made: it is met as what it is called, or as the scheduler.
net::ConnectionSecurity way_to_scheduler(const net::HostPort& scheduler,
                                         std::shared_ptr<const net::Security> security);

// Errors say what is wrong with the way there.
Result<JobStatus> ask_status(const net::HostPort& scheduler, std::shared_ptr<const net::Security> security,
                             const Clock& clock);

// Tells the scheduler that the worker of that node id has ended with status 0. A job that is still forming,
// and with which it never registered, fails by that.
Result<> tell_of_early_end(const net::HostPort& scheduler, std::shared_ptr<const net::Security> security,
                           const std::string& node_id, const Clock& clock);

// What the processes of a job do, from inside (stacks.cpp).
struct JobStacks {
  std::vector<cluster::message::ProcessStacks> processes = {};
  std::uint32_t left_out = 0;  // which were not asked
};
Result<JobStacks> ask_stacks(const net::HostPort& scheduler, std::shared_ptr<const net::Security> security,
                             const cluster::message::StacksRequest& request, const Clock& clock);
std::string stacks_text(const JobStacks& stacks);
std::string stacks_json(const JobStacks& stacks);

// "forming", ...: for programs.
std::string_view state_name(cluster::message::Status::State state);

// A table, and a line above that says how the job is.
std::string status_text(const JobStatus& status);
// "running, 2 of 2 workers, step 41 (epoch 3)": of a log that is followed, where a line means a change.
std::string status_line(const JobStatus& status);
// Without indentation it is one line.
std::string status_json(const JobStatus& status, bool is_indented = true);
// For Prometheus, text exposition format 0.0.4 (metrics.cpp). Nothing: the scheduler does not answer, which
// is a number as well (muster_up).
std::string metrics_text(const std::optional<JobStatus>& job);
// Whether nothing more comes of the job: its scheduler says so, or every worker has left.
bool is_over(const JobStatus& status);

// ---- Ranks of PyTorch jobs over Muster on this host -------------------------------------------------------
//
// There is no scheduler to ask: each rank answers for itself, on a local socket whose name tells its process
// and its rank (python/muster/torch/_state_desk.py).

struct TorchRank {
  pid_t process = 0;
  std::uint32_t rank = 0;  // in the whole job
  std::string answer;      // JSON; empty: it gave none in time
};

enum class TorchQuestion : std::uint8_t {
  show,    // what each rank is at
  dump,    // and it writes what PyTorch's flight recorder has first
  stacks,  // and its stacks
};
// Of this user's processes.
std::vector<TorchRank> find_torch_ranks(TorchQuestion question, const Clock& clock);

// A table for each job, which is named by its store; `master` ("host:port", as MASTER_ADDR and MASTER_PORT)
// chooses one, empty takes all. Fails where there is none.
Result<std::string> torch_status_text(const std::vector<TorchRank>& ranks, const std::string& master);
// {"jobs": [{"master": ..., "size": ..., "ranks": [...]}]}.
Result<std::string> torch_status_json(const std::vector<TorchRank>& ranks, const std::string& master);

}  // namespace muster::launch
