// What two ranks say to each other first: a hello, and the answer to it. Byte by byte:
// docs/formats/collective.md.
//
// A hello may come from anybody, an answer from whoever listens where a rank should: neither is believed
// before it was looked at here.
#pragma once

#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/frames.h"

namespace muster::collective {

// What a connection is for: two ranks of different hosts have one of each.
enum class Purpose : std::uint32_t { calls, messages };

struct Hello {
  FrameOrigin origin;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t size = 0;  // of the world
  Purpose purpose = Purpose::calls;
};

inline constexpr std::size_t hello_payload_size_bytes = 16;
inline constexpr std::size_t hello_size_bytes = net::frame_header_size_bytes + hello_payload_size_bytes;
// Of the frames that may answer a hello.
inline constexpr std::size_t refusal_limit_bytes = 1024;

std::vector<std::byte> encode_hello(const Hello& hello);
// Fails for what is no hello at all. Who it is from, and whether it is for us, is not checked: the numbers
// may be any, the purpose too.
Result<Hello> decode_hello(std::span<const std::byte, hello_size_bytes> bytes);

std::vector<std::byte> encode_refusal(const FrameOrigin& origin, const std::string& reason);
// Whether the answer of a rank, which errors call `name`, is a welcome to the epoch `own`.
Result<> check_welcome(const net::Frame& answer, const FrameOrigin& own, const std::string& name);

}  // namespace muster::collective
