#include "muster/nn/cell_text.h"

#include <fmt/format.h>

namespace muster::nn {

CellText& CellText::append(const std::string& text) {
  if (!text_.empty()) text_ += ", ";
  text_ += text;
  return *this;
}

std::string CellText::text_of(std::int64_t value) { return std::to_string(value); }

std::string CellText::text_of(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

std::string CellText::text_of(bool value) { return value ? "True" : "False"; }

std::string CellText::text_of(std::string_view value) { return fmt::format("'{}'", value); }

std::string CellText::text_of(const std::optional<std::int64_t>& value) {
  return value ? text_of(*value) : "None";
}

std::string CellText::text_of(const Size2d& value) {
  return value.height == value.width ? text_of(value.height)
                                     : fmt::format("({}, {})", value.height, value.width);
}

std::string CellText::text_of(const Padding& value) {
  const bool is_one = value.top == value.bottom && value.top == value.left && value.top == value.right;
  return is_one ? text_of(value.top)
                : fmt::format("({}, {}, {}, {})", value.top, value.bottom, value.left, value.right);
}

std::string CellText::text_of(PadMode value) {
  switch (value) {
    case PadMode::same:
      return "'same'";
    case PadMode::valid:
      return "'valid'";
    case PadMode::pad:
      return "'pad'";
  }
  return {};
}

std::string CellText::text_of(const Shape& value) {
  std::string text = "(";
  for (std::size_t i = 0; i < value.rank(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(value[i]);
  return text + (value.rank() == 1 ? ",)" : ")");
}

}  // namespace muster::nn
