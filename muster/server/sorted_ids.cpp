#include "muster/server/sorted_ids.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace muster::server {
namespace {

struct Placed {
  std::uint64_t id;
  std::uint32_t place;
};

constexpr unsigned digit_bits = 11;
constexpr std::size_t digits = std::size_t{1} << digit_bits;
constexpr std::size_t gathered_ahead = 8;

// One pass of a stable sort.
template <class Digit>
void sort_by(const Digit& digit, std::vector<Placed>& all, std::vector<Placed>& other) {
  std::array<std::uint32_t, digits> ends = {};
  for (const Placed& each : all) ++ends[digit(each)];
  std::uint32_t begin = 0;
  for (std::uint32_t& end : ends) begin += std::exchange(end, begin);
  for (const Placed& each : all) other[ends[digit(each)]++] = each;
  all.swap(other);
}

// By server, then by id; equal ids stay in their order.
void sort(std::vector<Placed>& all, std::uint64_t greatest, const Owners& owners, std::uint32_t servers) {
  std::vector<Placed> other(all.size());
  const auto bits = static_cast<unsigned>(std::bit_width(greatest));
  for (unsigned shift = 0; shift < bits; shift += digit_bits)
    sort_by([shift](const Placed& each) { return (each.id >> shift) % digits; }, all, other);
  if (!owners.ascend() && servers > 1) {
    const auto server = [&](const Placed& each) { return owners.of(each.id); };
    if (servers <= digits) return sort_by(server, all, other);
    std::stable_sort(all.begin(), all.end(),
                     [&](const Placed& a, const Placed& b) { return server(a) < server(b); });
  }
}

}  // namespace

SortedIds::SortedIds(std::span<const std::uint64_t> ids, const Owners& owners, std::uint32_t servers) {
  std::vector<Placed> all(ids.size());
  std::uint64_t greatest = 0;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    all[i] = {.id = ids[i], .place = i};
    greatest = std::max(greatest, ids[i]);
  }
  sort(all, greatest, owners, servers);
  places_.reserve(all.size());
  ids_.reserve(all.size());
  begins_.reserve(all.size() + 1);
  for (const Placed& each : all) {
    if (ids_.empty() || ids_.back() != each.id) {
      const std::uint32_t server = owners.of(each.id);
      while (servers_.size() <= server) servers_.push_back(ids_.size());
      begins_.push_back(static_cast<std::uint32_t>(places_.size()));
      ids_.push_back(each.id);
    }
    places_.push_back(each.place);
  }
  servers_.resize(servers + std::size_t{1}, ids_.size());
  begins_.push_back(static_cast<std::uint32_t>(places_.size()));
}

void SortedIds::spread(std::uint32_t server, std::span<const float> rows, std::size_t width,
                       std::span<float> batch) const {
  for (std::size_t i = 0; i * width < rows.size(); ++i)
    spread_row(servers_[server] + i, rows.data() + i * width, width, batch);
}

void SortedIds::spread_row(std::size_t i, const float* row, std::size_t width, std::span<float> batch) const {
  for (const std::uint32_t place : places(i))
    std::memcpy(batch.data() + place * width, row, width * sizeof(float));
}

void SortedIds::gather(std::uint32_t server, std::span<const float> batch, std::size_t width,
                       std::span<float> rows) const {
  for (std::size_t i = 0; i * width < rows.size(); ++i) {
    const std::size_t id = servers_[server] + i;
    const auto all = places(id);
    if (begins_[id] + gathered_ahead < places_.size())
      __builtin_prefetch(batch.data() + places_[begins_[id] + gathered_ahead] * width);
    float* const row = rows.data() + i * width;
    std::memcpy(row, batch.data() + all[0] * width, width * sizeof(float));
    for (const std::uint32_t place : all.subspan(1))
      for (std::size_t k = 0; k < width; ++k) row[k] += batch[place * width + k];
  }
}

}  // namespace muster::server
