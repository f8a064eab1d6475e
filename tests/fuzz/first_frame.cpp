// What an unauthorized peer begins with, in pieces of any size: the pieces change nothing, and what is let in
// is a frame.
#include "fuzz.h"
#include "muster/net/net.h"
#include "muster/net/rejected_peers.h"

using namespace muster;

namespace {

constexpr std::uint64_t limit_bytes = 4096;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::bytes_of(data, size);
  bool asked = false;
  const auto may_begin = [&](const net::Frame& frame) -> Result<> {
    asked = true;
    fuzz::expect(frame.payload.size() <= limit_bytes);
    fuzz::expect(net::check_payload(frame.header, frame.payload).has_value());
    return {};
  };
  const auto whole = net::look_at_first_frame(bytes, limit_bytes, may_begin);
  fuzz::expect(asked == (whole && *whole));
  for (std::size_t cut = 0; cut < size; cut += 1 + cut / 8) {
    const auto part = net::look_at_first_frame(bytes.first(cut), limit_bytes, {});
    if (whole && !*whole) fuzz::expect(part && !*part);
    if (!part) fuzz::expect(!whole);
    if (part && *part) fuzz::expect(whole && *whole);
  }
  return 0;
}
