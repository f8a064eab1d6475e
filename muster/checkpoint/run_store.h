// The recovery points of one worker of one job, and what the worker remembers beside them
// (docs/formats/recovery-point.md).
//
//   <folder>/job-<job>/worker_<rank>/   call_0.step_300/  finished.log  steps.log
//
// A point that save() has reported is on the disk, whole, and stays until newer ones make it needless,
// through any kill and any loss of power; one that save() has failed to write leaves nothing behind. Every
// byte is under a hash, and load() hands out none that it has not checked. Nothing is ever unpickled or
// executed.
//
// The last point from which an unfinished job can go on is removed by the user alone: which one that is,
// other workers know, and set_committed() and call_is_finished() tell it.
//
// Threads: any; one save() at a time, the others wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/checkpoint/point.h"
#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

struct RunOptions {
  std::string folder = {};  // MS_RECOVERY_PATH
  std::string job = {};     // 16 hexadecimal digits
  std::uint64_t world_size = 1;
  std::uint64_t rank = 0;
  std::size_t keep_steps = 5;  // step points to keep, 4 at least
  std::uint64_t epoch = 0;     // in which this process joined: a stale incarnation takes no folder from it
  bool fresh = false;          // MUSTER_FRESH: unfinished jobs of before are removed, not an error
  Storage* storage = nullptr;  // real_storage() unless given; it outlives the store
  std::chrono::milliseconds patience{3000};  // for each lock that others hold
};

// A call that has ended, and what the script was given for it.
struct CallRecord {
  std::uint64_t call = 0;
  std::string kind = {};    // "train", "eval"
  std::string result = {};  // any bytes

  friend bool operator==(const CallRecord&, const CallRecord&) = default;
};

class RunStore {
 public:
  // Makes the folders, takes this worker's from a stale incarnation that may still live, and removes what a
  // kill has left half made and what other jobs have left that are done. Points that are no more whole are
  // put aside with a warning. Fails (refused) where another job is under way or is not finished, unless that
  // is to be thrown away (`fresh`), and where the points are those of a job of another number of workers.
  // Where the folder cannot be written at this moment the store says so, loudly, and is opened all the same:
  // see problem().
  static Result<RunStore> open(RunOptions options);
  RunStore(RunStore&&) noexcept;
  ~RunStore();

  // Where the points lie.
  const std::string& folder() const;

  // The points that are whole as far as their manifests and sizes tell, oldest first.
  std::vector<PointId> points() const;

  // Whether another worker of the same part of the network may go on from it; false of one that is not held.
  bool is_shared(const PointId& id) const;

  // Why nothing can be kept at this moment; empty: it can. Each call that writes tries again.
  std::string problem() const;
  // Why points() may not be all that there is: what could not be read. Empty: it is, as on a disk that is
  // full and can be read.
  std::string unread() const;

  // Where the folder could not be opened, or has vanished since: tries again, or reads what can be read by
  // now. What was not there when it was opened may have come since: a stale incarnation keeps its last point
  // as long as no other process has the folder.
  void look_again();

  // Why this store will keep nothing any more: a newer incarnation has taken the folder since it was opened.
  // Any thread.
  std::optional<std::string> lost() const;

  // Durable when it returns. One that is there under this id is replaced. Then what is needless goes: see
  // retention.h. The error says what could not be written and what it means; the points that were there are
  // untouched. After a newer incarnation has taken the folder every call that writes is refused.
  Result<> save(const Point& point);

  // All workers have reported that they hold this point durably: it stays until another one is told of. Later
  // than the one before, unless the job went back. A point is safe from its save on for `keep_steps` saves.
  void set_committed(const PointId& id);
  // The last that was told, to this process or to one before it.
  std::optional<PointId> committed() const;
  // All workers have kept the end of this call, and so need nothing of before any more.
  void call_is_finished(std::uint64_t call);

  // All begin the call, or go on from a point of it that each has. Noted durably, in this folder alone: in
  // one that comes in its place nothing says so. What cannot be noted is not.
  void note_begun(std::uint64_t call);
  // Whether the folder has been there since all began this call or one before it: then it never had what it
  // lacks of the call.
  bool has_begun(std::uint64_t call) const;

  // Checks every hash. An error (corrupt, io, not_found) names the file and the tensor or section.
  Result<Point> load(const PointId& id) const;

  // The point was found damaged, for the reason `why`: it counts no more and its folder is put aside as
  // <name>.damaged, with a warning that names it.
  void drop(const PointId& id, std::string_view why = {});
  // The disk could not be read: the point counts no more in this process, and stays where it is for the next.
  void pass_over(const PointId& id, std::string_view why);

  // The journal of calls that have ended: durable when it returns.
  Result<> finish_call(CallRecord record);
  std::optional<CallRecord> finished(std::uint64_t call) const;
  // Of the calls 0 to n-1 each has a record: n.
  std::uint64_t finished_calls() const;

  // This worker needs nothing of it any more: a later job on this path may clear it away. Until it is opened
  // again. Durable when it returns.
  Result<> set_done();

  // The ledger of steps, for `muster verify`: `hash` is of whatever the job wants compared. It is written now
  // and then and with each point, and not synced: a loss of power may take its last lines.
  Result<> add_step_hash(std::uint64_t call, std::uint64_t step, std::uint64_t hash);

 private:
  class Implementation;
  explicit RunStore(std::unique_ptr<Implementation> implementation);

  std::unique_ptr<Implementation> implementation_;
};

}  // namespace muster::checkpoint
