// Description of one point-to-point message: the value that both sides must agree on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "muster/base/base.h"

namespace muster::collective {

struct Message {
  std::uint64_t number = 0;  // 1 is the first from `from` to `to`
  std::uint64_t size_bytes = 0;
  std::uint64_t cut = 0;  // the sizes of the pieces, hashed
  std::uint32_t pieces = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  friend bool operator==(const Message&, const Message&) = default;
};

struct Ordered {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};
Message message_of(SentPieces pieces, Ordered pair);
Message message_of(ReceivedPieces pieces, Ordered pair);

// "message #3 from rank 1 to rank 0 (64 bytes)".
std::string to_string(const Message& message);

// So many frames of a message are under way at once; its data goes in parts.
inline constexpr std::size_t message_frames_at_once = 8;

// What goes before the data: docs/formats/collective.md.
using MessageBytes = std::array<std::byte, 32>;
MessageBytes encode(const Message& message);
// The ranks are those of `due`: the sender is known from where the bytes lie.
Result<Message> decode_message(std::span<const std::byte, std::tuple_size_v<MessageBytes>> bytes,
                               const Message& due);

// What the receiver answers to a message that it did not expect: as long as the head of a message.
MessageBytes encode_mismatch(const Message& sent, const Message& expected);
Error decode_mismatch(std::span<const std::byte, std::tuple_size_v<MessageBytes>> bytes, Ordered pair);

// "rank 1 sent message #3 (64 bytes in 1 piece) to rank 0, which expected 60 bytes in 1 piece".
Error mismatch(const Message& sent, const Message& expected);

}  // namespace muster::collective
