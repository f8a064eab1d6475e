// Row memory: the rows of a table one after the other, in the order in which they were made, whatever their
// ids are: a row's values, and behind them its optimizer's state. Memory is taken for rows that are made, not
// for those that may come. Private to server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/server/row_index.h"
#include "muster/server/zero_pages.h"

namespace muster::server {

class RowMemory {
 public:
  // At most `rows_max` rows will be there at once: small tables take little address space.
  RowMemory(std::size_t row_size_bytes, std::uint64_t rows_max);

  // Before `count` rows are added: then that cannot fail.
  Result<> reserve(std::size_t count);
  std::uint32_t add();
  void remove(std::uint32_t slot) { free_.push_back(slot); }
  std::byte* row(std::uint32_t slot) const {
    return chunks_[slot >> shift_].data() + (slot & mask_) * row_size_bytes_;
  }
  std::size_t rows() const { return made_ - free_.size(); }
  // Slots that were ever made: rows, and those that were removed.
  std::size_t slots() const { return made_; }
  // Slots that lie one after the other: those of a piece of memory.
  std::size_t slots_together() const { return std::size_t{mask_} + 1; }
  // So many slots at once, where there is none yet: for rows that come from a file.
  Result<> make(std::size_t slots);
  // Address space; what was never touched of it takes no memory.
  std::size_t size_bytes() const { return chunks_.size() * chunk_size_bytes(); }

 private:
  std::size_t chunk_size_bytes() const { return (std::size_t{mask_} + 1) * row_size_bytes_; }

  std::size_t row_size_bytes_;
  unsigned shift_ = 0;
  std::uint32_t mask_ = 0;
  std::vector<ZeroPages> chunks_;
  std::size_t made_ = 0;
  std::vector<std::uint32_t> free_;
};

}  // namespace muster::server
