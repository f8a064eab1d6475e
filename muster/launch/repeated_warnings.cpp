#include "muster/launch/repeated_warnings.h"

#include <algorithm>
#include <cctype>

namespace muster::launch {
namespace {

// "train.py:3: UserWarning: ...".
bool is_of_python(std::string_view line) {
  const auto end = line.find("Warning: ");
  if (end == std::string_view::npos || line.front() == ' ') return false;
  const auto begin = line.rfind(": ", end);
  if (begin == std::string_view::npos) return false;
  const auto colon = line.rfind(':', begin - 1);
  return colon != std::string_view::npos && colon + 1 < begin &&
         std::all_of(line.begin() + static_cast<std::ptrdiff_t>(colon) + 1,
                     line.begin() + static_cast<std::ptrdiff_t>(begin),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// What is equal in all processes: without the name of "muster[worker 2] warning: ...", which a process has
// when it knows. Empty: it is none.
std::string_view text_of(std::string_view line) {
  constexpr std::string_view name = "muster[", level = "] warning: ";
  if (line.starts_with("muster warning: ")) return line;
  if (line.starts_with(name))
    if (const auto end = line.find(']'); end != std::string_view::npos && line.substr(end).starts_with(level))
      return line.substr(end);
  return !line.empty() && is_of_python(line) ? line : std::string_view{};
}

}  // namespace

bool RepeatedWarnings::has(std::size_t process, std::string_view line) {
  const bool is_source = within_.erase(process) > 0 && line.starts_with("  ");
  const bool was_hidden = within_hidden_.erase(process) > 0;
  if (is_source) return was_hidden;
  const std::string_view text = text_of(line);
  if (text.empty()) return false;
  if (speakers_.size() >= texts_max && !speakers_.contains(text)) return false;
  const bool is_repeated = speakers_.try_emplace(std::string(text), process).first->second != process;
  within_.insert(process);
  if (is_repeated) within_hidden_.insert(process);
  return is_repeated;
}

}  // namespace muster::launch
