// The live roster of a job, asked from its scheduler, for people and for programs.
#pragma once

#include <memory>
#include <string>

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

// A table, and a line above that says how the job is.
std::string status_text(const JobStatus& status);
// "running, 2 of 2 workers, step 41 (epoch 3)": of a log that is followed, where a line means a change.
std::string status_line(const JobStatus& status);
// Without indentation it is one line.
std::string status_json(const JobStatus& status, bool is_indented = true);
// Whether nothing more comes of the job: its scheduler says so, or every worker has left.
bool is_over(const JobStatus& status);

}  // namespace muster::launch
