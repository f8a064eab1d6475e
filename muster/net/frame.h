// The one frame of everything that Muster sends over a stream: a header of 64 bytes, then the payload.
// Byte by byte: docs/formats/frame.md.
//
// A frame's type is a number that the sending module defines; each module has a range of its own:
// cluster 0x0100-0x01ff, collective 0x0200-0x02ff.
//
// And the numbers and texts inside a payload: little endian, lengths first.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::net {

// ---- Inside a payload

template <std::unsigned_integral T>
void store_little(std::byte* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
}
template <std::unsigned_integral T>
T load_little(const std::byte* from) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<std::uint64_t>(from[i]) << (8 * i);
  return static_cast<T>(value);
}

// Builds a payload field by field.
class ByteWriter {
 public:
  template <std::unsigned_integral T>
  void number(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    store_little(bytes_.data() + at, value);
  }
  // A u32 length, then the characters.
  void text(std::string_view value);

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads a payload in the order it was written. The first failure sticks: later reads give zeros and empty
// texts, and `finish` reports it, so that a whole message is read without a branch at each field.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <std::unsigned_integral T>
  T number() {
    if (!has(sizeof(T))) return T{};
    const T value = load_little<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  std::string text(std::size_t limit);
  // A u32 number of items that follow, each at least `item_size_bytes` long and at most `limit` of them.
  std::uint32_t count(std::size_t limit, std::size_t item_size_bytes);

  bool ok() const { return ok_; }
  // The payload must have been read exactly to its end. `what` names the message in the error.
  Result<> finish(std::string_view what) const;

 private:
  bool has(std::size_t size_bytes) {
    ok_ = ok_ && rest_.size() >= size_bytes;
    return ok_;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

// ---- Frames

inline constexpr std::size_t frame_header_size_bytes = 64;
inline constexpr std::uint16_t frame_version = 1;

struct FrameHeader {
  std::uint16_t type = 0;
  std::uint32_t flags = 0;
  std::uint64_t epoch = 0;
  std::uint64_t job_id = 0;
  std::uint64_t sequence = 0;
  std::uint64_t payload_size_bytes = 0;
  std::uint64_t payload_checksum = 0;
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

using FrameHeaderBytes = std::array<std::byte, frame_header_size_bytes>;

FrameHeaderBytes encode_header(const FrameHeader& header);
// Fails with Code::corrupt, saying which rule the bytes break: magic, version, checksum, reserved bytes, or a
// payload over `payload_limit_bytes`.
Result<FrameHeader> decode_header(std::span<const std::byte, frame_header_size_bytes> bytes,
                                  std::uint64_t payload_limit_bytes);

// Fails where no frame begins like that; the bytes may be fewer than a header's.
Result<> check_frame_begin(std::span<const std::byte> bytes);

std::uint64_t payload_checksum(std::span<const std::byte> payload);
Result<> check_payload(const FrameHeader& header, std::span<const std::byte> payload);

struct Frame {
  FrameHeader header;
  std::vector<std::byte> payload;
};

// Header and payload as they go over the wire; sets the header's payload size and checksum.
std::vector<std::byte> encode_frame(FrameHeader header, std::span<const std::byte> payload);

// Cuts a stream into frames, however the bytes arrive. It never holds more than one frame over the limit, and
// allocates a payload only after its header was checked. After an error it stays failed: the place of the
// next frame is unknown, so the connection must be closed.
class FrameDecoder {
 public:
  explicit FrameDecoder(std::uint64_t payload_limit_bytes) : payload_limit_bytes_(payload_limit_bytes) {}

  // Of the frames whose header has not yet been read.
  void set_payload_limit(std::uint64_t bytes) { payload_limit_bytes_ = bytes; }
  // What has arrived and is not yet a frame.
  std::size_t held_size_bytes() const { return buffer_.size() - begin_; }

  // Takes the bytes; call `next` until it gives no more frames.
  void append(std::span<const std::byte> bytes);
  // The next whole frame, or nothing while more bytes are needed.
  Result<std::optional<Frame>> next();

 private:
  std::uint64_t payload_limit_bytes_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;  // of the bytes in buffer_ that are not yet consumed
  std::optional<FrameHeader> header_;
  std::optional<Error> failure_;

  void forget_consumed();
};

}  // namespace muster::net
