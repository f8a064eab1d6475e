// Copies of bytes that are about to change: the same bytes, which go to many ranks, are copied once, and the
// memory of copies that nobody holds any more is used again.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace muster::collective {

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
  using Memory = std::vector<std::byte>;
  std::shared_ptr<Memory> memory_of(std::size_t size_bytes);

  struct Made {
    std::span<const std::byte> from;
    Copy copy;
  };
  std::vector<Made> made_;
  std::vector<std::shared_ptr<Memory>> all_;
};

}  // namespace muster::collective
