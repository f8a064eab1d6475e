// The values that the cluster hands out: who takes part, and why a job ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::cluster {

enum class Role : std::uint8_t { scheduler, worker, server };

// "scheduler", "worker", "server".
std::string_view to_string(Role role);

// One process of the job, as every other process knows it.
struct Member {
  Role role = Role::worker;
  std::string node_id = {};
  std::uint32_t rank = 0;     // among the members of its role
  std::string host_key = {};  // equal for processes that share memory; see host_of
  std::string address = {};   // where its data port is reached
  std::uint16_t data_port = 0;
  std::string local_name = {};     // where processes of its host reach it
  std::int32_t pid = 0;            // in the process space below
  std::string process_space = {};  // equal for processes whose pids mean the same
  std::string host_name = {};      // of its machine; a certificate may be for it
  std::uint64_t cores_key = 0;     // equal where the host may run processes on the same cores (base/cores.h)
  // Drawn when the process starts: tells it from others of its node id. Every member knows it, so it opens
  // nothing (process_key.h).
  std::uint64_t incarnation = 0;
  bool is_named = false;  // its node id is from MS_NODE_ID, not made by Muster
  bool has_left = false;  // it was done before this epoch began; it cannot be reached

  friend bool operator==(const Member&, const Member&) = default;
};

// The host of a member: its host key without what makes it unique under MUSTER_TRANSPORT=tcp. For local
// ranks.
inline std::string_view host_of(const Member& member) {
  return std::string_view(member.host_key).substr(0, member.host_key.find('#'));
}

// Whether a pid of one means the same process to the other. What is not known is not the same.
inline bool shares_pids(std::string_view process_space, std::string_view other) {
  return !process_space.empty() && process_space == other;
}

// Who takes part. The same value in every process of the job.
struct Roster {
  std::uint64_t epoch = 0;
  std::uint64_t job_id = 0;
  std::uint64_t seed = 0;  // for the job's random numbers
  std::vector<Member> workers = {};
  std::vector<Member> servers = {};
  bool recovers = false;  // a lost process ends the epoch, not the job
  // The most that any process of the job has finished: every process has their end state on disk.
  std::uint64_t finished_calls = 0;
  // The most that any process that lived on from the epoch before has finished.
  std::uint64_t finished_collectives = 0;

  friend bool operator==(const Roster&, const Roster&) = default;
};

// How many workers run on the cores of this one, itself among them. Those of a host share its cores, unless
// each was given its own.
std::uint32_t workers_on_cores_of(const Member& worker, const Roster& roster);

// What a process has behind it: numbered calls of train, fit and eval, hand-made collectives, whether it
// holds a recovery point of the job, and of how many calls its own folder has the ends.
struct Progress {
  std::uint64_t calls = 0;
  std::uint64_t collectives = 0;
  bool has_point = false;
  std::uint64_t kept_calls = 0;

  friend bool operator==(const Progress&, const Progress&) = default;
};

// Where the data plane of a process is reached.
struct DataEndpoint {
  std::uint16_t port = 0;
  std::string local_name = {};

  friend bool operator==(const DataEndpoint&, const DataEndpoint&) = default;
};

// One fact of a process that should be the same in every process of the job: see fingerprint.h.
struct Trait {
  std::string key = {};
  std::string value = {};

  friend bool operator==(const Trait&, const Trait&) = default;
};
using Traits = std::vector<Trait>;

// How a process ended, as waitpid() tells it, where it is known.
using WaitStatus = std::optional<std::int32_t>;
// "it was killed by signal 9 (KILL)", "it ended with exit code 3 and without a word".
std::string how_it_ended(const WaitStatus& status);

// Exit codes of processes that end for the cluster's sake (sysexits.h where it has a fitting one).
inline constexpr int exit_code_peer_lost = 69;      // a process of the job is gone
inline constexpr int exit_code_timeout = 75;        // a deadline passed
inline constexpr int exit_code_refused = 77;        // the scheduler said no
inline constexpr int exit_code_configuration = 78;  // a variable cannot be used
inline constexpr int exit_code_interrupted = 130;   // as a shell reports Ctrl-C

// Why the job ended, ready to print. `exit_code` is for processes that end because of it.
struct Failure {
  Code code = Code::internal;
  std::string message = {};
  int exit_code = 1;

  friend bool operator==(const Failure&, const Failure&) = default;
};

// An error that ends this process, with the exit code for its kind.
Failure failure_from(const Error& error);

}  // namespace muster::cluster
