// Copies of bytes that are about to change: the same bytes, which go to many ranks, are copied once. They lie
// in chunks of memory, small ones together, and a chunk of which no copy is held any more is used again.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace muster::collective {

// So much of what was sent is copied at most; for more the other side's word is awaited, that it has it. An
// all_reduce of two ranks leaves this much at its end, and copying it costs less than a wait; so do two
// windows of messages. For calls both sides count on it: docs/formats/collective.md.
inline constexpr std::size_t copied_limit_bytes = (2 << 20) + (64 << 10);

class Copies {
 public:
  using Holder = std::shared_ptr<const void>;
  struct Copy {
    std::span<const std::byte> bytes;
    Holder holder;
  };
  Copy of(std::span<const std::byte> bytes);
  // The bytes that were copied so far may be others from here on.
  void forget() { made_.clear(); }

 private:
  struct Chunk {
    std::vector<std::byte> bytes;
    std::size_t used = 0;
  };
  std::shared_ptr<Chunk> chunk_for(std::size_t size_bytes);

  struct Made {
    std::span<const std::byte> from;
    Copy copy;
  };
  std::vector<Made> made_;
  std::vector<std::shared_ptr<Chunk>> chunks_;
  std::size_t filling_ = 0;  // of them
};

}  // namespace muster::collective
