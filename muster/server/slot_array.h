// Slot array: something small for each slot of a table's memory, in pieces that never move. Private to
// server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/server/zero_pages.h"

namespace muster::server {

template <class T>
class SlotArray {
 public:
  static constexpr std::size_t piece = std::size_t{1} << 16;

  // Before slots below `count` are used; new ones are zeros.
  Result<> reserve(std::size_t count) {
    while (pieces_.size() * piece < count) {
      MUSTER_TRY(ZeroPages pages, ZeroPages::reserve(piece * sizeof(T), "the ids of rows"));
      pieces_.push_back(std::move(pages));
    }
    return {};
  }
  T& operator[](std::size_t slot) const {
    return reinterpret_cast<T*>(pieces_[slot / piece].data())[slot % piece];
  }

 private:
  std::vector<ZeroPages> pieces_;
};

}  // namespace muster::server
