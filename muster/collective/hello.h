// Hello and its answer: the first bytes between two ranks. Byte by byte: docs/formats/collective.md.
//
// A hello may come from any peer, an answer from any process that listens in a rank's place: neither is
// trusted before it was looked at here.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/collective.h"
#include "muster/collective/frames.h"
#include "muster/collective/link_choice.h"

namespace muster::collective {

// What a connection is for: two ranks of different hosts have one of each. Messages have one for each way, so
// that the other way can say which of them have come.
enum class Purpose : std::uint32_t { calls, messages_of_lower, messages_of_higher };
inline constexpr std::array all_purposes{Purpose::calls, Purpose::messages_of_lower,
                                         Purpose::messages_of_higher};

constexpr Purpose message_purpose(std::uint32_t from, std::uint32_t to) {
  return from < to ? Purpose::messages_of_lower : Purpose::messages_of_higher;
}

// What the caller wants: a first connection, one in the place of one that broke, or to be called by the other
// side, since the connection that it has is broken.
enum class Intent : std::uint32_t { join, resume, ask_for_reconnect };

struct Hello {
  FrameOrigin origin;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t size = 0;  // the world size
  Purpose purpose = Purpose::calls;
  Intent intent = Intent::join;
  std::uint32_t generation = 0;      // of the connection: counts up with each that is to replace another
  std::uint64_t received_bytes = 0;  // what the caller has taken of the other side's stream
  LinkOffer link = LinkOffer::socket_only;
};

inline constexpr std::size_t hello_payload_size_bytes = 32;
inline constexpr std::size_t hello_size_bytes = net::frame_header_size_bytes + hello_payload_size_bytes;
// Of the frames that may answer a hello.
inline constexpr std::size_t refusal_limit_bytes = 1024;

std::vector<std::byte> encode_hello(const Hello& hello);
// Fails for what is no hello at all. Its sender, and whether it is for us, is not checked: the numbers
// may be any, purpose and intent too.
Result<Hello> decode_hello(std::span<const std::byte, hello_size_bytes> bytes);

// Whether the caller belongs to `group`, means this rank, and is the rank that it says.
Result<> check_hello(const Hello& hello, const net::Socket& socket, const Group& group);

struct Welcome {
  std::uint64_t received_bytes = 0;  // what this side has taken of the caller's stream
  LinkKind link = LinkKind::socket;  // what the connection becomes
};
std::vector<std::byte> encode_welcome(const FrameOrigin& origin, const Welcome& welcome);
std::vector<std::byte> encode_refusal(const FrameOrigin& origin, const std::string& reason);
// Whether the answer of a rank, which errors call `name`, is a welcome to the epoch `own`.
Result<Welcome> check_welcome(const net::Frame& answer, const FrameOrigin& own, const std::string& name);

}  // namespace muster::collective
