// Payloads of every message of the control plane: what is read and written again is read as the same.
#include "fuzz.h"
#include "muster/cluster/cluster.h"
#include "muster/cluster/wire.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  net::Frame frame;
  frame.header.type = static_cast<std::uint16_t>(cluster::message_type_first + input.byte());
  frame.header.job_id = input.byte();
  frame.header.epoch = input.byte();
  frame.payload.assign(input.rest().begin(), input.rest().end());
  frame.header.payload_size_bytes = frame.payload.size();
  const auto message = cluster::decode_message(frame);
  if (!message) return 0;
  const auto bytes = cluster::encode_message(*message);
  net::FrameDecoder decoder(cluster::scheduler_payload_limit_bytes);
  decoder.append(bytes);
  const auto written = decoder.next();
  fuzz::expect(written && *written);
  const auto again = cluster::decode_message(**written);
  fuzz::expect(again && *again == *message);
  return 0;
}
