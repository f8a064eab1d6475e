// SHA-256: what is known by it can be recognized, and not made up.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace muster::net {

using Digest = std::array<std::byte, 32>;

Digest sha256(std::span<const std::byte> bytes);

}  // namespace muster::net
