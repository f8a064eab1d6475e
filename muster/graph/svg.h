// Private to graph: SVG elements that the pictures of plans share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::graph::svg {

// Around a picture, between the lines of a text, and around what is in a box; in pixels.
inline constexpr int margin = 24;
inline constexpr int line_height = 18;
inline constexpr int padding = 12;
// Longer ones are cut, and whole where the pointer rests on them.
inline constexpr std::size_t line_letters_max = 30;

// A picture on white, of so many pixels, with the styles that all have; `end` ends it.
std::string begin(int width, int height);
inline constexpr const char* end = "</svg>\n";

std::string escaped(std::string_view text);
std::string line(int x, int y, std::string_view style, const std::string& text,
                 std::size_t letters_max = line_letters_max);
// Of one rank.
std::string box(int x, int y, int width, int height, std::string_view colour);

}  // namespace muster::graph::svg
