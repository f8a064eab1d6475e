#include "muster/collective/plan.h"

#include "muster/collective/kernels.h"

namespace muster::collective {
namespace {

constexpr std::size_t small_shared_bytes = 16 << 10;
constexpr std::size_t small_remote_bytes = 4 << 10;
constexpr std::size_t chunk_shared_bytes = 1 << 20;
constexpr std::size_t chunk_remote_bytes = 4 << 20;
// Shared memory of one host, all slots together: many ranks make their chunks smaller.
constexpr std::size_t shared_limit_bytes = 256 << 20;

std::size_t round_up_to_line(std::size_t size_bytes) {
  return (size_bytes + line_size_bytes - 1) / line_size_bytes * line_size_bytes;
}

// Of a chunk, the slices of one host.
std::size_t most_of_a_host(std::size_t chunk, const Layout& layout) {
  return slices_of(chunk, {.begin = 0, .count = layout.most_ranks_of_a_host()}, layout.size()).size;
}

}  // namespace

Sizes sizes_of(const Layout& layout) {
  const std::size_t most = layout.most_ranks_of_a_host();
  const bool one_host = layout.has_one_host();
  // Two slots for each rank, two shared results, and about as much as the slots from the other hosts.
  const std::size_t chunks = (one_host || most == 1 ? 2 : 4) * most + 2;
  const std::size_t fitting = shared_limit_bytes / chunks / line_size_bytes * line_size_bytes;
  const std::size_t wanted = most == 1 ? chunk_remote_bytes : chunk_shared_bytes;
  std::size_t chunk = std::min(wanted, std::max(fitting, line_size_bytes));
  // Slices are whole lines: with very many ranks on each of many hosts they would be more than the chunk.
  if (!one_host && 2 * layout.size() * most_of_a_host(chunk, layout) > shared_limit_bytes)
    chunk = shared_limit_bytes / (2 * layout.size()) / line_size_bytes * line_size_bytes;
  const std::size_t raw = one_host ? 0 : most_of_a_host(chunk, layout);
  return {.small_size_bytes = one_host ? small_shared_bytes : small_remote_bytes,
          .chunk_size_bytes = chunk,
          .raw_size_bytes = raw,
          .gathered_size_bytes = one_host || most == 1 ? chunk : std::min(chunk, raw)};
}

Chunks::Chunks(std::size_t size_bytes, std::size_t chunk_limit_bytes)
    : size_bytes_(size_bytes),
      count_((size_bytes + chunk_limit_bytes - 1) / chunk_limit_bytes),
      stride_(count_ == 0 ? 0 : round_up_to_line((size_bytes + count_ - 1) / count_)) {}

Range Chunks::operator[](std::size_t index) const {
  const std::size_t begin = std::min(size_bytes_, index * stride_);
  return {.begin = begin, .size = std::min(stride_, size_bytes_ - begin)};
}

Range slices_of(std::size_t chunk_size_bytes, Places positions, std::uint32_t ranks) {
  const std::size_t stride = round_up_to_line((chunk_size_bytes + ranks - 1) / ranks);
  const std::size_t begin = std::min(chunk_size_bytes, positions.begin * stride);
  return {.begin = begin, .size = std::min(positions.count * stride, chunk_size_bytes - begin)};
}

}  // namespace muster::collective
