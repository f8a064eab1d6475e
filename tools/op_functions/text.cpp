#include "tools/op_functions/text.h"

#include <sstream>

namespace muster::tools {
namespace {

using graph::Argument;
using graph::Attribute;

constexpr std::size_t line_width = 110;

std::string list_in_braces(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "{" + text + "}";
}

}  // namespace

std::string type_of(const Attribute& attribute) {
  if (std::holds_alternative<std::int64_t>(attribute)) return "std::int64_t";
  if (std::holds_alternative<double>(attribute)) return "double";
  if (std::holds_alternative<bool>(attribute)) return "bool";
  if (std::holds_alternative<std::string>(attribute)) return "std::string";
  if (std::holds_alternative<DType>(attribute)) return "DType";
  return "std::vector<std::int64_t>";
}

std::string literal(const Attribute& attribute) {
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attribute)) return list_in_braces(*list);
  if (const auto* text = std::get_if<std::string>(&attribute)) return "\"" + *text + "\"";
  if (const auto* dtype = std::get_if<DType>(&attribute))
    return "DType::" + std::string(muster::to_string(*dtype));
  return to_string(attribute);
}

std::string default_of(const Argument& argument) {
  if (argument.required) return "";
  return argument.optional ? " = {}" : " = " + literal(argument.otherwise);
}

std::string comment(std::string_view documentation) {
  std::istringstream words{std::string(documentation)};
  std::string text, line = "//", word;
  while (words >> word) {
    if (line.size() + 1 + word.size() > line_width) {
      text += line + "\n";
      line = "//";
    }
    line += " " + word;
  }
  return text + line + "\n";
}

}  // namespace muster::tools
