// Looking up a name without waiting for the system's resolver, which cannot be stopped.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"

namespace muster::net {

// One look-up (see resolve), on a thread of its own that it leaves behind when it is destroyed earlier.
class LookUp {
 public:
  explicit LookUp(const std::string& host);
  // Its result, once there is one; waits at most `time` for it.
  std::optional<Result<std::vector<std::string>>> wait_for(Duration time);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster::net
