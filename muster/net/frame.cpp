#include "muster/net/frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/base/base.h"

namespace muster::net {
namespace {

constexpr std::uint32_t magic = 0x5254534d;  // "MSTR"

// Where each field begins; the same table is in docs/formats/frame.md.
constexpr std::size_t at_magic = 0, at_version = 4, at_type = 6, at_flags = 8, at_reserved = 12,
                      at_epoch = 16, at_job_id = 24, at_sequence = 32, at_payload_size = 40,
                      at_payload_checksum = 48, at_header_checksum = 56;

constexpr std::size_t kept_size_bytes = 4 << 10;  // of an empty decoder's buffer

std::uint64_t header_checksum(const std::byte* bytes) { return hash_bytes(bytes, at_header_checksum); }

}  // namespace

FrameHeaderBytes encode_header(const FrameHeader& header) {
  FrameHeaderBytes bytes{};
  store_little(&bytes[at_magic], magic);
  store_little(&bytes[at_version], frame_version);
  store_little(&bytes[at_type], header.type);
  store_little(&bytes[at_flags], header.flags);
  store_little(&bytes[at_epoch], header.epoch);
  store_little(&bytes[at_job_id], header.job_id);
  store_little(&bytes[at_sequence], header.sequence);
  store_little(&bytes[at_payload_size], header.payload_size_bytes);
  store_little(&bytes[at_payload_checksum], header.payload_checksum);
  store_little(&bytes[at_header_checksum], header_checksum(bytes.data()));
  return bytes;
}

Result<FrameHeader> decode_header(std::span<const std::byte, frame_header_size_bytes> bytes,
                                  std::uint64_t payload_limit_bytes) {
  const std::byte* data = bytes.data();
  MUSTER_TRY_VOID(check_frame_begin(bytes));
  if (const auto version = load_little<std::uint16_t>(data + at_version); version != frame_version)
    return fail(Code::corrupt,
                fmt::format("frame version {}; this process speaks version {}", version, frame_version));
  if (load_little<std::uint64_t>(data + at_header_checksum) != header_checksum(data))
    return fail(Code::corrupt, "a frame's header does not match its checksum");
  if (load_little<std::uint32_t>(data + at_reserved) != 0)
    return fail(Code::corrupt, "a frame's reserved bytes are not zero");
  const FrameHeader header{.type = load_little<std::uint16_t>(data + at_type),
                           .flags = load_little<std::uint32_t>(data + at_flags),
                           .epoch = load_little<std::uint64_t>(data + at_epoch),
                           .job_id = load_little<std::uint64_t>(data + at_job_id),
                           .sequence = load_little<std::uint64_t>(data + at_sequence),
                           .payload_size_bytes = load_little<std::uint64_t>(data + at_payload_size),
                           .payload_checksum = load_little<std::uint64_t>(data + at_payload_checksum)};
  if (header.payload_size_bytes > payload_limit_bytes)
    return fail(Code::corrupt, fmt::format("a frame's payload of {} bytes is over the limit of {}",
                                           header.payload_size_bytes, payload_limit_bytes));
  return header;
}

Result<> check_frame_begin(std::span<const std::byte> bytes) {
  std::array<std::byte, sizeof magic> begin;
  store_little(begin.data(), magic);
  const std::size_t size = std::min(bytes.size(), begin.size());
  if (!std::equal(begin.begin(), begin.begin() + size, bytes.begin()))
    return fail(Code::corrupt, "not a Muster frame: the first bytes are not MSTR");
  return {};
}

std::uint64_t payload_checksum(std::span<const std::byte> payload) {
  return hash_bytes(payload.data(), payload.size());
}

Result<> check_payload(const FrameHeader& header, std::span<const std::byte> payload) {
  if (payload.size() != header.payload_size_bytes || payload_checksum(payload) != header.payload_checksum)
    return fail(Code::corrupt, fmt::format("the payload of a frame of type {:#06x} ({} bytes) does not match "
                                           "its checksum",
                                           header.type, payload.size()));
  return {};
}

std::vector<std::byte> encode_frame(FrameHeader header, std::span<const std::byte> payload) {
  header.payload_size_bytes = payload.size();
  header.payload_checksum = payload_checksum(payload);
  const FrameHeaderBytes head = encode_header(header);
  std::vector<std::byte> bytes(frame_header_size_bytes + payload.size());
  std::copy(head.begin(), head.end(), bytes.begin());
  std::copy(payload.begin(), payload.end(), bytes.begin() + frame_header_size_bytes);
  return bytes;
}

void FrameDecoder::append(std::span<const std::byte> bytes) {
  if (failure_) return;
  forget_consumed();
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

// A peer that once sent much shall not hold memory for ever: there may be thousands.
void FrameDecoder::forget_consumed() {
  if (begin_ == buffer_.size() && buffer_.capacity() > kept_size_bytes) buffer_ = {};
  buffer_.erase(buffer_.begin(),
                buffer_.begin() + static_cast<std::ptrdiff_t>(std::min(begin_, buffer_.size())));
  begin_ = 0;
}

Result<std::optional<Frame>> FrameDecoder::next() {
  if (failure_) return fail(*failure_);
  const auto refuse = [&](Error error) {
    failure_ = error;
    buffer_ = {};
    begin_ = 0;
    return fail(std::move(error));
  };
  const std::span<const std::byte> rest(buffer_.data() + begin_, buffer_.size() - begin_);
  if (!header_) {
    if (rest.empty()) {
      forget_consumed();
      return std::nullopt;
    }
    if (rest.size() < frame_header_size_bytes) return std::nullopt;
    auto header = decode_header(rest.first<frame_header_size_bytes>(), payload_limit_bytes_);
    if (!header) return refuse(std::move(header).error());
    header_ = *header;
  }
  const std::uint64_t wanted = frame_header_size_bytes + header_->payload_size_bytes;
  if (rest.size() < wanted) return std::nullopt;
  const auto payload = rest.subspan(frame_header_size_bytes, header_->payload_size_bytes);
  if (auto sound = check_payload(*header_, payload); !sound) return refuse(std::move(sound).error());
  Frame frame{*header_, {payload.begin(), payload.end()}};
  begin_ += wanted;
  header_.reset();
  return std::optional<Frame>(std::move(frame));
}

}  // namespace muster::net
