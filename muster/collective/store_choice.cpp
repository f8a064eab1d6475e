#include "muster/collective/store_choice.h"

#include <algorithm>
#include <bit>

namespace muster::collective {
namespace {

// Below this, what was written is read again so soon that the caches win everywhere.
constexpr std::size_t streaming_from_bytes = 64 << 10;
constexpr unsigned tries_of_each = 4;

}  // namespace

StoreChoice::Class& StoreChoice::class_of(std::size_t size_bytes) {
  return classes_[static_cast<std::size_t>(std::bit_width(size_bytes)) % classes_.size()];
}

// One kind after the other, not in turn: lines that one kind left behind slow the first call of the other.
Stores StoreChoice::choose(const Class& tried) {
  if (tried.calls < 2 * tries_of_each)
    return tried.calls < tries_of_each ? Stores::cached : Stores::streaming;
  // On a busy machine even the fastest of a few calls is slow at times: streaming must win clearly.
  return tried.fastest[1] < tried.fastest[0] * 3 / 4 ? Stores::streaming : Stores::cached;
}

Stores StoreChoice::next(std::size_t size_bytes) {
  return size_bytes < streaming_from_bytes ? Stores::cached : choose(class_of(size_bytes));
}

void StoreChoice::record(std::size_t size_bytes, Duration busy) {
  Class& tried = class_of(size_bytes);
  if (size_bytes < streaming_from_bytes || tried.calls >= 2 * tries_of_each) return;
  Duration& fastest = tried.fastest[static_cast<std::size_t>(choose(tried))];
  fastest = std::min(fastest, busy);
  ++tried.calls;
}

}  // namespace muster::collective
