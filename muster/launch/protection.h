// Protection of a job: which processes may take part. Closed is the default: certificates or a token that the
// user chose, else a token that the launcher makes for this job and hands to every process that it starts.
#pragma once

#include <memory>
#include <string>

#include "muster/launch/presets/preset.h"
#include "muster/launch/settings/job_settings.h"
#include "muster/net/net.h"

namespace muster::launch {

// An error where unauthorized peers could take part and the user did not choose that: several launchers share
// no secret unless they are given one. It says what to type.
Result<> check_protection(const Preset& preset, const JobSettings& job, const Environment& environment);

// What protects the connections of this launcher for the job: the settings of the job go before the variables
// of the launcher. Null: nothing.
Result<std::shared_ptr<const net::Security>> find_security(const JobSettings& job,
                                                           const Environment& environment);

// The token that this launcher hands to the processes of all its hosts. Empty: it hands out none, since they
// have certificates or find the token themselves, or the job is open, or of a family without tokens.
Result<std::string> token_to_hand_out(const Preset& preset, const JobSettings& job,
                                      const Environment& environment);

}  // namespace muster::launch
