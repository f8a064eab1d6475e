// Membership report of a process to a scheduler that has lost its log: the job that it is a member of, or the
// unfinished jobs whose recovery points it has found. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::cluster {

// A job with recovery points below a worker's MS_RECOVERY_PATH.
struct FoundJob {
  std::uint64_t job_id = 0;
  std::uint32_t worker_num = 0;
  std::optional<std::uint64_t> seed = {};  // nothing: it was not kept
  std::uint64_t finished_calls = 0;        // whose ends all ranks below have kept; 0: unknown
  std::uint64_t epoch = 0;                 // the newest in which a process has taken one of the folders
  bool is_done = false;                    // the ranks below need nothing of it any more
  bool is_in_use = false;                  // a process of it is under way
  std::vector<std::uint32_t> ranks = {};   // whose points these are
  std::string newest = {};                 // "step 300 of call 0", for people
  std::string folder = {};                 // for people

  friend bool operator==(const FoundJob&, const FoundJob&) = default;
};

// Of one registration: jobs, and ranks of each; more are left out.
inline constexpr std::size_t found_jobs_max = 8;
inline constexpr std::size_t found_ranks_max = 64;
// Members of its roster that a registration names; more are left out, so that it stays a small one: thousands
// may register at once.
inline constexpr std::size_t members_told_max = 256;

struct MembershipReport {
  bool fresh = false;  // MUSTER_FRESH=1
  // Of a member, from its roster.
  std::uint64_t seed = 0;
  std::uint64_t finished_calls = 0;
  std::uint64_t finished_collectives = 0;
  std::uint64_t roster_epoch = 0;  // in which it has part; that of the header may be lost, and a newer one
  // Of its members, workers and then servers, round from this process's own.
  std::vector<std::uint64_t> incarnations = {};
  // Of a process that comes new.
  std::vector<FoundJob> found = {};

  const FoundJob* find(std::uint64_t job_id) const;

  friend bool operator==(const MembershipReport&, const MembershipReport&) = default;
};

// "job 0123456789abcdef of 2 workers, newest step 300 of call 0, in PATH".
std::string describe(const FoundJob& job);

}  // namespace muster::cluster
