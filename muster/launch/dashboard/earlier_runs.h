// Runs beside the one that is shown, in the same folder: their curves, to be drawn with its own. Whatever
// lies there, reading it does no harm: names are those of real folders, links and pipes are not followed, and
// of each file a limited part is read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "muster/base/base.h"

namespace muster::launch {

class EarlierRuns {
 public:
  // `folder` of the run that is shown.
  explicit EarlierRuns(const std::string& folder);

  // [{"name", "script", "began" (seconds since 1970), "ranks", "step", "loss", "exit_code"}], null where it
  // is not known; the newest first, a hundred at most.
  nlohmann::json list() const;
  // Its points as points_json() has them, at most 1,200. Fails where list() could not name it.
  Result<nlohmann::json> points(const std::string& name) const;

 private:
  bool is_run(const std::string& name) const;

  std::string parent_ = {};
  std::string own_name_ = {};
};

}  // namespace muster::launch
