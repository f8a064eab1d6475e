// Security settings of this process's connections: the choices of its environment and its script, and their
// result.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/net.h"

namespace muster::cluster {

struct SecuritySettings {
  bool enable_ssl = false;
  std::string config_path = {};           // MUSTER_TLS_CONFIG, or config_file_path of set_ps_context
  bool is_config_of_script = false;       // the latter
  std::string client_password = {};       // of set_ps_context; it goes before the file
  std::string server_password = {};       // the same
  std::string client_password_file = {};  // MUSTER_TLS_CLIENT_PASSWORD_FILE
  std::string server_password_file = {};  // MUSTER_TLS_SERVER_PASSWORD_FILE
  std::string token_file = {};            // MUSTER_TOKEN_FILE
  std::string run_token_file = {};        // MUSTER_RUN_TOKEN_FILE: gives way to all of the above

  friend bool operator==(const SecuritySettings&, const SecuritySettings&) = default;
};

// What the protection is made of: the configuration read, its files found, the secrets there. The other half
// of the work, reading the certificates, is net::Security's.
struct ReadSecurity {
  std::optional<net::CertificateOptions> certificates = {};
  std::optional<std::string> token = {};
  std::vector<std::string> warnings = {};
};
// `strict`: a secret that every user of this host can read is an error.
Result<ReadSecurity> read_security(const SecuritySettings& settings, bool strict);

// What protects this process's connections; null: nothing. Warnings are logged. Errors name the variable, the
// field or the file, and never a secret.
Result<std::shared_ptr<const net::Security>> open_security(const SecuritySettings& settings, bool strict);

}  // namespace muster::cluster
