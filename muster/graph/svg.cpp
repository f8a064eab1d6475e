#include "muster/graph/svg.h"

#include <fmt/format.h>

namespace muster::graph::svg {
namespace {

constexpr std::string_view style =
    "<style>.title{font-size:16px;font-weight:bold}.head{font-size:14px;font-weight:bold}"
    ".placed{fill:#1a4a8a}.small{fill:#555555;font-size:11px}"
    ".label{fill:#1a4a8a;font-size:11px;text-anchor:middle}</style>\n"
    "<defs><marker id=\"tip\" markerWidth=\"9\" markerHeight=\"8\" refX=\"8\" refY=\"4\" orient=\"auto\">"
    "<path d=\"M0,0 L9,4 L0,8 z\" fill=\"#1a4a8a\"/></marker></defs>\n";

// Whole letters of UTF-8 only.
std::string cut(const std::string& text, std::size_t letters_max) {
  if (text.size() <= letters_max) return text;
  std::size_t end = letters_max - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

}  // namespace

std::string begin(int width, int height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n{2}<rect width=\"{0}\" height=\"{1}\" "
      "fill=\"#ffffff\"/>\n",
      width, height, style);
}

std::string escaped(std::string_view text) {
  std::string made;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        made += "&amp;";
        break;
      case '<':
        made += "&lt;";
        break;
      case '>':
        made += "&gt;";
        break;
      case '"':
        made += "&quot;";
        break;
      default:
        // Other control characters are not allowed in XML at all.
        made += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
  }
  return made;
}

std::string line(int x, int y, std::string_view style, const std::string& text, std::size_t letters_max) {
  const std::string shown = cut(text, letters_max);
  const std::string whole = shown == text ? "" : fmt::format("<title>{}</title>", escaped(text));
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}{}</text>\n", x, y, style, whole,
                     escaped(shown));
}

std::string box(int x, int y, int width, int height, std::string_view colour) {
  return fmt::format(
      "<rect class=\"worker\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"{}\" "
      "stroke=\"#1a4a8a\"/>\n",
      x, y, width, height, colour);
}

}  // namespace muster::graph::svg
