// Description of one collective call: the value that all ranks must agree on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "muster/base/base.h"

namespace muster::collective {

struct Call {
  std::uint64_t number = 0;  // 1 is the group's first
  std::uint64_t count = 0;   // elements of what reduces, bytes of the others
  std::uint32_t root = 0;    // of an uneven all_gather: a checksum of the sizes
  CallKind kind = CallKind::barrier;
  DType dtype = DType::uint8;
  Reduction reduction = Reduction::sum;
  bool uneven = false;  // pieces of any sizes; `count` is their sum in an all_gather, 0 in an all_to_all
  friend bool operator==(const Call&, const Call&) = default;
};

// "all_reduce #18 (1000 x float32, sum)".
std::string to_string(const Call& call);

// What a call is refused for on this rank alone, before any other hears of it.
Result<> check_size(std::size_t count, std::size_t item_size_bytes);
Result<> check_reduction(DType dtype, Reduction reduction, std::string_view what);

// The payload of a call frame: docs/formats/collective.md.
using CallBytes = std::array<std::byte, 24>;
CallBytes encode(const Call& call);
Result<Call> decode_call(std::span<const std::byte, std::tuple_size_v<CallBytes>> bytes);

// "rank 0 called barrier #3, but rank 2 called all_reduce #3 (4 x int32, max)".
Error mismatch(std::uint32_t rank, const Call& call, std::uint32_t other_rank, const Call& other);

}  // namespace muster::collective
