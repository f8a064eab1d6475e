// Implementation that the files of net/security* and net/tls* share; no other file includes it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "muster/net/openssl_objects.h"
#include "muster/net/own_certificate.h"
#include "muster/net/security.h"
#include "muster/net/tls_session.h"
#include "muster/net/trust.h"

namespace muster::net {

inline constexpr std::size_t token_key_size_bytes = 32;

class Security::Implementation {
 public:
  std::unique_ptr<Trust> trust;  // null: a token; outlives what borrows it
  // With certificates: what is shown on connections that others made, and on those that this process makes.
  std::unique_ptr<OwnCertificate> server;
  std::unique_ptr<OwnCertificate> client;
  openssl::Context token_server;
  openssl::Context token_client;
  std::array<unsigned char, token_key_size_bytes> token_key{};
  std::vector<std::string> warnings;

  // For a new connection.
  std::shared_ptr<SSL_CTX> context(TlsSide side) const;

  ~Implementation() { OPENSSL_cleanse(token_key.data(), token_key.size()); }
};

}  // namespace muster::net
