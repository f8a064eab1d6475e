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
// Threads: any; one save() at a time, the others wait.
#pragma once

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
  std::uint64_t world = 1;
  std::uint64_t rank = 0;
  std::size_t keep_steps = 5;  // step points to keep, 3 at least
  Storage* storage = nullptr;  // real_storage() unless given; it outlives the store
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
  // Makes the folders, and removes what a kill has left half made and what other jobs have left of this rank.
  // Points that are no more whole are put aside with a warning. Fails when the points are those of a job of
  // another number of workers, or the folder cannot be written.
  static Result<RunStore> open(RunOptions options);
  RunStore(RunStore&&) noexcept;
  ~RunStore();

  // Where the points lie.
  const std::string& folder() const;

  // The points that are whole as far as their manifests and sizes tell, oldest first.
  std::vector<PointId> points() const;

  // Durable when it returns. One that is there under this id is replaced. Points behind this one are those of
  // a future that the job has lost by going back: they are removed. Then what is needless goes: of step
  // points the newest `keep_steps` stay; of starts that of the newest call; of ends the newest, and each
  // whose tensors (names, dtypes, shapes) no later end has. The error says what could not be written and what
  // it means; the points that were there are untouched.
  Result<> save(const Point& point);

  // Checks every hash. An error (corrupt, io, not_found) names the file and the tensor or section.
  Result<Point> load(const PointId& id) const;

  // The point was found damaged, for the reason `why`: it counts no more and its folder is put aside as
  // <name>.damaged, with a warning that names it.
  void drop(const PointId& id, std::string_view why = {});

  // The journal of calls that have ended: durable when it returns.
  Result<> finish_call(CallRecord record);
  std::optional<CallRecord> finished(std::uint64_t call) const;

  // The ledger of steps, for `muster verify`: `hash` is of whatever the job wants compared. It is written now
  // and then and with each point, and not synced: a loss of power may take its last lines.
  Result<> add_step_hash(std::uint64_t call, std::uint64_t step, std::uint64_t hash);

 private:
  class Implementation;
  explicit RunStore(std::unique_ptr<Implementation> implementation);

  std::unique_ptr<Implementation> implementation_;
};

}  // namespace muster::checkpoint
