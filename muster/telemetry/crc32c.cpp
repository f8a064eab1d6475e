#include "muster/telemetry/crc32c.h"

#include <array>
#include <bit>

namespace muster::telemetry {
namespace {

constexpr std::uint32_t polynomial = 0x82F63B78;  // reflected

// table[k][b]: what byte b does to the checksum when k more bytes follow it, so that eight go in at once.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? polynomial : 0);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < tables.size(); ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}

constexpr Tables tables = make_tables();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~0U;
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    crc ^= at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24;
    crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^ tables[5][crc >> 16 & 0xff] ^
          tables[4][crc >> 24] ^ tables[3][at(4)] ^ tables[2][at(5)] ^ tables[1][at(6)] ^ tables[0][at(7)];
  }
  for (const std::byte byte : bytes)
    crc = crc >> 8 ^ tables[0][(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  return ~crc;
}

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

}  // namespace muster::telemetry
