#include "muster/launch/settings/variables.h"

#include <fmt/format.h>

#include <charconv>

namespace muster::launch {

SaidText first_of(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto value = environment.get(name); value && !value->empty())
      return Setting<std::string>{*value, name};
  return std::nullopt;
}

Result<SaidNumber> number(const Environment& environment, std::initializer_list<const char*> names,
                          std::int64_t least, std::int64_t most) {
  const auto said = first_of(environment, names);
  if (!said) return SaidNumber{};
  std::int64_t value = 0;
  const char* const end = said->value.data() + said->value.size();
  const auto [parsed, error] = std::from_chars(said->value.data(), end, value);
  if (error != std::errc{} || parsed != end || value < least || value > most)
    return fail(Code::invalid_argument,
                fmt::format("{}={}: a whole number from {} to {}", said->origin, said->value, least, most));
  return SaidNumber{Setting<std::int64_t>{value, said->origin}};
}

}  // namespace muster::launch
