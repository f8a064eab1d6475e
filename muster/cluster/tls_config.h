// The file that set_ps_context(config_file_path=...) and MUSTER_TLS_CONFIG name: which certificates a process
// uses. JSON, in the words of other systems' configurations, so that theirs can be used as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::cluster {

inline constexpr std::size_t tls_config_bytes_max = std::size_t{64} << 10;

struct TlsConfig {
  std::string server_cert_path = {};
  std::string client_cert_path = {};
  std::string ca_cert_path = {};
  std::string crl_path = {};     // empty: none
  std::string cipher_list = {};  // empty: OpenSSL's own
  int cert_expire_warning_time_in_day = 90;
  std::vector<std::string> warnings = {};  // of fields that are none
};

// Errors and warnings begin with `name`, the file's. Paths are as they are written.
Result<TlsConfig> parse_tls_config(std::string_view text, std::string_view name);

}  // namespace muster::cluster
