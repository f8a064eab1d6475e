// Memory that processes of one host share, without a name anywhere: it is gone with its last user, however
// that one ends.
#pragma once

#include <cstddef>

#include "muster/base/base.h"
#include "muster/net/process_descriptor.h"

namespace muster::net {

class Segment {
 public:
  // Zeroed memory, reserved now rather than at first touch, its size sealed: reading it can never raise
  // SIGBUS.
  static Result<Segment> create(std::size_t size_bytes);
  // Maps a segment that another process created; it must be sealed and of exactly this size.
  static Result<Segment> open(ProcessDescriptor fd, std::size_t size_bytes);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }
  // The descriptor to hand to other processes.
  int fd() const { return fd_.get(); }

 private:
  Segment(ProcessDescriptor fd, std::byte* data, std::size_t size_bytes)
      : fd_(std::move(fd)), data_(data), size_bytes_(size_bytes) {}
  static Result<Segment> map(ProcessDescriptor fd, std::size_t size_bytes);

  ProcessDescriptor fd_;
  std::byte* data_;
  std::size_t size_bytes_;
};

}  // namespace muster::net
