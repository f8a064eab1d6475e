// Files of keys, certificates and revocation lists.
#include "muster/net/credentials.h"
#include "fuzz.h"
#include "muster/net/security.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  switch (input.byte() % 4) {
    case 0:
      static_cast<void>(net::read_pkcs12(input.text(), "a password"));
      break;
    case 1:
      static_cast<void>(net::read_crl(input.text()));
      break;
    case 2:
      static_cast<void>(net::read_certificates(input.text()));
      break;
    default:
      static_cast<void>(net::Security::from_token(input.text()));
  }
  return 0;
}
