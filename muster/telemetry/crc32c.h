// Private to telemetry: CRC-32C (Castagnoli), and as records carry it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace muster::telemetry {

std::uint32_t crc32c(std::span<const std::byte> bytes);
// Rotated and moved, so that the checksum of bytes that hold checksums is none of them.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

}  // namespace muster::telemetry
