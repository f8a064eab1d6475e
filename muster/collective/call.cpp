#include "muster/collective/call.h"

#include <fmt/format.h>

#include <utility>

namespace muster::collective {

std::string_view to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::mean:
      return "mean";
    case Reduction::max:
      return "max";
    case Reduction::min:
      return "min";
  }
  return "unknown";
}

std::string to_string(const Call& call) {
  switch (call.kind) {
    case Kind::all_reduce:
      return fmt::format("all_reduce #{} ({} x {}, {})", call.number, call.count, to_string(call.dtype),
                         to_string(call.reduction));
    case Kind::broadcast:
      return fmt::format("broadcast #{} ({} bytes from rank {})", call.number, call.count, call.root);
    case Kind::all_gather:
      return fmt::format("all_gather #{} ({} bytes from each rank)", call.number, call.count);
    case Kind::barrier:
      return fmt::format("barrier #{}", call.number);
  }
  return fmt::format("call #{}", call.number);
}

CallBytes encode(const Call& call) {
  CallBytes bytes{};
  net::store_little(&bytes[0], call.number);
  net::store_little(&bytes[8], call.count);
  net::store_little(&bytes[16], call.root);
  bytes[20] = static_cast<std::byte>(call.kind);
  bytes[21] = static_cast<std::byte>(call.dtype);
  bytes[22] = static_cast<std::byte>(call.reduction);
  return bytes;
}

Result<Call> decode_call(std::span<const std::byte, std::tuple_size_v<CallBytes>> bytes) {
  const auto kind = static_cast<Kind>(bytes[20]);
  const auto dtype = static_cast<DType>(bytes[21]);
  const auto reduction = static_cast<Reduction>(bytes[22]);
  if (kind > Kind::barrier || bytes[21] >= std::byte{all_dtypes.size()} || reduction > Reduction::min ||
      bytes[23] != std::byte{0})
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
