// First values: a row before its first update. Private to server.
#pragma once

#include <cstdint>
#include <span>

#include "muster/server/table_spec.h"

namespace muster::server {

class FirstValues {
 public:
  explicit FirstValues(const TableSpec& spec);
  // The row `id`, of width values.
  void write(std::uint64_t id, std::span<float> values) const;

 private:
  FirstValue first_value_;
  bool has_vocabulary_;
  bool is_rounded_;  // to bfloat16
  std::uint64_t seed_;
  std::uint64_t name_;
};

}  // namespace muster::server
