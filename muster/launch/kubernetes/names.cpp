#include "muster/launch/kubernetes/names.h"

#include <algorithm>
#include <array>

namespace muster::launch::kubernetes {
namespace {

constexpr std::size_t label_size_max = 63;
constexpr std::size_t subdomain_size_max = 253;

bool is_small(char c) { return c >= 'a' && c <= 'z'; }
bool is_letter(char c) { return is_small(c) || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_small_or_digit(char c) { return is_small(c) || is_digit(c); }

template <class Allowed>
bool all(std::string_view text, Allowed is_allowed) {
  return std::all_of(text.begin(), text.end(), is_allowed);
}

// A part between two dots of a name.
bool is_part(std::string_view text) {
  return !text.empty() && is_small_or_digit(text.front()) && is_small_or_digit(text.back()) &&
         all(text, [](char c) { return is_small_or_digit(c) || c == '-'; });
}

bool is_word(std::string_view text) {
  const auto is_end = [](char c) { return is_letter(c) || is_digit(c); };
  return !text.empty() && text.size() <= label_size_max && is_end(text.front()) && is_end(text.back()) &&
         all(text, [&](char c) { return is_end(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

bool is_label(std::string_view text) {
  return text.size() <= label_size_max && is_part(text) && is_small(text.front());
}

bool is_subdomain(std::string_view text) {
  if (text.size() > subdomain_size_max) return false;
  while (true) {
    const auto dot = text.find('.');
    if (!is_part(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_quantity(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '.'; });
  const std::string_view number = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  constexpr auto units = std::to_array<std::string_view>(
      {"", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"});
  return !number.empty() && is_digit(number.front()) && is_digit(number.back()) &&
         std::count(number.begin(), number.end(), '.') <= 1 &&
         std::find(units.begin(), units.end(), text.substr(number.size())) != units.end();
}

bool is_qualified_name(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return is_word(text);
  return is_subdomain(text.substr(0, slash)) && is_word(text.substr(slash + 1));
}

bool is_label_value(std::string_view text) { return text.empty() || is_word(text); }

bool is_mount_path(std::string_view text) {
  return text.size() > 1 && text.front() == '/' && text.find(':') == std::string_view::npos &&
         text.find("..") == std::string_view::npos &&
         all(text, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

bool is_variable_name(std::string_view text) {
  return !text.empty() && !is_digit(text.front()) &&
         all(text, [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

}  // namespace muster::launch::kubernetes
