#include "muster/collective/frames.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::collective {

Result<> check_origin(const net::FrameHeader& header, const FrameOrigin& own) {
  if (header.job_id != own.job_id)
    return fail(Code::refused,
                fmt::format("job {:016x} is not this group's job {:016x}", header.job_id, own.job_id));
  if (header.epoch != own.epoch)
    return fail(Code::refused, fmt::format("epoch {} is not this group's epoch {}", header.epoch, own.epoch));
  return {};
}

void FrameList::add_incoming(FrameType type, std::span<std::byte> payload) {
  frames_.push_back({.header = {}, .type = type, .payload = payload});
}

void FrameList::add_outgoing(FrameType type, std::span<const std::byte> payload, const FrameSource& source) {
  // Sending only reads the bytes; a list serves both ways.
  add_incoming(type, {const_cast<std::byte*>(payload.data()), payload.size()});
  frames_.back().unmade = source;
}

// Here the payload is hashed.
void FrameList::make_header(Frame& frame) {
  frame.header = net::encode_header({.type = static_cast<std::uint16_t>(frame.type),
                                     .epoch = frame.unmade->origin.epoch,
                                     .job_id = frame.unmade->origin.job_id,
                                     .sequence = frame.unmade->sequence,
                                     .payload_size_bytes = frame.payload.size(),
                                     .payload_checksum = net::payload_checksum(frame.payload)});
  frame.unmade.reset();
}

std::span<std::byte> FrameList::bytes_of(std::size_t piece) {
  Frame& frame = frames_[piece / 2];
  return piece % 2 == 0 ? std::span<std::byte>(frame.header) : frame.payload;
}

std::size_t FrameList::position() const {
  std::size_t bytes = offset_;
  for (std::size_t piece = 0; piece < piece_; ++piece) bytes += size_of(piece);
  return bytes;
}

std::size_t FrameList::size_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t piece = 0; piece < 2 * frames(); ++piece) bytes += size_of(piece);
  return bytes;
}

void FrameList::seek(std::size_t position) {
  piece_ = offset_ = 0;
  while (position > 0) position -= take(position);
}

std::size_t FrameList::take(std::size_t size_bytes) {
  const std::size_t taken = std::min(size_bytes, bytes_of(piece_).size() - offset_);
  offset_ += taken;
  if (offset_ == bytes_of(piece_).size()) {
    ++piece_;
    offset_ = 0;
    if (piece_ % 2 == 1 && size_of(piece_) == 0) ++piece_;
  }
  return taken;
}

std::span<const iovec> FrameList::rest(std::array<iovec, piece_limit>& storage) {
  std::size_t used = 0, used_bytes = 0;
  for (std::size_t index = piece_; index < 2 * frames() && used < storage.size(); ++index) {
    if (used_bytes >= enough_bytes) break;
    if (frames_[index / 2].unmade) make_header(frames_[index / 2]);
    const auto bytes = bytes_of(index).subspan(index == piece_ ? offset_ : 0);
    storage[used++] = {.iov_base = bytes.data(), .iov_len = bytes.size()};
    used_bytes += bytes.size();
  }
  return std::span(storage).first(used);
}

}  // namespace muster::collective
