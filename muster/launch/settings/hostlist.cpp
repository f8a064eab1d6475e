#include "muster/launch/settings/hostlist.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "muster/launch/settings/sources.h"
#include "muster/launch/settings/wrong.h"

namespace muster::launch {
namespace {

constexpr std::size_t name_size_max = 253;

std::optional<std::int64_t> number_in(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || digits.front() == '-' || error != std::errc{} || end != digits.data() + digits.size())
    return std::nullopt;
  return value;
}

// Cuts `text` at the commas that are in no brackets. Nothing where brackets do not match.
std::optional<std::vector<std::string_view>> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  bool is_inside = false;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '[' || text[i] == ']')) {
      if (is_inside == (text[i] == '[')) return std::nullopt;
      is_inside = !is_inside;
    } else if (i == text.size() || (text[i] == ',' && !is_inside)) {
      parts.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  return is_inside ? std::nullopt : std::optional(std::move(parts));
}

// "1-3" or "07": with as many digits as the first number has.
Result<> add_range(std::vector<std::string>& words, std::string_view range) {
  const auto dash = range.find('-');
  const std::string_view first_digits = range.substr(0, dash);
  const auto first = number_in(first_digits);
  const auto last = dash == std::string_view::npos ? first : number_in(range.substr(dash + 1));
  if (!first || !last || *last < *first)
    return wrong(fmt::format("'{}' is no range of numbers, as in [1-3,07]", range));
  if (*last - *first >= static_cast<std::int64_t>(hosts_max) || first_digits.size() > name_size_max)
    return wrong(fmt::format("'{}' names more than {} hosts", range, hosts_max));
  for (std::int64_t i = *first; i <= *last; ++i)
    words.push_back(fmt::format("{:0{}}", i, first_digits.size()));
  return {};
}

// What "[1-3,07]" stands for; `text` is what is between the brackets.
Result<std::vector<std::string>> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const auto comma = text.find(',');
    MUSTER_TRY_VOID(add_range(words, text.substr(0, comma)));
    if (words.size() > hosts_max) return wrong(fmt::format("more than {} hosts", hosts_max));
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

// "r[1-2]n[1-2]" is r1n1, r1n2, r2n1, r2n2.
Result<std::vector<std::string>> expand(std::string_view part) {
  std::vector<std::string> names = {""};
  while (!part.empty()) {
    const auto open = part.find('[');
    for (std::string& name : names) name += part.substr(0, open);
    if (open == std::string_view::npos) break;
    const auto close = part.find(']');
    MUSTER_TRY(const auto words, words_of(part.substr(open + 1, close - open - 1)));
    if (words.size() * names.size() > hosts_max) return wrong(fmt::format("more than {} hosts", hosts_max));
    std::vector<std::string> longer;
    for (const std::string& name : names)
      for (const std::string& word : words) longer.push_back(name + word);
    names = std::move(longer);
    part.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

Result<std::vector<std::string>> parse_hostlist(std::string_view text) {
  const auto parts = parts_of(text);
  if (!parts) return wrong("the brackets do not match");
  std::vector<std::string> names;
  for (const std::string_view part : *parts) {
    if (part.empty()) return wrong("a name between two commas is missing");
    MUSTER_TRY(auto more, expand(part));
    if (names.size() + more.size() > hosts_max) return wrong(fmt::format("more than {} hosts", hosts_max));
    for (std::string& name : more) {
      if (name.size() > name_size_max) return wrong(fmt::format("a name of {} letters", name.size()));
      names.push_back(std::move(name));
    }
  }
  return names;
}

Result<std::vector<std::int64_t>> parse_task_counts(std::string_view text) {
  std::vector<std::int64_t> counts;
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    const auto open = part.find("(x");
    const auto tasks = number_in(part.substr(0, open));
    const bool repeats = open != std::string_view::npos;
    const auto times = repeats && part.ends_with(')')
                           ? number_in(part.substr(open + 2, part.size() - open - 3))
                       : repeats ? std::nullopt
                                 : std::optional<std::int64_t>(1);
    if (!tasks || !times || *tasks < 1 || *times < 1)
      return wrong(fmt::format("'{}' is no number of tasks, as in 4(x2),3", part));
    if (*tasks > static_cast<std::int64_t>(hosts_max) ||
        *times > static_cast<std::int64_t>(hosts_max - counts.size()))
      return wrong(fmt::format("more than {} hosts or tasks", hosts_max));
    counts.insert(counts.end(), static_cast<std::size_t>(*times), *tasks);
    if (part.size() == text.size()) return counts;
    text.remove_prefix(part.size() + 1);
  }
}

}  // namespace muster::launch
