// Writes the C++ functions of all ops that have a schema: op_functions.h and op_functions.cpp of `nn`, in the
// folder that is named. The build runs it, so that a row is the only place where an op is described.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "muster/graph/graph.h"

namespace {

using muster::DType;
using muster::graph::Argument;
using muster::graph::Attribute;
using muster::graph::Op;

constexpr std::size_t line_width = 110;

std::string type_of(const Attribute& attribute) {
  if (std::holds_alternative<std::int64_t>(attribute)) return "std::int64_t";
  if (std::holds_alternative<double>(attribute)) return "double";
  if (std::holds_alternative<bool>(attribute)) return "bool";
  if (std::holds_alternative<std::string>(attribute)) return "std::string";
  if (std::holds_alternative<DType>(attribute)) return "DType";
  return "std::vector<std::int64_t>";
}

bool is_passed_by_reference(const Argument& argument) {
  return !argument.optional && (std::holds_alternative<std::string>(argument.otherwise) ||
                                std::holds_alternative<std::vector<std::int64_t>>(argument.otherwise));
}

std::string list_in_braces(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "{" + text + "}";
}

std::string default_of(const Argument& argument) {
  if (argument.required) return "";
  if (argument.optional) return " = {}";
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&argument.otherwise))
    return " = " + list_in_braces(*list);
  if (const auto* text = std::get_if<std::string>(&argument.otherwise)) return " = \"" + *text + "\"";
  if (const auto* dtype = std::get_if<DType>(&argument.otherwise))
    return " = DType::" + std::string(muster::to_string(*dtype));
  return " = " + to_string(argument.otherwise);
}

std::string parameter(const Argument& argument) {
  const std::string type = type_of(argument.otherwise);
  const std::string name(argument.name);
  if (argument.optional) return "std::optional<" + type + "> " + name;
  return is_passed_by_reference(argument) ? "const " + type + "& " + name : type + " " + name;
}

std::string head(const Op& op, bool with_defaults) {
  std::string parameters;
  for (const std::string_view input : op.schema.inputs)
    parameters += (parameters.empty() ? "const Value& " : ", const Value& ") + std::string(input);
  for (const Argument& argument : op.schema.attributes)
    parameters += ", " + parameter(argument) + (with_defaults ? default_of(argument) : "");
  return (op.schema.results == 1 ? "Value " : "Values ") + std::string(op.name) + "(" + parameters + ")";
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

std::string body(const Op& op) {
  std::string inputs, given, optional;
  for (const std::string_view input : op.schema.inputs)
    inputs += (inputs.empty() ? "" : ", ") + std::string(input);
  for (const Argument& argument : op.schema.attributes) {
    const std::string name(argument.name);
    if (argument.optional)
      optional += "  if (" + name + ") attributes.set(\"" + name + "\", *" + name + ");\n";
    else
      given += (given.empty() ? "" : ", ") + ("{\"" + name + "\", " + name + "}");
  }
  return " {\n  static const graph::Op& op = graph::required_op(\"" + std::string(op.name) + "\");\n" +
         (optional.empty() ? "  const graph::Attributes attributes" : "  graph::Attributes attributes") +
         "{" + given + "};\n" + optional + "  const Value inputs[] = {" + inputs + "};\n" +
         "  return graph::call_op(op, inputs, attributes)" + (op.schema.results == 1 ? "[0]" : "") + ";\n}\n";
}

std::string header() {
  std::string text =
      "// Functions of the ops, made from their rows by tools/op_functions: change muster/graph/ops "
      "instead.\n"
      "#pragma once\n\n#include <cstdint>\n#include <optional>\n#include <string>\n#include <vector>\n\n"
      "#include \"muster/graph/graph.h\"\n\nnamespace muster::nn::ops {\n\n"
      "using graph::Value;\nusing graph::Values;\n\n";
  for (const Op* op : muster::graph::ops())
    if (op->schema.has_functions()) text += comment(op->documentation) + head(*op, true) + ";\n\n";
  return text + "}  // namespace muster::nn::ops\n";
}

std::string source() {
  std::string text = "#include \"muster/nn/op_functions.h\"\n\nnamespace muster::nn::ops {\n\n";
  for (const Op* op : muster::graph::ops())
    if (op->schema.has_functions()) text += head(*op, false) + body(*op) + "\n";
  return text + "}  // namespace muster::nn::ops\n";
}

// A file that says the same already keeps its time, and what includes it is not compiled again.
void write(const std::filesystem::path& path, const std::string& text) {
  std::ifstream old(path);
  const std::string before((std::istreambuf_iterator<char>(old)), std::istreambuf_iterator<char>());
  if (old && before == text) return;
  std::ofstream file(path);
  if (!(file << text << std::flush)) {
    std::cerr << "op_functions: cannot write " << path << "\n";
    std::exit(1);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: op_functions FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder(arguments[1]);
  write(folder / "op_functions.h", header());
  write(folder / "op_functions.cpp", source());
}
