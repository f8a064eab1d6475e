// What the files of net/security* and net/tls* share; nobody else includes it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "muster/net/openssl_objects.h"
#include "muster/net/security.h"
#include "muster/net/trust.h"

namespace muster::net {

inline constexpr std::size_t token_key_size_bytes = 32;

class Security::Implementation {
 public:
  openssl::Context server;       // of connections that others made
  openssl::Context client;       // of those that this process makes
  std::unique_ptr<Trust> trust;  // null: a token
  std::array<unsigned char, token_key_size_bytes> token_key{};
  std::vector<std::string> warnings;

  ~Implementation() { OPENSSL_cleanse(token_key.data(), token_key.size()); }
};

}  // namespace muster::net
