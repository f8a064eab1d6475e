#include "muster/nn/activations.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "muster/nn/cell_text.h"
#include "muster/nn/values.h"

namespace muster::nn {

OpCell::OpCell(std::string class_name, std::string op, graph::Attributes attributes)
    : Cell(std::move(class_name)), op_(std::move(op)), attributes_(std::move(attributes)) {}

Values OpCell::construct(std::span<const Value> inputs) {
  return apply_to(op_, only_input(*this, inputs), attributes_);
}

LeakyReLU::LeakyReLU(double alpha) : OpCell("LeakyReLU", "leaky_relu", {{"alpha", alpha}}) {}
ELU::ELU(double alpha) : OpCell("ELU", "elu", {{"alpha", alpha}}) {}
GELU::GELU(bool approximate) : OpCell("GELU", "gelu", {{"approximate", approximate}}) {}
Softmax::Softmax(std::int64_t axis) : OpCell("Softmax", "softmax", {{"axis", axis}}) {}
LogSoftmax::LogSoftmax(std::int64_t axis) : OpCell("LogSoftmax", "log_softmax", {{"axis", axis}}) {}

Result<CellPtr> activation_named(std::string_view name) {
  if (name == "relu") return std::make_shared<ReLU>();
  if (name == "relu6") return std::make_shared<ReLU6>();
  if (name == "leakyrelu") return std::make_shared<LeakyReLU>();
  if (name == "elu") return std::make_shared<ELU>();
  if (name == "gelu") return std::make_shared<GELU>();
  if (name == "silu") return std::make_shared<SiLU>();
  if (name == "sigmoid") return std::make_shared<Sigmoid>();
  if (name == "tanh") return std::make_shared<Tanh>();
  if (name == "softmax") return std::make_shared<Softmax>();
  if (name == "logsoftmax") return std::make_shared<LogSoftmax>();
  return fail(Code::invalid_argument,
              fmt::format("there is no activation '{}': choose 'relu', 'relu6', 'leakyrelu', 'elu', 'gelu', "
                          "'silu', 'sigmoid', 'tanh', 'softmax' or 'logsoftmax'",
                          name));
}

std::string OpCell::settings() const {
  CellText text;
  for (const auto& [name, value] : attributes_.entries()) {
    if (const auto* number = std::get_if<double>(&value)) text.add(name, *number);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) text.add(name, *whole);
    if (const auto* flag = std::get_if<bool>(&value)) text.add(name, *flag);
  }
  return text.take();
}

}  // namespace muster::nn
