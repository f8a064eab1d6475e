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
  switch (call.kind) {
    case CallKind::all_reduce:
      return fmt::format("all_reduce #{} ({} x {}, {})", call.number, call.count, to_string(call.dtype),
                         to_string(call.reduction));
    case CallKind::broadcast:
      return fmt::format("broadcast #{} ({} bytes from rank {})", call.number, call.count, call.root);
    case CallKind::all_gather:
      return fmt::format("all_gather #{} ({} bytes from each rank)", call.number, call.count);
    case CallKind::barrier:
      return fmt::format("barrier #{}", call.number);
    default:
      return fmt::format("call #{}", call.number);
  }
}

CallBytes encode(const Call& call) {
  CallBytes bytes{};
  net::store_little(&bytes[0], call.number);
  net::store_little(&bytes[8], call.count);
  net::store_little(&bytes[16], call.root);
  bytes[20] = encode(call.kind);
  bytes[21] = static_cast<std::byte>(call.dtype);
  bytes[22] = static_cast<std::byte>(call.reduction);
  return bytes;
}

Result<Call> decode_call(std::span<const std::byte, std::tuple_size_v<CallBytes>> bytes) {
  const auto kind = decode_kind(bytes[20]);
  const auto dtype = static_cast<DType>(bytes[21]);
  const auto reduction = static_cast<Reduction>(bytes[22]);
  if (bytes[20] > encode(CallKind::barrier) || bytes[21] >= std::byte{all_dtypes.size()} ||
      reduction > Reduction::min || bytes[23] != std::byte{0})
    return fail(Code::corrupt, "a call frame holds values that no call has");
  return Call{.number = net::load_little<std::uint64_t>(&bytes[0]),
              .count = net::load_little<std::uint64_t>(&bytes[8]),
              .root = net::load_little<std::uint32_t>(&bytes[16]),
              .kind = kind,
              .dtype = dtype,
              .reduction = reduction};
}

Error mismatch(std::uint32_t rank, const Call& call, std::uint32_t other_rank, const Call& other) {
  const bool in_order = rank < other_rank;
  const auto& [first, second] = in_order ? std::pair(call, other) : std::pair(other, call);
  return {Code::invalid_argument,
          fmt::format("rank {} called {}, but rank {} called {}", in_order ? rank : other_rank,
                      to_string(first), in_order ? other_rank : rank, to_string(second))};
}

}  // namespace muster::collective
