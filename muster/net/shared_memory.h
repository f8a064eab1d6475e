// Memory that processes of one host share, without a name anywhere: it is gone with its last user, however
// that one ends. Sleeping on a word of it. And what another process of the host has in memory of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "muster/base/base.h"
#include "muster/net/descriptor.h"

namespace muster::net {

// Pages of a segment in the address space of this process.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  ~Mapping();

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  friend class Segment;
  Mapping(std::byte* data, std::size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}

  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// A part of a segment, in whole pages.
struct Extent {
  std::size_t offset_bytes = 0;
  std::size_t size_bytes = 0;
};

class Segment {
 public:
  // Zeroed memory, reserved now rather than at first touch, its size sealed: reading it can never raise
  // SIGBUS. Behind it lie up to `room_bytes` of room, which is only numbers until it is reserved; less where
  // the system limits the size of files.
  static Result<Segment> create(std::size_t size_bytes, std::size_t room_bytes = 0);
  // Maps a segment that another process created; it must be sealed, of exactly this size, and have at most as
  // much room.
  static Result<Segment> open(ProcessDescriptor fd, std::size_t size_bytes, std::size_t room_bytes = 0);

  Segment(Segment&& other) = default;
  Segment& operator=(Segment&&) = delete;

  std::byte* data() const { return mapping_.data(); }
  std::size_t size_bytes() const { return mapping_.size_bytes(); }
  // The descriptor to hand to other processes.
  int fd() const { return fd_.get(); }

  // The room, which begins at size_bytes(); any process may reserve a part, map it, and release it again.
  // Touching a part that is not reserved may raise SIGBUS. Any thread.
  std::size_t room_bytes() const { return room_bytes_; }
  Result<> reserve(Extent extent) const;
  Result<Mapping> map(Extent extent) const;
  // Gives the memory back. What was mapped of it stays mapped, and holds zeros once reserved again.
  void release(Extent extent) const;

 private:
  Segment(ProcessDescriptor fd, Mapping mapping, std::size_t room_bytes)
      : fd_(std::move(fd)), mapping_(std::move(mapping)), room_bytes_(room_bytes) {}

  ProcessDescriptor fd_;
  Mapping mapping_;
  std::size_t room_bytes_;
};

// Sleeps while `word` holds `expected`, at most `timeout`; may also return early for no reason.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout);
void futex_wake_all(std::atomic<std::uint32_t>& word);

// Copies what process `id` has at `address`, in one copy: false where the system does not let this process
// (process_vm_readv(2); another user, Yama, a container), or there is nothing. Any thread.
bool read_of_process(std::int32_t id, std::uint64_t address, std::span<std::byte> into);

}  // namespace muster::net
