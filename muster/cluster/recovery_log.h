// The scheduler's memory that outlives it: MS_RECOVERY_PATH/scheduler.log, records that are appended one by
// one and durable when `append` returns. Byte by byte: docs/formats/recovery-log.md.
//
// A scheduler may be killed at any byte: the file begins whole (it is renamed into place), and a record that
// is not whole at its end is as if it had not been written. One scheduler at a time uses a path.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "muster/cluster/saved_job.h"
#include "muster/net/net.h"

namespace muster::cluster {

// What the bytes of a log say.
struct LogContents {
  std::optional<SavedJob> job = {};  // absent: the log is empty
  std::size_t record_count = 0;
  std::size_t whole_size_bytes = 0;  // up to the end of the last whole record
};
// An error when not even the first record is whole.
Result<LogContents> read_log(std::span<const std::byte> bytes);

// The bytes of a log with these records.
std::vector<std::byte> write_log(const std::vector<Record>& records);

class RecoveryLog {
 public:
  // Reads what is there; `saved` is empty for a new path. Keeps other schedulers away until destroyed; for
  // one that is ending it waits a moment by `clock`.
  static Result<RecoveryLog> open(const std::string& folder, const Clock& clock);

  const std::optional<SavedJob>& saved() const { return saved_; }
  // Begins the file anew with this job: of before, in the fewest records, or a new one.
  Result<> start(const SavedJob& job);
  // A Job begins the file anew. After an error the record may or may not be there; the next call writes the
  // whole file anew.
  Result<> append(const Record& record);

 private:
  RecoveryLog(std::string path, net::ProcessDescriptor lock);
  Result<> rewrite();
  Result<> append_bytes(std::span<const std::byte> bytes);

  std::string path_;
  net::ProcessDescriptor lock_;
  net::ProcessDescriptor file_;  // open for appending; none after an error
  std::optional<SavedJob> saved_;
  std::size_t record_count_ = 0;
};

}  // namespace muster::cluster
