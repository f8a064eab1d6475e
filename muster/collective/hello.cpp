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
  payload.number(static_cast<std::uint32_t>(hello.purpose) | static_cast<std::uint32_t>(hello.link) << 16);
  payload.number(static_cast<std::uint32_t>(hello.intent));
  payload.number(hello.generation);
  payload.number(hello.received_bytes);
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
  const auto purpose = reader.number<std::uint32_t>();
  hello.purpose = static_cast<Purpose>(purpose & 0xffff);
  hello.link = static_cast<LinkOffer>(purpose >> 16);
  hello.intent = static_cast<Intent>(reader.number<std::uint32_t>());
  hello.generation = reader.number<std::uint32_t>();
  hello.received_bytes = reader.number<std::uint64_t>();
  return hello;
}

Result<> check_hello(const Hello& hello, const net::Socket& socket, const Group& group) {
  MUSTER_TRY_VOID(check_origin({.epoch = hello.origin.epoch, .job_id = hello.origin.job_id},
                               {.epoch = group.epoch, .job_id = group.job_id}));
  if (hello.size != group.endpoints.size())
    return fail(Code::refused, fmt::format("a world of {} ranks is not this group's world of {}", hello.size,
                                           group.endpoints.size()));
  if (hello.to != group.rank)
    return fail(Code::refused, fmt::format("this is rank {}, not rank {}", group.rank, hello.to));
  if (hello.from >= hello.size || hello.from == group.rank)
    return fail(Code::refused, fmt::format("rank {} is not awaited by rank {}", hello.from, group.rank));
  if (hello.link > LinkOffer::ucx_only)
    return fail(Code::refused, fmt::format("rank {} offers a link of kind {}, which is unknown", hello.from,
                                           static_cast<std::uint32_t>(hello.link)));
  const net::PeerNames* names = socket.peer_names();
  return names == nullptr ? Result<>{} : net::check_identity(*names, group.endpoints[hello.from].identity);
}

std::vector<std::byte> encode_welcome(const FrameOrigin& origin, const Welcome& welcome) {
  net::ByteWriter payload;
  payload.number(welcome.received_bytes);
  payload.number(static_cast<std::uint32_t>(welcome.link));
  return net::encode_frame(header_of(FrameType::welcome, origin), payload.bytes());
}

std::vector<std::byte> encode_refusal(const FrameOrigin& origin, const std::string& reason) {
  net::ByteWriter payload;
  payload.text(reason);
  return net::encode_frame(header_of(FrameType::refusal, origin), payload.bytes());
}

Result<Welcome> check_welcome(const net::Frame& answer, const FrameOrigin& own, const std::string& name) {
  if (is(answer.header, FrameType::refusal)) {
    net::ByteReader reader(answer.payload);
    const std::string reason = printable(reader.text(refusal_limit_bytes));
    return fail(Code::refused, fmt::format("{} refused this process: {}", name, reason));
  }
  if (!is(answer.header, FrameType::welcome))
    return fail(Code::corrupt, fmt::format("{} sent a frame of type {:#06x} instead of a welcome", name,
                                           answer.header.type));
  MUSTER_TRY_VOID(check_origin(answer.header, own));
  net::ByteReader reader(answer.payload);
  const auto received_bytes = reader.number<std::uint64_t>();
  const auto link = reader.number<std::uint32_t>();
  MUSTER_TRY_VOID(reader.finish("a welcome"));
  if (link > static_cast<std::uint32_t>(LinkKind::ucx))
    return fail(Code::corrupt, fmt::format("{} welcomes this process to a link of kind {}", name, link));
  const Welcome welcome{.received_bytes = received_bytes, .link = static_cast<LinkKind>(link)};
  return welcome;
}

}  // namespace muster::collective
