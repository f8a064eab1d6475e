// Private: out[i] = table[in[i]], the inner loop of every image pipeline.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::data {

// Where results go: into the caches, or past them when they are more than fit and are not read soon.
enum class Stores { cached, streaming };

// Whether 64 elements of 32 bits take about as long as four do elsewhere: with AVX-512 VBMI (Intel since
// 2019, AMD since 2022).
bool looks_up_many();

// `table` has 256 entries.
void look_up(const std::uint8_t* table, const std::uint8_t* in, std::size_t count, std::uint8_t* out,
             Stores stores = Stores::cached);
void look_up(const std::uint16_t* table, const std::uint8_t* in, std::size_t count, std::uint16_t* out,
             Stores stores = Stores::cached);
void look_up(const std::uint32_t* table, const std::uint8_t* in, std::size_t count, std::uint32_t* out,
             Stores stores = Stores::cached);
void look_up(const std::uint64_t* table, const std::uint8_t* in, std::size_t count, std::uint64_t* out,
             Stores stores = Stores::cached);

}  // namespace muster::data
