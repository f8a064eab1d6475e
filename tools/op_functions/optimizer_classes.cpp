// Classes of the optimizers that rows of updates describe.
#include "tools/op_functions/text.h"

namespace muster::tools {
namespace {

using graph::Argument;
using graph::Op;
using graph::OptimizerSchema;

// Those of every optimizer have types of their own.
bool is_setting(const Argument& argument) {
  return argument.name == "learning_rate" || argument.name == "weight_decay" || argument.name == "loss_scale";
}

std::string member_type(const Argument& argument) {
  if (argument.name == "learning_rate") return "LearningRate";
  if (argument.name == "weight_decay") return "WeightDecay";
  return type_of(argument.otherwise);
}

std::string member(const Argument& argument) {
  const std::string range = to_string(argument.range);
  return "  " + member_type(argument) + " " + std::string(argument.name) + " = " +
         literal(argument.otherwise) + ";" + (range.empty() ? "" : "  // " + range) + "\n";
}

std::string options_of(const OptimizerSchema& schema) {
  std::string text = "struct " + std::string(schema.name) + "Options {\n";
  for (const Argument& argument : schema.arguments)
    if (argument.effect == graph::Effect::passed) text += member(argument);
  return text + "};\n\n";
}

std::string class_of(const OptimizerSchema& schema) {
  const std::string name(schema.name);
  return comment(schema.documentation) + "class " + name +
         " : public RowOptimizer {\n public:\n"
         "  static const graph::Op& row();\n"
         "  explicit " +
         name + "(const ParameterGroups& parameters, const " + name +
         "Options& options = {});\n"
         "  // For front ends: see RowOptimizer.\n"
         "  " +
         name +
         "(const ParameterGroups& parameters, const Settings& settings, graph::Attributes arguments)\n"
         "      : RowOptimizer(row(), parameters, settings, std::move(arguments)) {}\n};\n\n";
}

// "{"beta1", options.beta1}, {"beta2", options.beta2}"
std::string attributes_of(const OptimizerSchema& schema) {
  std::string text;
  for (const Argument& argument : schema.arguments) {
    if (argument.effect != graph::Effect::passed || is_setting(argument)) continue;
    const std::string name(argument.name);
    text += (text.empty() ? "" : ", ") + ("{\"" + name + "\", options." + name + "}");
  }
  return text;
}

// ".learning_rate = options.learning_rate, .weight_decay = options.weight_decay"
std::string settings_of(const OptimizerSchema& schema) {
  std::string text;
  for (const std::string setting : {"learning_rate", "weight_decay", "loss_scale"})
    for (const Argument& argument : schema.arguments)
      if (argument.name == setting) text += (text.empty() ? "." : ", .") + setting + " = options." + setting;
  return text;
}

std::string members_of(const Op& op) {
  const std::string name(op.optimizer.name);
  return "const graph::Op& " + name + "::row() {\n  static const graph::Op& row = graph::required_op(\"" +
         std::string(op.name) + "\");\n  return row;\n}\n\n" + name + "::" + name +
         "(const ParameterGroups& parameters, const " + name + "Options& options)\n    : " + name +
         "(parameters, Settings{" + settings_of(op.optimizer) + "}, graph::Attributes{" +
         attributes_of(op.optimizer) + "}) {}\n\n";
}

}  // namespace

std::string optimizer_classes_header() {
  std::string text =
      "// Classes of the optimizers, made from the rows of their updates by tools/op_functions: change\n"
      "// muster/graph/ops instead. All take parameters or groups of them, a learning rate that is a number, "
      "a\n"
      "// list or a schedule, and a weight decay (optimizer.h).\n"
      "#pragma once\n\n#include <cstdint>\n#include <string>\n#include <utility>\n\n"
      "#include \"muster/nn/row_optimizer.h\"\n\nnamespace muster::nn {\n\n";
  std::string names;
  for (const Op* op : graph::ops()) {
    if (!op->optimizer.exists()) continue;
    text += options_of(op->optimizer) + class_of(op->optimizer);
    names += (names.empty() ? "" : ", ") + std::string(op->optimizer.name);
  }
  return text + "using RowOptimizers = OptimizerClasses<" + names + ">;\n\n}  // namespace muster::nn\n";
}

std::string optimizer_classes_source() {
  std::string text = "#include \"muster/nn/optimizer_classes.h\"\n\nnamespace muster::nn {\n\n";
  for (const Op* op : graph::ops())
    if (op->optimizer.exists()) text += members_of(*op);
  return text + "}  // namespace muster::nn\n";
}

}  // namespace muster::tools
