// Words from outside, for logs, tables and terminals: they cannot move the cursor, colour a line, begin a
// new one or turn the direction of reading.
#pragma once

#include <string>
#include <string_view>

namespace muster {

enum class LineBreaks { escaped, kept };

// Control characters (C0, DEL, C1), those that turn the direction of text, line and paragraph separators, and
// bytes that are no UTF-8 as "\n", "\t", "\x1b", "\u202e". What is printable stays as it is, a backslash too:
// a text that was made printable stays the same.
std::string printable(std::string_view text, LineBreaks breaks = LineBreaks::escaped);

// At most `limit` bytes, and no half of a UTF-8 character.
std::string_view cut(std::string_view text, std::size_t limit);

}  // namespace muster
