// Memory that tensors share.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace muster {

class Buffer {
 public:
  static constexpr std::size_t alignment_bytes = 64;  // a cache line, and an AVX-512 register

  // New memory, aligned, uninitialised.
  static std::shared_ptr<Buffer> allocate(std::size_t size_bytes);
  // Borrowed memory (numpy's, a shared segment's); `release` runs when the last user lets go.
  static std::shared_ptr<Buffer> borrow(std::byte* data, std::size_t size_bytes,
                                        std::function<void()> release);
  // In place of memory that this process does not have; `reason` says why, and who has it: "'conv1.weight' is
  // on worker 3". Its data must not be asked for.
  static std::shared_ptr<Buffer> absent(std::size_t size_bytes, std::string reason);

  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }
  // Null when there is memory.
  const std::string* absence() const { return absence_.get(); }

 private:
  Buffer(std::byte* data, std::size_t size_bytes, std::function<void()> release);

  std::byte* data_;
  std::size_t size_bytes_;
  std::function<void()> release_;
  std::unique_ptr<const std::string> absence_;
};

}  // namespace muster
