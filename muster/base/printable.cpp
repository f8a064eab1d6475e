#include "muster/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace muster {
namespace {

constexpr std::size_t character_size_max = 4;

// A character of UTF-8, or a byte that is none.
struct Character {
  char32_t code = 0;
  std::size_t size_bytes = 1;
  bool is_valid = false;
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {lead};
  char32_t code = lead & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {lead};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < least[size] || code > 0x10ffff || is_surrogate) return {lead};
  return {code, size, true};
}

bool is_control(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  return code < 0x20 || within(0x7f, 0x9f) || code == 0x061c || within(0x200e, 0x200f) ||
         within(0x2028, 0x202e) || within(0x2066, 0x2069);
}

void escape(std::string& to, const Character& character) {
  if (character.code == '\n')
    to += "\\n";
  else if (character.code == '\t')
    to += "\\t";
  else if (const auto code = static_cast<std::uint32_t>(character.code); code < 0x100)
    fmt::format_to(std::back_inserter(to), "\\x{:02x}", code);
  else
    fmt::format_to(std::back_inserter(to), "\\u{:04x}", code);
}

}  // namespace

std::string printable(std::string_view text, LineBreaks breaks) {
  std::string made;
  made.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text.substr(0, character_size_max));
    const bool is_kept_break = character.code == '\n' && breaks == LineBreaks::kept;
    if (is_kept_break || (character.is_valid && !is_control(character.code)))
      made += text.substr(0, character.size_bytes);
    else
      escape(made, character);
    text.remove_prefix(character.size_bytes);
  }
  return made;
}

std::string_view cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) --limit;
  return text.substr(0, limit);
}

}  // namespace muster
