// Row cache: rows of a table that a worker keeps, those that it has used lately, each with what was applied
// in it. Private to server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace muster::server {

class RowCache {
 public:
  RowCache(std::size_t rows_max, std::size_t width) : rows_max_(rows_max), width_(width) {}

  struct Row {
    const float* values = nullptr;
    std::uint64_t applied = 0;  // steps before this one are in it
  };
  // Null where the row is not here, or lacks steps before `least`. It holds until the next put().
  Row find(std::uint64_t id, std::uint64_t least);
  // In the place of one that has not been used for a while.
  void put(std::uint64_t id, Row row);
  void clear();
  bool is_empty() const { return slots_.empty(); }
  bool keeps_rows() const { return rows_max_ > 0; }

 private:
  struct Slot {
    std::uint64_t id = 0;
    std::uint64_t applied = 0;
    bool is_used = false;  // again, since the hand has passed
  };
  std::uint32_t free_slot();

  std::size_t rows_max_;
  std::size_t width_;
  std::unordered_map<std::uint64_t, std::uint32_t> places_;
  std::vector<Slot> slots_;
  std::vector<float> values_;
  std::uint32_t hand_ = 0;
};

}  // namespace muster::server
