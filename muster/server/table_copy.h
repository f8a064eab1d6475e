// Table copy: the rows of a table as they were at one moment, read block by block while updates go on: a row
// that is about to change before its block was read is set aside. Private to server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::server {

// How slots lie in a file: blocks of so many slots (the last one may have less), each with the keys of its
// slots (their ids), then the rows.
struct SlotBlocks {
  std::uint64_t slots = 0;
  std::uint32_t key_size_bytes = 0;
  std::uint32_t row_size_bytes = 0;
  std::uint32_t per_block = 1;

  std::uint64_t count() const { return (slots + per_block - 1) / per_block; }
  std::uint64_t begin(std::uint64_t block) const { return block * per_block; }
  std::uint64_t slots_of(std::uint64_t block) const {
    return begin(block + 1) <= slots ? per_block : slots - begin(block);
  }
  std::size_t keys_size_bytes(std::uint64_t block) const { return slots_of(block) * key_size_bytes; }
  std::size_t size_bytes(std::uint64_t block) const {
    return slots_of(block) * (std::size_t{key_size_bytes} + row_size_bytes);
  }
  friend bool operator==(const SlotBlocks&, const SlotBlocks&) = default;
};

class TableCopy {
 public:
  explicit TableCopy(const SlotBlocks& blocks);

  const SlotBlocks& blocks() const { return blocks_; }
  // Whether the slot must be set aside before it changes.
  bool wants(std::uint32_t slot) const {
    return slot >= begin_ && slot < blocks_.slots && (aside_[slot / 64] >> (slot % 64) & 1) == 0;
  }
  void set_aside(std::uint32_t slot, std::span<const std::byte> key, std::span<const std::byte> row);
  // The next block, in order: what was set aside of it goes over what was read of its slots now.
  void finish(std::uint64_t block, std::span<std::byte> bytes);

 private:
  struct Aside {
    std::vector<std::uint32_t> slots = {};
    std::vector<std::byte> bytes = {};
  };

  SlotBlocks blocks_;
  std::uint64_t begin_ = 0;           // slots before it are read
  std::vector<std::uint64_t> aside_;  // a bit for each slot
  std::vector<Aside> by_block_;
};

}  // namespace muster::server
