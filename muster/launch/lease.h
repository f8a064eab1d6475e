// Lease: ties the processes of this host to the rest of the job, where every host runs a launcher of its own.
#pragma once

#include <optional>
#include <string>

namespace muster::launch {

// Belongs to the thread of the supervisor. No call blocks.
class Lease {
 public:
  struct End {
    int exit_code = 0;
    std::string reason = {};  // for people; may be empty
  };

  virtual ~Lease() = default;
  // Readable when take() has to be called: for words of the others and for deadlines alike.
  virtual int fd() const = 0;
  // Once it returns how the job ended elsewhere, everything here ends.
  virtual std::optional<End> take() = 0;
  // What this host had to do is done (0), or has failed. Services stay until the whole job is over, since
  // other hosts may need them. Only the first call counts.
  virtual void work_ended(int exit_code) = 0;
};

}  // namespace muster::launch
