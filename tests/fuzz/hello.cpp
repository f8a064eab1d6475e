// What a rank is told by whoever connects to it, and by whoever listens where a peer should.
#include <algorithm>

#include "fuzz.h"
#include "muster/collective/hello.h"

using namespace muster;
using namespace muster::collective;

namespace {

void hear_hello(std::span<const std::byte> bytes) {
  if (bytes.size() < hello_size_bytes) return;
  const auto first = bytes.first<hello_size_bytes>();
  const auto hello = decode_hello(first);
  if (!hello) return;
  // The header's flags and number are of no meaning in a hello; all else comes back.
  const std::vector<std::byte> encoded = encode_hello(*hello);
  const auto again = decode_hello(std::span(encoded).first<hello_size_bytes>());
  fuzz::expect(again && again->from == hello->from && again->to == hello->to && again->size == hello->size &&
               again->purpose == hello->purpose && again->link == hello->link &&
               again->intent == hello->intent && again->generation == hello->generation &&
               again->received_bytes == hello->received_bytes && again->origin.epoch == hello->origin.epoch &&
               again->origin.job_id == hello->origin.job_id);
}

void hear_answer(std::span<const std::byte> bytes) {
  net::FrameDecoder decoder(refusal_limit_bytes);
  decoder.append(bytes);
  const auto frame = decoder.next();
  if (!frame || !*frame) return;
  const auto welcome = check_welcome(**frame, {.epoch = 3, .job_id = 77}, "rank 1");
  if (welcome) {
    fuzz::expect((*frame)->header.epoch == 3 && (*frame)->header.job_id == 77);
    fuzz::expect((*frame)->payload.size() == sizeof(welcome->received_bytes) + sizeof(welcome->link));
  } else {
    fuzz::expect(welcome.error().message.size() < 2 * refusal_limit_bytes);
  }
}

// A checksum that fits lets the fuzzer come further than to it.
std::vector<std::byte> framed(fuzz::Input input) {
  const net::FrameHeader header{.type = static_cast<std::uint16_t>(0x0200 + input.byte() % 16),
                                .epoch = input.byte() % 4u,
                                .job_id = input.byte() % 2 == 0 ? 77u : 78u};
  return net::encode_frame(header, input.take(hello_payload_size_bytes * 80));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::bytes_of(data, size);
  hear_hello(bytes);
  hear_answer(bytes);
  const auto sound = framed(fuzz::Input(data, size));
  hear_hello(sound);
  hear_answer(sound);
  return 0;
}
