#include "muster/base/random.h"

#include <sys/random.h>

#include <cmath>
#include <numbers>

#include "muster/base/check.h"

namespace muster {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

namespace {

std::array<std::uint64_t, 2> draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const auto words = philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                             static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                            {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return {words[0] | std::uint64_t{words[1]} << 32, words[2] | std::uint64_t{words[3]} << 32};
}

double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace

std::uint64_t RandomStream::bits(std::uint64_t index) const {
  return draw(seed_, stream_, index / 2)[index % 2];
}

double RandomStream::uniform(std::uint64_t index) const { return unit(bits(index)); }

double RandomStream::normal(std::uint64_t index) const {
  const auto pair = draw(seed_, stream_, index / 2);
  const double radius = std::sqrt(-2.0 * std::log(1.0 - unit(pair[0])));
  const double angle = 2.0 * std::numbers::pi * unit(pair[1]);
  return index % 2 == 0 ? radius * std::cos(angle) : radius * std::sin(angle);
}

std::uint64_t RandomStream::below(std::uint64_t index, std::uint64_t bound) const {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{bits(index)} * bound) >> 64);
}

std::uint64_t entropy() {
  std::uint64_t bits = 0;
  const ssize_t got = getrandom(&bits, sizeof bits, 0);
  MUSTER_CHECK(got == sizeof bits, "getrandom gave no bits");
  return bits;
}

}  // namespace muster
