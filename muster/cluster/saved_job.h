// Records of the scheduler's recovery log, as plain values, and the job that they add up to. File and bytes:
// recovery_log.h, docs/formats/recovery-log.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "muster/cluster/process_key.h"
#include "muster/cluster/roster.h"

namespace muster::cluster {

namespace record {
// A new job; always the first record.
struct Job {
  std::uint64_t job_id = 0;
  std::uint64_t seed = 0;
  std::uint32_t worker_num = 0;
  std::uint32_t server_num = 0;
  std::uint64_t ended_job_id = 0;  // the one before on this path, which ended well; 0: none
  friend bool operator==(const Job&, const Job&) = default;
};
// An epoch has begun. Written before any node is told.
struct Formed {
  std::shared_ptr<const Roster> roster = {};  // never null
  std::vector<ProcessKey> keys = {};          // of its workers, then of its servers
  friend bool operator==(const Formed& a, const Formed& b) {
    return *a.roster == *b.roster && a.keys == b.keys;
  }
};
// A process was done and left.
struct Left {
  Role role = Role::worker;
  std::uint32_t rank = 0;
  friend bool operator==(const Left&, const Left&) = default;
};
// Calls of train that some worker has finished.
struct Finished {
  std::uint64_t calls = 0;
  friend bool operator==(const Finished&, const Finished&) = default;
};
struct Ended {
  std::optional<Failure> failure = {};
  friend bool operator==(const Ended&, const Ended&) = default;
};
// Some worker has a recovery point of this job on its disk.
struct Kept {
  friend bool operator==(const Kept&, const Kept&) = default;
};
// The log of this job was lost. Who has it still, on another host, may begin epochs too: those of this log
// begin here at the earliest.
struct Adopted {
  std::uint64_t epoch_min = 0;
  friend bool operator==(const Adopted&, const Adopted&) = default;
};
// Where the processes of the job look for their scheduler.
struct At {
  std::string scheduler = {};  // host:port
  friend bool operator==(const At&, const At&) = default;
};
}  // namespace record
using Record = std::variant<record::Job, record::Formed, record::Left, record::Finished, record::Ended,
                            record::Kept, record::Adopted, record::At>;

struct SavedJob {
  record::Job job;
  std::shared_ptr<const Roster> roster = {};  // of the newest epoch; null before the first
  std::vector<ProcessKey> keys = {};          // of its members
  std::vector<record::Left> left = {};        // since that began
  std::uint64_t finished_calls = 0;
  bool has_points = false;  // see Kept
  std::uint64_t epoch_min = 0;
  std::string scheduler = {};  // host:port; empty: not known
  bool ended_well = false;
  std::optional<Failure> failure = {};  // that ended the job since that epoch began

  void apply(const Record& record);
  // The fewest records that add up to this.
  std::vector<Record> records() const;
  // Whether a scheduler that finds this goes on with it.
  bool is_unfinished() const { return roster != nullptr && !ended_well; }

  friend bool operator==(const SavedJob& a, const SavedJob& b) { return a.records() == b.records(); }
};

}  // namespace muster::cluster
