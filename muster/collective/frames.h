// The frames between ranks of different hosts. Byte by byte: docs/formats/collective.md.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/net.h"

namespace muster::collective {

enum class FrameType : std::uint16_t {
  refusal = 0x0202,
  call = 0x0203,
  data = 0x0204,
  message = 0x0205,
  mismatch = 0x0206,
  taken = 0x0209,
  ucx_address = 0x020a,  // on the socket beside a link over UCX
  ucx_end = 0x020b,
  // 0x0200 and 0x0201 were those of a protocol without second connections, 0x0207 and 0x0208 of one that sent
  // the data of calls in frames of any size.
  hello = 0x020c,
  welcome = 0x020d,
};

// A frame's payload is limited by what is due, which is exact; this only bounds the decoder.
constexpr std::uint64_t payload_limit_bytes = std::uint64_t{1} << 32;

// The payload of a taken frame: how many bytes of the other side's stream.
using TakenBytes = std::array<std::byte, 8>;

// The origin of frames, which a receiver checks in each.
struct FrameOrigin {
  std::uint64_t epoch = 0;
  std::uint64_t job_id = 0;
};
Result<> check_origin(const net::FrameHeader& header, const FrameOrigin& own);

// What identifies the frames of one call or message.
struct FrameSource {
  FrameOrigin origin;
  std::uint64_t sequence = 0;
};

// Frames that go out, or that are due to come in, one after another; the payloads are borrowed.
class FrameList {
 public:
  static constexpr std::size_t piece_limit = 16;  // go to the system at once; headers and payloads alternate
  // With these bytes enough goes at once: what has come is checked, and the checksum of what goes next made,
  // while the other side works on them, and while they lie in this core's cache.
  static constexpr std::size_t enough_bytes = 128 << 10;

  void add_incoming(FrameType type, std::span<std::byte> payload);
  void add_outgoing(FrameType type, std::span<const std::byte> payload, const FrameSource& source);
  void clear() {
    frames_.clear();
    piece_ = offset_ = 0;
  }

  std::size_t frames() const { return frames_.size(); }
  bool done() const { return piece_ == 2 * frames(); }
  // The one under way.
  std::size_t piece() const { return piece_; }
  // Counts at most `size_bytes` as done, not past the end of the current piece; returns how many. A payload
  // that is empty is done with its header.
  std::size_t take(std::size_t size_bytes);
  // Bytes that are done, and of all frames; and the place where `position` of them are done.
  std::size_t position() const;
  std::size_t size_bytes() const;
  void seek(std::size_t position);
  // The rest, or so much of it as shall go at once, as the system takes it.
  std::span<const iovec> rest(std::array<iovec, piece_limit>& storage);

  // Of a frame that comes in, or of which something went.
  const net::FrameHeaderBytes& header(std::size_t frame) const { return frames_[frame].header; }
  FrameType type(std::size_t frame) const { return frames_[frame].type; }
  std::span<const std::byte> payload(std::size_t frame) const { return frames_[frame].payload; }

 private:
  struct Frame {
    net::FrameHeaderBytes header;
    FrameType type;
    std::span<std::byte> payload;
    std::optional<FrameSource> unmade = {};  // of one that goes out: its header is made when it does
  };
  static void make_header(Frame& frame);
  std::span<std::byte> bytes_of(std::size_t piece);
  std::size_t size_of(std::size_t piece) const {
    return piece % 2 == 0 ? net::frame_header_size_bytes : frames_[piece / 2].payload.size();
  }

  std::vector<Frame> frames_;
  std::size_t piece_ = 0;
  std::size_t offset_ = 0;  // done of the piece
};

}  // namespace muster::collective
