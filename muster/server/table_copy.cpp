#include "muster/server/table_copy.h"

#include <cstring>
#include <utility>

namespace muster::server {

TableCopy::TableCopy(const SlotBlocks& blocks)
    : blocks_(blocks), aside_((blocks.slots + 63) / 64), by_block_(blocks.count()) {}

void TableCopy::set_aside(std::uint32_t slot, std::span<const std::byte> key,
                          std::span<const std::byte> row) {
  aside_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  Aside& aside = by_block_[slot / blocks_.per_block];
  aside.slots.push_back(slot);
  aside.bytes.insert(aside.bytes.end(), key.begin(), key.end());
  aside.bytes.insert(aside.bytes.end(), row.begin(), row.end());
}

void TableCopy::finish(std::uint64_t block, std::span<std::byte> bytes) {
  const Aside aside = std::exchange(by_block_[block], {});
  const std::byte* from = aside.bytes.data();
  std::byte* const rows = bytes.data() + blocks_.keys_size_bytes(block);
  for (const std::uint32_t slot : aside.slots) {
    const std::size_t place = slot - blocks_.begin(block);
    std::memcpy(bytes.data() + place * blocks_.key_size_bytes, from, blocks_.key_size_bytes);
    from += blocks_.key_size_bytes;
    std::memcpy(rows + place * blocks_.row_size_bytes, from, blocks_.row_size_bytes);
    from += blocks_.row_size_bytes;
  }
  begin_ = blocks_.begin(block) + blocks_.slots_of(block);
}

}  // namespace muster::server
