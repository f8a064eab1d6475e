// A stream of frames in pieces of any size: what comes out does not depend on the pieces, and is sound.
#include <algorithm>

#include "fuzz.h"
#include "muster/net/net.h"

using namespace muster;

namespace {

constexpr std::uint64_t limit_bytes = 4096;

void expect_sound(const net::Frame& frame) {
  fuzz::expect(frame.payload.size() <= limit_bytes);
  fuzz::expect(net::check_payload(frame.header, frame.payload).has_value());
  const auto again = net::decode_header(net::encode_header(frame.header), limit_bytes);
  fuzz::expect(again && *again == frame.header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t piece_size = 1 + input.byte();
  net::FrameDecoder whole(limit_bytes);
  whole.append(input.rest());
  net::FrameDecoder pieces(limit_bytes);
  while (!input.rest().empty()) {
    pieces.append(input.take(piece_size));
    for (;;) {
      const auto frame = pieces.next();
      if (!frame) return 0;
      if (!*frame) break;
      expect_sound(**frame);
      const auto same = whole.next();
      fuzz::expect(same && *same && (*same)->header == (*frame)->header &&
                   (*same)->payload == (*frame)->payload);
    }
  }
  return 0;
}
