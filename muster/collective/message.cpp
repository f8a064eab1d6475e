#include "muster/collective/message.h"

#include <fmt/format.h>

#include "muster/net/net.h"

namespace muster::collective {
namespace {

template <class Pieces>
Message describe(Pieces pieces, Ordered pair) {
  Message message{.pieces = static_cast<std::uint32_t>(pieces.size()), .from = pair.from, .to = pair.to};
  for (const auto& piece : pieces) {
    message.size_bytes += piece.size();
    std::array<std::byte, 16> link;
    net::store_little(&link[0], message.cut);
    net::store_little(&link[8], static_cast<std::uint64_t>(piece.size()));
    message.cut = net::payload_checksum(link);
  }
  return message;
}

std::string size_of(const Message& message) {
  return fmt::format("{} bytes in {} {}", message.size_bytes, message.pieces,
                     message.pieces == 1 ? "piece" : "pieces");
}

}  // namespace

Message message_of(SentPieces pieces, Ordered pair) { return describe(pieces, pair); }
Message message_of(ReceivedPieces pieces, Ordered pair) { return describe(pieces, pair); }

std::string to_string(const Message& message) {
  return fmt::format("message #{} from rank {} to rank {} ({} bytes)", message.number, message.from,
                     message.to, message.size_bytes);
}

MessageBytes encode(const Message& message) {
  MessageBytes bytes{};
  net::store_little(&bytes[0], message.number);
  net::store_little(&bytes[8], message.size_bytes);
  net::store_little(&bytes[16], message.cut);
  net::store_little(&bytes[24], message.pieces);
  return bytes;
}

Result<Message> decode_message(std::span<const std::byte, std::tuple_size_v<MessageBytes>> bytes,
                               const Message& due) {
  const Message sent{.number = net::load_little<std::uint64_t>(&bytes[0]),
                     .size_bytes = net::load_little<std::uint64_t>(&bytes[8]),
                     .cut = net::load_little<std::uint64_t>(&bytes[16]),
                     .pieces = net::load_little<std::uint32_t>(&bytes[24]),
                     .from = due.from,
                     .to = due.to};
  if (sent.number != due.number || net::load_little<std::uint32_t>(&bytes[28]) != 0)
    return fail(Code::corrupt,
                fmt::format("rank {} sent bytes that are not the beginning of {}", due.from, to_string(due)));
  return sent;
}

Error mismatch(const Message& sent, const Message& expected) {
  const bool cut_only = sent.size_bytes == expected.size_bytes && sent.pieces == expected.pieces;
  return {Code::invalid_argument,
          fmt::format("rank {} sent message #{} ({}) to rank {}, which expected {}", sent.from, sent.number,
                      size_of(sent), sent.to, cut_only ? "pieces of other sizes" : size_of(expected))};
}

MessageBytes encode_mismatch(const Message& sent, const Message& expected) {
  MessageBytes bytes{};
  net::store_little(&bytes[0], sent.size_bytes);
  net::store_little(&bytes[8], expected.size_bytes);
  net::store_little(&bytes[16], sent.pieces);
  net::store_little(&bytes[20], expected.pieces);
  net::store_little(&bytes[24], sent.number);
  return bytes;
}

Error decode_mismatch(std::span<const std::byte, std::tuple_size_v<MessageBytes>> bytes, Ordered pair) {
  const auto number = net::load_little<std::uint64_t>(&bytes[24]);
  const Message sent{.number = number,
                     .size_bytes = net::load_little<std::uint64_t>(&bytes[0]),
                     .pieces = net::load_little<std::uint32_t>(&bytes[16]),
                     .from = pair.from,
                     .to = pair.to};
  const Message expected{.number = number,
                         .size_bytes = net::load_little<std::uint64_t>(&bytes[8]),
                         .pieces = net::load_little<std::uint32_t>(&bytes[20]),
                         .from = pair.from,
                         .to = pair.to};
  return mismatch(sent, expected);
}

}  // namespace muster::collective
