#include "muster/collective/call.h"

#include <fmt/format.h>

#include <utility>

#include "muster/net/net.h"

namespace muster::collective {

namespace {
// In a call frame, where there is no call "none".
std::byte encode(CallKind kind) { return static_cast<std::byte>(static_cast<std::uint8_t>(kind) - 1); }
CallKind decode_kind(std::byte value) {
  return static_cast<CallKind>(std::to_integer<std::uint8_t>(value) + 1);
}
}  // namespace

std::string to_string(const Call& call) {
  const std::string reduced =
      fmt::format("{} x {}, {}", call.count, to_string(call.dtype), to_string(call.reduction));
  const auto described = [&](const std::string& what) {
    return fmt::format("{} #{} ({})", to_string(call.kind), call.number, what);
  };
  switch (call.kind) {
    case CallKind::all_reduce:
      return described(reduced);
    case CallKind::reduce:
      return described(fmt::format("{}, to rank {}", reduced, call.root));
    case CallKind::reduce_scatter:
      return described(fmt::format("{} for each rank", reduced));
    case CallKind::broadcast:
      return described(fmt::format("{} bytes from rank {}", call.count, call.root));
    case CallKind::all_gather:
      if (call.uneven) return described(fmt::format("{} bytes in sizes {:08x}", call.count, call.root));
      return described(fmt::format("{} bytes from each rank", call.count));
    case CallKind::all_to_all:
      if (call.uneven) return described("of any sizes");
      return described(fmt::format("{} bytes to each rank", call.count));
    case CallKind::gather:
      return described(fmt::format("{} bytes from each rank to rank {}", call.count, call.root));
    case CallKind::scatter:
      return described(fmt::format("{} bytes to each rank from rank {}", call.count, call.root));
    default:
      return fmt::format("{} #{}", to_string(call.kind), call.number);
  }
}

Result<> check_size(std::size_t count, std::size_t item_size_bytes) {
  // Sizes on the wire and in pointer arithmetic stay far from overflow.
  constexpr std::size_t size_limit_bytes = std::size_t{1} << 40;
  if (count > size_limit_bytes / item_size_bytes)
    return fail(Code::invalid_argument,
                fmt::format("{} elements are more than the limit of {} bytes", count, size_limit_bytes));
  return {};
}

Result<> check_reduction(DType dtype, Reduction reduction, std::string_view what) {
  if (can_reduce(dtype, reduction)) return {};
  return fail(Code::invalid_argument,
              fmt::format("{} of {} with {}: {}", what, to_string(dtype), to_string(reduction),
                          dtype == DType::bool_
                              ? "a mean of bools is none; take sum (or), product (and), or another dtype"
                              : "bits are combined of integers and bools, not of floats"));
}

CallBytes encode(const Call& call) {
  CallBytes bytes{};
  net::store_little(&bytes[0], call.number);
  net::store_little(&bytes[8], call.count);
  net::store_little(&bytes[16], call.root);
  bytes[20] = encode(call.kind);
  bytes[21] = static_cast<std::byte>(call.dtype);
  bytes[22] = static_cast<std::byte>(call.reduction);
  bytes[23] = static_cast<std::byte>(call.uneven);
  return bytes;
}

Result<Call> decode_call(std::span<const std::byte, std::tuple_size_v<CallBytes>> bytes) {
  const auto kind = decode_kind(bytes[20]);
  const auto dtype = static_cast<DType>(bytes[21]);
  const auto reduction = static_cast<Reduction>(bytes[22]);
  const bool is_message = kind == CallKind::send || kind == CallKind::receive;
  if (bytes[20] > encode(last_call_kind) || is_message || bytes[21] >= std::byte{all_dtypes.size()} ||
      reduction > last_reduction || bytes[23] > std::byte{1})
    return fail(Code::corrupt, "a call frame holds values that no call has");
  return Call{.number = net::load_little<std::uint64_t>(&bytes[0]),
              .count = net::load_little<std::uint64_t>(&bytes[8]),
              .root = net::load_little<std::uint32_t>(&bytes[16]),
              .kind = kind,
              .dtype = dtype,
              .reduction = reduction,
              .uneven = bytes[23] == std::byte{1}};
}

Error mismatch(std::uint32_t rank, const Call& call, std::uint32_t other_rank, const Call& other) {
  const bool in_order = rank < other_rank;
  const auto& [first, second] = in_order ? std::pair(call, other) : std::pair(other, call);
  return {Code::invalid_argument,
          fmt::format("rank {} called {}, but rank {} called {}", in_order ? rank : other_rank,
                      to_string(first), in_order ? other_rank : rank, to_string(second))};
}

}  // namespace muster::collective
