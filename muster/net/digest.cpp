#include "muster/net/security.h"

#include <openssl/evp.h>

#include "muster/base/base.h"

namespace muster::net {

Digest sha256(std::span<const std::byte> bytes) {
  Digest digest;
  const int made = ::EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()),
                                nullptr, ::EVP_sha256(), nullptr);
  MUSTER_CHECK(made == 1, "this OpenSSL has no SHA-256");
  return digest;
}

}  // namespace muster::net
