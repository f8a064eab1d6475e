#include "muster/base/number_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace muster {
namespace {

// numpy leaves positional notation below 1e-4, and where whole numbers would have more digits than the type
// carries: from 1e16 on for double, and since numpy 2.4 from 1e6 on for float.
template <class T>
bool is_positional(T value) {
  const double size = std::fabs(static_cast<double>(value));
  return size == 0 || (size >= 1e-4 && size < (sizeof(T) == sizeof(float) ? 1e6 : 1e16));
}

// Digits and exponent of the shortest text: 1.2345e+20 is {"12345", 20}.
struct Decimal {
  std::string digits;
  int exponent = 0;
};

template <class T>
Decimal shortest(T value) {
  std::array<char, 64> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific).ptr;
  const std::string_view all(text.data(), static_cast<std::size_t>(end - text.data()));
  const std::size_t split = all.find('e');
  Decimal parts;
  for (const char symbol : all.substr(0, split))
    if (symbol != '.') parts.digits += symbol;
  parts.exponent = std::atoi(text.data() + split + 1);  // the buffer is zero-filled behind the number
  return parts;
}

std::string positional(const Decimal& parts) {
  const std::string_view digits = parts.digits;
  const int whole = parts.exponent + 1;  // digits before the point
  if (whole <= 0) return fmt::format("0.{:0>{}}{}", "", -whole, digits);
  const auto split = static_cast<std::size_t>(whole);
  if (split >= digits.size()) return fmt::format("{:0<{}}.0", digits, split);
  return fmt::format("{}.{}", digits.substr(0, split), digits.substr(split));
}

std::string scientific(const Decimal& parts) {
  const std::string_view digits = parts.digits;
  const char* point = digits.size() > 1 ? "." : "";
  return fmt::format("{}{}{}e{}{:02}", digits.substr(0, 1), point, digits.substr(1),
                     parts.exponent < 0 ? '-' : '+', std::abs(parts.exponent));
}

template <class T>
std::string number_text_of(T value) {
  if (std::isnan(value)) return "nan";
  const char* sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return fmt::format("{}inf", sign);
  const Decimal parts = shortest(std::fabs(value));
  return fmt::format("{}{}", sign, is_positional(value) ? positional(parts) : scientific(parts));
}

}  // namespace

std::string number_text(float value) { return number_text_of(value); }
std::string number_text(double value) { return number_text_of(value); }

}  // namespace muster
