// One process at a time writes to the folder of a worker: the last one that opened it. A process that was
// stopped meanwhile and wakes up finds another one's name in the file `owner`, and writes nothing any more.
//
// The lock is held for moments only, not for the life of the process: a stale incarnation that is stopped
// must not keep its successor out.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

// "pid 4711 on node-a", of this process.
std::string this_process();

// The process that opened the folder of a worker last; empty: none.
std::string owner_of(const std::string& worker_folder, const Storage& storage);
// The epoch in which that one joined; 0: none, or not named.
std::uint64_t epoch_of_owner(const std::string& worker_folder, const Storage& storage);

// The worker's folder belongs to its owner while this lives: no other process can take it.
using Hold = std::unique_ptr<LockedFile>;

class Ownership {
 public:
  // `epoch`: of the job, in which this process has got its seat.
  Ownership(const std::string& worker_folder, Storage& storage, std::chrono::milliseconds patience,
            std::uint64_t epoch = 0);

  // Takes the folder, from whomever of no later epoch. Refused, with the name of the one that holds it, when
  // that one does not let go of the lock; and, once this process has had the folder or was noted, after
  // another one of its epoch has taken it.
  Result<Hold> take();
  // That this process is here, where it cannot take the folder yet: who takes it from now on comes after it.
  void note_owner();
  // To be called before anything in the folder is changed, and kept until it is. Refused after another one
  // has taken the folder; not_found when the folder has vanished, or everything in it, or when one of an
  // earlier epoch that was late has taken it: then it is to be taken again.
  Result<Hold> hold();
  // Why this process has lost the folder, if another one has taken it. Does not wait.
  std::optional<std::string> lost() const;

 private:
  Result<Hold> lock();
  bool is_late(std::string_view owner) const;
  std::string taken_by(std::string_view owner) const;

  std::string folder_;
  std::string path_;
  std::string name_;  // what no other process and no other store has
  Storage& storage_;
  std::chrono::milliseconds patience_;
  std::uint64_t epoch_;
  std::optional<std::string> before_;  // the owner before this process, or itself
  bool has_locks_ = true;
};

}  // namespace muster::checkpoint
