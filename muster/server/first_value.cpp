#include "muster/server/first_value.h"

#include <array>
#include <cmath>
#include <numbers>

#include "muster/net/net.h"

namespace muster::server {
namespace {

// RandomStream::normal, of which two neighbours share a draw: here they share its roots and logarithms, too.
class Normals {
 public:
  explicit Normals(const RandomStream& stream) : stream_(stream) {}

  double operator()(std::uint64_t index) {
    if (index / 2 != pair_) draw(index / 2);
    return both_[index % 2];
  }

 private:
  void draw(std::uint64_t pair) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - stream_.uniform(2 * pair)));
    const double angle = 2.0 * std::numbers::pi * stream_.uniform(2 * pair + 1);
    both_ = {radius * std::cos(angle), radius * std::sin(angle)};
    pair_ = pair;
  }

  const RandomStream& stream_;
  std::uint64_t pair_ = ~std::uint64_t{0};
  std::array<double, 2> both_ = {};
};

void fill(const FirstValue& first_value, const RandomStream& stream, std::uint64_t index,
          std::span<float> values) {
  Normals normals(stream);
  const double scale = first_value.scale, mean = first_value.mean;
  for (float& value : values) {
    switch (first_value.kind) {
      case FirstValue::Kind::constant:
        value = static_cast<float>(mean);
        break;
      case FirstValue::Kind::normal:
        value = static_cast<float>(mean + scale * normals(index++));
        break;
      case FirstValue::Kind::uniform:
        value = static_cast<float>(scale * (2 * stream.uniform(index++) - 1));
        break;
    }
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
    fill(first_value_, RandomStream(seed_, name_), id * values.size(), values);
  else
    fill(first_value_, RandomStream(seed_, stream_of_id(name_, id)), 0, values);
  if (is_rounded_)
    for (float& value : values) value = bfloat16(value);
}

}  // namespace muster::server
