// JSON from outside, within limits. Private: installed programs need no JSON library.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "muster/base/base.h"

namespace muster::checkpoint {

// A hostile text costs this many bytes and values of memory at most.
inline constexpr std::size_t json_bytes_max = std::size_t{8} << 20;
inline constexpr std::size_t json_values_max = 400'000;
inline constexpr std::size_t json_depth_max = 8;

// Errors (corrupt) begin with `what`. A name that an object has twice is an error.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view what);

// On one line. Fails on texts that are no UTF-8.
Result<std::string> json_text(const nlohmann::json& value, std::string_view what);

}  // namespace muster::checkpoint
