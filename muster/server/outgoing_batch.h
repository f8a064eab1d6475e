// Outgoing batch: what a worker sends to a server in a step. Private to server.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "muster/server/wire.h"

namespace muster::server {

// A frame that is sent again as it is, or with a later generation in its
// header.
class OutgoingBatch {
 public:
  explicit OutgoingBatch(std::vector<std::byte> frame) : raw_(std::move(frame)) {}

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
};

}  // namespace muster::server
