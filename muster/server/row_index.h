// Row index: in which slot of a table's memory a row is. Private to server.
//
// Both kinds have `find`, `insert` and `prefetch`; a table is compiled for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "muster/server/sharding.h"
#include "muster/server/zero_pages.h"

namespace muster::server {

inline constexpr std::uint32_t no_slot = 0xFFFFFFFF;

// Of a vocabulary: 4 bytes for each row of the range, in memory once a row near it is made.
class RangeIndex {
 public:
  // What is kept of a row beside its values, so that files need no index.
  struct Key {
    std::uint32_t place = 0;  // in the range
  };
  static Result<RangeIndex> make(RowRange range);

  std::uint32_t find(std::uint64_t id) const { return places()[id - range_.begin] - 1; }
  // The id has no slot yet. Cannot fail.
  void insert(std::uint64_t id, std::uint32_t slot) { places()[id - range_.begin] = slot + 1; }
  void prefetch(std::uint64_t id) const { __builtin_prefetch(places() + (id - range_.begin)); }
  // Before `count` inserts.
  Result<> reserve(std::size_t) { return {}; }
  const RowRange& range() const { return range_; }
  Key key(std::uint64_t id, std::uint64_t) const { return {static_cast<std::uint32_t>(id - range_.begin)}; }
  std::uint64_t id(Key key) const { return range_.begin + key.place; }
  bool is_row(Key) const { return true; }  // none is ever removed

 private:
  RangeIndex(RowRange range, ZeroPages pages) : range_(range), pages_(std::move(pages)) {}
  std::uint32_t* places() const { return reinterpret_cast<std::uint32_t*>(pages_.data()); }

  RowRange range_;
  ZeroPages pages_;  // slot + 1 of each row, 0: none
};

// Of any 64-bit ids: open addressing with linear probing, at most 2/3 full.
class HashIndex {
 public:
  struct Key {
    std::uint64_t id = 0;
    std::uint64_t steps = 0;  // done after its last update; 0: no row
  };
  static Result<HashIndex> make();

  std::uint32_t find(std::uint64_t id) const;
  void insert(std::uint64_t id, std::uint32_t slot);
  void erase(std::uint64_t id);
  void prefetch(std::uint64_t id) const { __builtin_prefetch(entries() + begin_of(id)); }
  Result<> reserve(std::size_t count);
  std::size_t size() const { return size_; }
  Key key(std::uint64_t id, std::uint64_t steps) const { return {id, steps}; }
  std::uint64_t id(Key key) const { return key.id; }
  bool is_row(Key key) const { return key.steps > 0; }

 private:
  struct Entry {
    std::uint64_t id;
    std::uint32_t place;  // slot + 1; 0: empty
  };
  static Result<ZeroPages> room_for(std::size_t entries);
  explicit HashIndex(ZeroPages pages, std::size_t capacity) : pages_(std::move(pages)), mask_(capacity - 1) {}
  Entry* entries() const { return reinterpret_cast<Entry*>(pages_.data()); }
  std::size_t begin_of(std::uint64_t id) const { return mixed(id) & mask_; }

  ZeroPages pages_;
  std::size_t mask_;
  std::size_t size_ = 0;
};

}  // namespace muster::server
