#include "muster/base/hash.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace {

// One value whichever code computes it: what a processor wrote another one reads. Hasher has the library's
// own.
TEST(Hash, OfAllSizesAndPlacesIsTheLibrarysOwn) {
  std::vector<std::byte> bytes((1 << 16) + 64);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 251);
  for (const std::size_t size : {0, 1, 16, 240, 241, 511, 512, 513, 1023, 1024, 1025, 4096, 5000, 1 << 16})
    for (const std::size_t begin : {0, 1, 7, 32, 63}) {
      const auto part = std::span(bytes).subspan(begin, size);
      muster::Hasher hasher;
      hasher.add(part);
      EXPECT_EQ(muster::hash_bytes(part.data(), part.size()), hasher.hash()) << size << " from " << begin;
    }
}

// As the formats say: files and frames of other builds are checked with it.
TEST(Hash, OfKnownBytesIsXxh3) {
  const std::vector<std::byte> zeros(1024);
  EXPECT_EQ(muster::hash_bytes(zeros.data(), 0), 0x2d06800538d394c2U);
  EXPECT_EQ(muster::hash_bytes(zeros.data(), 1024), 0xde5f15ab6daf7941U);
  EXPECT_EQ(muster::hash_bytes(zeros.data(), 1024, 7), 0x9eb77b8d6b605674U);
}

}  // namespace
