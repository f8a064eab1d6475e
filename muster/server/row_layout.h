// Row layout: a row at rest: `width` values of the table's dtype, then the states, float32, of `width`
// numbers each. Private to server.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "muster/server/row_rule.h"

namespace muster::server {

class RowLayout {
 public:
  RowLayout(const TableSpec& spec, std::size_t states)
      : width_(spec.width), states_(states), is_low_(spec.dtype == DType::bfloat16) {
    values_size_bytes_ = width_ * muster::size_bytes(spec.dtype);
    // States begin where a float may lie.
    states_begin_ = (values_size_bytes_ + sizeof(float) - 1) / sizeof(float) * sizeof(float);
  }

  std::size_t width() const { return width_; }
  std::size_t states() const { return states_; }
  std::size_t size_bytes() const { return states_begin_ + states_ * width_ * sizeof(float); }

  float* state(std::byte* row, std::size_t index) const {
    return reinterpret_cast<float*>(row + states_begin_) + index * width_;
  }
  void read_values(const std::byte* row, float* values) const {
    if (!is_low_) {
      std::memcpy(values, row, values_size_bytes_);
      return;
    }
    const auto* low = reinterpret_cast<const bfloat16*>(row);
    for (std::size_t i = 0; i < width_; ++i) values[i] = low[i];
  }
  void write_values(std::byte* row, const float* values) const {
    if (!is_low_) {
      std::memcpy(row, values, values_size_bytes_);
      return;
    }
    auto* low = reinterpret_cast<bfloat16*>(row);
    for (std::size_t i = 0; i < width_; ++i) low[i] = bfloat16(values[i]);
  }
  void prefetch(const std::byte* row) const {
    for (std::size_t at = 0; at < size_bytes() && at < prefetched_bytes; at += cache_line)
      __builtin_prefetch(row + at);
  }
  void prefetch_values(const std::byte* row) const {
    for (std::size_t at = 0; at < values_size_bytes_ && at < prefetched_bytes; at += cache_line)
      __builtin_prefetch(row + at);
  }

 private:
  static constexpr std::size_t cache_line = 64;
  static constexpr std::size_t prefetched_bytes = 512;  // the processor goes on by itself

  std::size_t width_;
  std::size_t states_;
  bool is_low_;
  std::size_t values_size_bytes_ = 0;
  std::size_t states_begin_ = 0;
};

}  // namespace muster::server
