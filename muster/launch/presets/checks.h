// Checks that presets share. Private to the presets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "muster/launch/presets/preset.h"

namespace muster::launch {

// Settings that only some presets have a meaning for.
struct PresetUses {
  bool servers = false;
  bool restarts = false;        // of one process, for which the others wait
  bool group_restarts = false;  // of all
  bool rank_table = false;
  std::string_view styles = {};  // "init_method env": empty: there are none
  std::string_view sets = {};    // "RANK LOCAL_RANK": variables that differ from process to process
};
// An error for each setting that the user asked for and the preset does not know: it would be lost silently.
Result<> check_uses(const JobSettings& job, const PresetUses& uses);

// An error where `variable` is set to something else than `value`, which `what` says: the user exported it
// for processes started by hand, or gives it with --env.
struct Expected {
  const char* variable;
  std::string value;
  std::string what;  // "-n 4"
};
Result<> check_exported(const JobSettings& job, const Environment& environment, const Expected& expected);

// What makes a job survive the death of a process, which is started again. The user's own choice of a folder
// stays.
void add_recovery_variables(std::map<std::string, std::string>& variables, const PresetInput& input);

// What processes of host job.self inherit from the launcher: nothing where ssh lies between.
std::optional<std::string> inherited(const PresetInput& input, std::string_view name);

// Processes that the user asked for on host `index`. The accelerators that a platform counts are no request:
// its scripts use all of their host in one process.
std::int64_t slots_asked_for(const JobSettings& job, std::size_t index);
// "-n 4", "--hosts": where slots_asked_for comes from.
std::string slots_origin(const JobSettings& job);

}  // namespace muster::launch
