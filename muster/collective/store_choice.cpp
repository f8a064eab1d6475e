#include "muster/collective/store_choice.h"

#include <algorithm>
#include <bit>

namespace muster::collective {
namespace {

// Below this, what was written is read again so soon that the caches win everywhere.
constexpr std::size_t streaming_from_bytes = 64 << 10;
constexpr unsigned tries_of_each = 4;

}  // namespace

std::size_t StoreChoice::class_of(std::size_t size_bytes) {
  return static_cast<std::size_t>(std::bit_width(size_bytes)) % class_count;
}

bool StoreChoice::is_trying(std::size_t size_bytes) const {
  return size_bytes >= streaming_from_bytes && classes_[class_of(size_bytes)].calls < 2 * tries_of_each;
}

// One kind after the other, not in turn: lines that one kind left behind slow the first call of the other.
Stores StoreChoice::choose(const Class& tried) {
  if (tried.calls < 2 * tries_of_each)
    return tried.calls < tries_of_each ? Stores::cached : Stores::streaming;
  // On a busy machine even the fastest of a few calls is slow at times: streaming must win clearly.
  return tried.fastest[1] < tried.fastest[0] * 3 / 4 ? Stores::streaming : Stores::cached;
}

Stores StoreChoice::next(std::size_t size_bytes) {
  return size_bytes < streaming_from_bytes ? Stores::cached : choose(classes_[class_of(size_bytes)]);
}

void StoreChoice::record(std::size_t size_bytes, Duration busy) {
  if (!is_trying(size_bytes)) return;
  Class& tried = classes_[class_of(size_bytes)];
  Duration& fastest = tried.fastest[static_cast<std::size_t>(choose(tried))];
  fastest = std::min(fastest, busy);
  ++tried.calls;
}

}  // namespace muster::collective
