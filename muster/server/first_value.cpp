#include "muster/server/first_value.h"

#include <algorithm>
#include <array>

#include "muster/net/net.h"
#include "muster/server/drawn_values.h"

namespace muster::server {
namespace {

void fill(const FirstValue& first_value, const DrawnFrom& from, std::span<float> values) {
  switch (first_value.kind) {
    case FirstValue::Kind::constant:
      std::ranges::fill(values, static_cast<float>(first_value.mean));
      return;
    case FirstValue::Kind::normal:
      return draw_normal(from, first_value.scale, first_value.mean, values);
    case FirstValue::Kind::uniform:
      return draw_uniform(from, first_value.scale, values);
  }
}

// Each of any 64-bit ids has a stream of its own: counted on from id to id, those of wide rows would overlap.
std::uint64_t stream_of_id(std::uint64_t name, std::uint64_t id) {
  std::array<std::byte, sizeof id> bytes;
  net::store_little(bytes.data(), id);
  return hash_bytes(bytes.data(), bytes.size(), name);
}

}  // namespace

FirstValues::FirstValues(const TableSpec& spec)
    : first_value_(spec.first_value),
      has_vocabulary_(spec.sharding != Sharding::hash),
      is_rounded_(spec.dtype == DType::bfloat16),
      seed_(spec.seed),
      name_(hash_text(spec.name)) {}

void FirstValues::write(std::uint64_t id, std::span<float> values) const {
  if (has_vocabulary_)
    fill(first_value_, {.seed = seed_, .stream = name_, .index = id * values.size()}, values);
  else
    fill(first_value_, {.seed = seed_, .stream = stream_of_id(name_, id)}, values);
  if (is_rounded_)
    for (float& value : values) value = bfloat16(value);
}

}  // namespace muster::server
