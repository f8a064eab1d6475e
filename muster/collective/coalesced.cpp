// Calls of several buffers: small ones travel side by side.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "muster/collective/collective.h"

namespace muster::collective {
namespace {

// Copying what is larger costs more than a call of its own.
constexpr std::size_t joined_bytes_max = 256 << 10;

std::size_t bytes_of(const Reduced& buffer) { return buffer.count * size_bytes(buffer.dtype); }
std::size_t bytes_of(const Gathered& buffer) { return buffer.size_bytes; }
bool travel_together(const Reduced& a, const Reduced& b) { return a.dtype == b.dtype; }
bool travel_together(const Gathered&, const Gathered&) { return true; }

const std::byte* in_of(const auto& buffer) { return static_cast<const std::byte*>(buffer.in); }
std::byte* out_of(const auto& buffer) { return static_cast<std::byte*>(buffer.out); }

// Ranges of neighbours that are joined, each with at most so many bytes; the same on every rank.
template <class Buffer, class Call>
Result<> call_in_runs(std::span<const Buffer> buffers, const Call& call) {
  for (std::size_t begin = 0, end = 0; begin < buffers.size(); begin = end) {
    std::size_t bytes = bytes_of(buffers[begin]);
    for (end = begin + 1; end < buffers.size() && travel_together(buffers[begin], buffers[end]); ++end) {
      if (bytes + bytes_of(buffers[end]) > joined_bytes_max) break;
      bytes += bytes_of(buffers[end]);
    }
    MUSTER_TRY_VOID(call(buffers.subspan(begin, end - begin), bytes));
  }
  return {};
}

std::unique_ptr<std::byte[]> memory(std::size_t bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(bytes);
}

}  // namespace

Result<> all_reduce(Communicator& group, std::span<const Reduced> buffers, Reduction reduction) {
  return call_in_runs(buffers, [&](std::span<const Reduced> run, std::size_t bytes) -> Result<> {
    const DType dtype = run[0].dtype;
    if (run.size() == 1) return group.all_reduce(run[0].in, run[0].out, run[0].count, dtype, reduction);
    const auto joined = memory(bytes);
    std::byte* at = joined.get();
    for (const Reduced& each : run) at = std::copy_n(in_of(each), bytes_of(each), at);
    MUSTER_TRY_VOID(
        group.all_reduce(joined.get(), joined.get(), bytes / size_bytes(dtype), dtype, reduction));
    const std::byte* from = joined.get();
    for (const Reduced& each : run) {
      std::copy_n(from, bytes_of(each), out_of(each));
      from += bytes_of(each);
    }
    return {};
  });
}

// Block r of each, for each rank r.
Result<> reduce_scatter(Communicator& group, std::span<const Reduced> buffers, Reduction reduction) {
  return call_in_runs(buffers, [&](std::span<const Reduced> run, std::size_t bytes) -> Result<> {
    const DType dtype = run[0].dtype;
    if (run.size() == 1) return group.reduce_scatter(run[0].in, run[0].out, run[0].count, dtype, reduction);
    const auto joined = memory(bytes * group.size());
    const auto own = memory(bytes);
    std::byte* at = joined.get();
    for (std::size_t rank = 0; rank < group.size(); ++rank)
      for (const Reduced& each : run)
        at = std::copy_n(in_of(each) + rank * bytes_of(each), bytes_of(each), at);
    MUSTER_TRY_VOID(
        group.reduce_scatter(joined.get(), own.get(), bytes / size_bytes(dtype), dtype, reduction));
    const std::byte* from = own.get();
    for (const Reduced& each : run) {
      std::copy_n(from, bytes_of(each), out_of(each));
      from += bytes_of(each);
    }
    return {};
  });
}

Result<> all_gather(Communicator& group, std::span<const Gathered> buffers) {
  return call_in_runs(buffers, [&](std::span<const Gathered> run, std::size_t bytes) -> Result<> {
    if (run.size() == 1) return group.all_gather(run[0].in, run[0].out, run[0].size_bytes);
    const auto own = memory(bytes);
    const auto joined = memory(bytes * group.size());
    std::byte* at = own.get();
    for (const Gathered& each : run) at = std::copy_n(in_of(each), bytes_of(each), at);
    MUSTER_TRY_VOID(group.all_gather(own.get(), joined.get(), bytes));
    const std::byte* from = joined.get();
    for (std::size_t rank = 0; rank < group.size(); ++rank)
      for (const Gathered& each : run) {
        std::copy_n(from, bytes_of(each), out_of(each) + rank * bytes_of(each));
        from += bytes_of(each);
      }
    return {};
  });
}

}  // namespace muster::collective
