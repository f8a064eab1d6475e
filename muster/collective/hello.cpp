#include "muster/collective/hello.h"

#include <fmt/format.h>

namespace muster::collective {
namespace {

net::FrameHeader header_of(FrameType type, const FrameOrigin& origin) {
  return {.type = static_cast<std::uint16_t>(type), .epoch = origin.epoch, .job_id = origin.job_id};
}

bool is(const net::FrameHeader& header, FrameType type) {
  return header.type == static_cast<std::uint16_t>(type);
}

}  // namespace

std::vector<std::byte> encode_hello(const Hello& hello) {
  net::ByteWriter payload;
  payload.number(hello.from);
  payload.number(hello.to);
  payload.number(hello.size);
  payload.number(static_cast<std::uint32_t>(hello.purpose));
  return net::encode_frame(header_of(FrameType::hello, hello.origin), payload.bytes());
}

Result<Hello> decode_hello(std::span<const std::byte, hello_size_bytes> bytes) {
  MUSTER_TRY(const net::FrameHeader header,
             net::decode_header(bytes.first<net::frame_header_size_bytes>(), hello_payload_size_bytes));
  const auto payload = bytes.subspan<net::frame_header_size_bytes>();
  if (!is(header, FrameType::hello))
    return fail(Code::corrupt, fmt::format("a frame of type {:#06x} is no hello", header.type));
  MUSTER_TRY_VOID(net::check_payload(header, payload));
  net::ByteReader reader(payload);
  Hello hello{.origin = {.epoch = header.epoch, .job_id = header.job_id}};
  hello.from = reader.number<std::uint32_t>();
  hello.to = reader.number<std::uint32_t>();
  hello.size = reader.number<std::uint32_t>();
  hello.purpose = static_cast<Purpose>(reader.number<std::uint32_t>());
  return hello;
}

std::vector<std::byte> encode_refusal(const FrameOrigin& origin, const std::string& reason) {
  net::ByteWriter payload;
  payload.text(reason);
  return net::encode_frame(header_of(FrameType::refusal, origin), payload.bytes());
}

Result<> check_welcome(const net::Frame& answer, const FrameOrigin& own, const std::string& name) {
  if (is(answer.header, FrameType::refusal)) {
    net::ByteReader reader(answer.payload);
    const std::string reason = reader.text(refusal_limit_bytes);
    return fail(Code::refused, fmt::format("{} refused this process: {}", name, reason));
  }
  if (!is(answer.header, FrameType::welcome))
    return fail(Code::corrupt, fmt::format("{} sent a frame of type {:#06x} instead of a welcome", name,
                                           answer.header.type));
  return check_origin(answer.header, own);
}

}  // namespace muster::collective
