// Outgoing batch: what a worker sends to a server in a step. Private to server.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "muster/server/wire.h"

namespace muster::server {

// A frame that is sent again as it is, or with a later generation in its
// header.
class OutgoingBatch {
 public:
  // Of a pull, how many bytes its answer has.
  explicit OutgoingBatch(std::vector<std::byte> frame, std::size_t answer_bytes = 0)
      : raw_(std::move(frame)), answer_bytes_(answer_bytes) {}
  // Travels as a pull does, and asks for something else.
  static OutgoingBatch of(const SaveOrder& order) {
    std::vector<std::byte> frame(net::frame_header_size_bytes);
    const auto payload = encode(order);
    frame.insert(frame.end(), payload.begin(), payload.end());
    OutgoingBatch made(std::move(frame));
    made.saves_ = true;
    return made;
  }
  bool saves() const { return saves_; }

  std::span<const std::byte> payload() const {
    return std::span(frame_ != nullptr ? *frame_ : raw_).subspan(net::frame_header_size_bytes);
  }
  std::size_t answer_bytes() const { return answer_bytes_; }

  FramePtr with(const net::FrameHeader& header) const {
    if (frame_ != nullptr && header_ == header) return frame_;
    if (frame_ != nullptr) raw_ = *frame_;
    frame_ = finish_batch(std::move(raw_), header);
    header_ = header;
    return frame_;
  }

 private:
  mutable std::vector<std::byte> raw_;
  mutable FramePtr frame_;
  mutable net::FrameHeader header_;
  std::size_t answer_bytes_;
  bool saves_ = false;
};

}  // namespace muster::server
