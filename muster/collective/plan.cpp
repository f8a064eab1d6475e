#include "muster/collective/plan.h"

#include <map>

namespace muster::collective {
namespace {

constexpr std::size_t line_size_bytes = 64;
constexpr std::size_t small_shared_bytes = 16 << 10;
constexpr std::size_t small_remote_bytes = 4 << 10;
constexpr std::size_t chunk_shared_bytes = 1 << 20;
constexpr std::size_t chunk_remote_bytes = 4 << 20;
// Shared memory of one host, all slots together: many ranks make their chunks smaller.
constexpr std::size_t shared_limit_bytes = 256 << 20;

std::size_t round_up_to_line(std::size_t size_bytes) {
  return (size_bytes + line_size_bytes - 1) / line_size_bytes * line_size_bytes;
}

}  // namespace

Sizes sizes_of(const Group& group) {
  std::map<std::string, std::size_t> ranks_of_host;
  for (const Endpoint& endpoint : group.endpoints) ++ranks_of_host[endpoint.host_key];
  std::size_t most = 0;
  for (const auto& [key, ranks] : ranks_of_host) most = std::max(most, ranks);
  const bool one_host = ranks_of_host.size() == 1;
  const std::size_t fitting = shared_limit_bytes / (2 * most + 2) / line_size_bytes * line_size_bytes;
  const std::size_t wanted = most == 1 ? chunk_remote_bytes : chunk_shared_bytes;
  return {.small_size_bytes = one_host ? small_shared_bytes : small_remote_bytes,
          .chunk_size_bytes = std::min(wanted, std::max(fitting, line_size_bytes))};
}

std::vector<std::uint32_t> local_ranks(const Group& group) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < group.endpoints.size(); ++rank)
    if (group.endpoints[rank].host_key == group.endpoints[group.rank].host_key) ranks.push_back(rank);
  return ranks;
}

Chunks::Chunks(std::size_t size_bytes, std::size_t chunk_limit_bytes)
    : size_bytes_(size_bytes),
      count_((size_bytes + chunk_limit_bytes - 1) / chunk_limit_bytes),
      stride_(count_ == 0 ? 0 : round_up_to_line((size_bytes + count_ - 1) / count_)) {}

Range Chunks::operator[](std::size_t index) const {
  const std::size_t begin = std::min(size_bytes_, index * stride_);
  return {.begin = begin, .size = std::min(stride_, size_bytes_ - begin)};
}

Range slice_of(std::size_t chunk_size_bytes, std::uint32_t rank, std::uint32_t ranks) {
  const std::size_t stride = round_up_to_line((chunk_size_bytes + ranks - 1) / ranks);
  const std::size_t begin = std::min(chunk_size_bytes, rank * stride);
  return {.begin = begin, .size = std::min(stride, chunk_size_bytes - begin)};
}

}  // namespace muster::collective
