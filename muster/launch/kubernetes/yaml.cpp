#include "muster/launch/kubernetes/yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace muster::launch::kubernetes {
namespace {

// Words that a parser of YAML 1.1 or 1.2 takes for something else than text.
constexpr auto other_words =
    std::to_array<std::string_view>({"true", "false", "yes", "no", "on", "off", "y", "n", "null"});

// Text that means itself without quotes. It begins with a letter, '/' or a flag's dashes, so that it is no
// number.
bool is_plain(std::string_view text) {
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const std::string_view word = text.substr(std::min(text.find_first_not_of('-'), text.size()));
  if (word.empty() || text.size() - word.size() > 2) return false;
  if (!(is_letter(word.front()) || text.front() == '/') || text.back() == ':') return false;
  if (!std::all_of(word.begin(), word.end(), [&](unsigned char c) {
        return is_letter(c) || std::isdigit(c) != 0 ||
               std::string_view("_-./:=").find(c) != std::string_view::npos;
      }))
    return false;
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(other_words.begin(), other_words.end(), lower) == other_words.end();
}

// JSON writes what is above U+FFFF as two halves, "\\ud83d\\ude80"; YAML allows one whole only,
// "\\U0001f680".
std::string with_whole_characters(const std::string& json) {
  constexpr std::size_t escape_size = 6;
  std::string text;
  for (std::size_t i = 0; i < json.size();) {
    const bool is_escape = json[i] == '\\';
    if (is_escape && json.compare(i, 3, "\\ud") == 0 && json[i + 3] >= '8') {
      const auto half = [&](std::size_t at) { return std::stoul(json.substr(at + 2, 4), nullptr, 16); };
      text += fmt::format("\\U{:08x}", 0x10000 + ((half(i) & 0x3ff) << 10) + (half(i + escape_size) & 0x3ff));
      i += 2 * escape_size;
    } else {
      text.append(json, i, is_escape ? 2 : 1);
      i += is_escape ? 2 : 1;
    }
  }
  return text;
}

std::string scalar(const Document& value) {
  if (value.is_string() && is_plain(value.get_ref<const std::string&>())) return value.get<std::string>();
  // Escaped to ASCII: YAML forbids some characters that JSON allows in a string.
  return with_whole_characters(value.dump(-1, ' ', true, Document::error_handler_t::replace));
}

bool is_block(const Document& value) { return value.is_structured() && !value.empty(); }

void write(std::string& text, const Document& value, std::size_t indent);

void write_map(std::string& text, const Document& map, std::size_t indent, bool is_first_placed) {
  for (const auto& [key, value] : map.items()) {
    if (!is_first_placed) text.append(indent, ' ');
    is_first_placed = false;
    text += fmt::format("{}:", scalar(key));
    if (is_block(value)) {
      text += "\n";
      write(text, value, value.is_array() ? indent : indent + 2);
    } else {
      text += fmt::format(" {}\n", scalar(value));
    }
  }
}

void write(std::string& text, const Document& value, std::size_t indent) {
  if (value.is_object()) {
    write_map(text, value, indent, false);
    return;
  }
  for (const Document& element : value) {
    text.append(indent, ' ');
    text += "- ";
    if (element.is_object() && is_block(element)) {
      write_map(text, element, indent + 2, true);
    } else {
      text += scalar(element) + "\n";  // a list in a list stands on one line, as JSON has it
    }
  }
}

}  // namespace

std::string yaml_text(const std::vector<Document>& documents) {
  std::string text;
  for (const Document& document : documents) {
    text += "---\n";
    write(text, document, 0);
  }
  return text;
}

}  // namespace muster::launch::kubernetes
