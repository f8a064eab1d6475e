// Cipher suites that a list of names means. Private to net.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::net {

struct CipherNames {
  std::string tls_1_2;                // for SSL_CTX_set_cipher_list
  std::string tls_1_3;                // for SSL_CTX_set_ciphersuites
  std::vector<std::string> warnings;  // one for each name that was left out
};

// Only suites that encrypt, authenticate by certificate and are long enough count. An error when none of the
// names can be used; where one version has no name, it has Muster's own choice.
Result<CipherNames> read_cipher_names(std::string_view list);

}  // namespace muster::net
