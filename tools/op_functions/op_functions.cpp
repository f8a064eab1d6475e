// Functions of the ops that have a schema.
#include "tools/op_functions/text.h"

namespace muster::tools {
namespace {

using graph::Argument;
using graph::Op;

bool is_passed_by_reference(const Argument& argument) {
  return !argument.optional && (std::holds_alternative<std::string>(argument.otherwise) ||
                                std::holds_alternative<std::vector<std::int64_t>>(argument.otherwise));
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

}  // namespace

std::string op_functions_header() {
  std::string text =
      "// Functions of the ops, made from their rows by tools/op_functions: change muster/graph/ops "
      "instead.\n"
      "#pragma once\n\n#include <cstdint>\n#include <optional>\n#include <string>\n#include <vector>\n\n"
      "#include \"muster/graph/graph.h\"\n\nnamespace muster::nn::ops {\n\n"
      "using graph::Value;\nusing graph::Values;\n\n";
  for (const Op* op : graph::ops())
    if (op->schema.has_functions()) text += comment(op->documentation) + head(*op, true) + ";\n\n";
  return text + "}  // namespace muster::nn::ops\n";
}

std::string op_functions_source() {
  std::string text = "#include \"muster/nn/op_functions.h\"\n\nnamespace muster::nn::ops {\n\n";
  for (const Op* op : graph::ops())
    if (op->schema.has_functions()) text += head(*op, false) + body(*op) + "\n";
  return text + "}  // namespace muster::nn::ops\n";
}

}  // namespace muster::tools
