// Encryption that the script chose before init(): set_ps_context. (The name is the field's; it is where
// people look for it.) One value for the process; main thread only.
#pragma once

#include <optional>
#include <string>

#include "muster/base/base.h"
#include "muster/cluster/cluster.h"

namespace muster::train {

struct PsContext {
  bool enable_ssl = false;
  std::string config_file_path = {};
  std::string client_password = {};
  std::string server_password = {};

  friend bool operator==(const PsContext&, const PsContext&) = default;
};

// What is not given stays. An error once the job is joined, unless nothing changes.
struct PsChoice {
  std::optional<bool> enable_ssl = {};
  std::optional<std::string> config_file_path = {};
  std::optional<std::string> client_password = {};
  std::optional<std::string> server_password = {};
};
Result<> set_ps_context(const PsChoice& choice);
// Back to the defaults; the same error.
Result<> reset_ps_context();
const PsContext& ps_context();

// What both chose: where they differ the script's word goes before the environment's, but for turning off
// what the environment turns on.
cluster::SecuritySettings chosen_security(const cluster::SecuritySettings& of_environment,
                                          const PsContext& of_script);

}  // namespace muster::train
