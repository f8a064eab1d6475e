// Memory that tensors share.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace muster {

class Buffer {
 public:
  static constexpr std::size_t alignment_bytes = 64;  // a cache line, and an AVX-512 register

  // New memory, aligned, uninitialised.
  static std::shared_ptr<Buffer> allocate(std::size_t size_bytes);
  // Somebody else's memory (numpy's, a shared segment's); `release` runs when the last user lets go.
  static std::shared_ptr<Buffer> borrow(std::byte* data, std::size_t size_bytes,
                                        std::function<void()> release);

  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  Buffer(std::byte* data, std::size_t size_bytes, std::function<void()> release);

  std::byte* data_;
  std::size_t size_bytes_;
  std::function<void()> release_;
};

}  // namespace muster
