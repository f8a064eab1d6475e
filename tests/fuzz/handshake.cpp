// What an unauthorized peer says to a listener that wants a token: never does it come in.
#include "fuzz.h"
#include "muster/net/tls_session.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto security = *net::Security::from_token("a token that is long enough for everybody here");
  fuzz::Input input(data, size);
  const std::size_t piece_size = 1 + 8 * static_cast<std::size_t>(input.byte());
  const auto session = net::TlsSession::create(
      security, {.side = net::TlsSide::listener, .peer = "an unauthorized peer", .expected = {}});
  if (!session) return 0;
  while (!input.rest().empty()) {
    (*session)->set_input(input.take(piece_size));
    const auto open = (*session)->shake_hands();
    if (!open) return 0;
    fuzz::expect(!*open);
    static_cast<void>((*session)->take_output());
  }
  return 0;
}
