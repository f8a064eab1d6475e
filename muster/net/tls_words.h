// Messages for TLS failures that tell people what to do. Private to net.
#pragma once

#include <string>

#include "muster/net/openssl_objects.h"

namespace muster::net {

// Why a certificate is not believed: "certificate revoked (CN=worker)".
std::string verify_words(X509_STORE_CTX* context);

struct AlertContext {
  std::string peer;
  bool with_certificates = true;  // else with a token
};
// What an alert of the other side means: "10.0.0.7:4000 refused this process's certificate: it was revoked".
std::string alert_words(int alert, const AlertContext& context);

}  // namespace muster::net
