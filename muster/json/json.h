// JSON from outside, within limits: settings that people wrote, headers and manifests of files. No other
// public header includes this one, so that installed programs need no JSON library.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "muster/base/base.h"

namespace muster::json {

// What a hostile text costs at most.
struct Limits {
  std::size_t bytes = std::size_t{8} << 20;
  std::size_t values = 400'000;
  std::size_t depth = 16;
  Code code = Code::invalid_argument;  // of the errors
};

// The value, or what is wrong and at which line and column; `name` begins each error. The time that it takes
// grows with the text's length alone. A name that one object has twice is an error, since either could be
// meant.
Result<nlohmann::json> parse(std::string_view text, std::string_view name, const Limits& limits = {});

// On one line. Fails on texts that are no UTF-8; `name` begins the error.
Result<std::string> to_text(const nlohmann::json& value, std::string_view name);

}  // namespace muster::json
