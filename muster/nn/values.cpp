#include "muster/nn/values.h"

#include <fmt/format.h>

#include <utility>

namespace muster::nn {

Value only_input(const Cell& cell, std::span<const Value> inputs) {
  if (inputs.size() == 1) return inputs[0];
  throw Exception(Code::invalid_argument,
                  fmt::format("{} takes one tensor, {} were given", cell.description(), inputs.size()));
}

void require_inputs(const Cell& cell, std::span<const Value> inputs, std::size_t count,
                    std::string_view names) {
  if (inputs.size() != count)
    throw Exception(Code::invalid_argument, fmt::format("{} takes {}, {} tensors were given",
                                                        cell.description(), names, inputs.size()));
  for (const Value& input : inputs)
    if (!input.defined())
      throw Exception(Code::invalid_argument,
                      fmt::format("{}: one of its inputs has no value", cell.description()));
}

Value filled_like(const Value& like, const Shape& shape, double value) {
  if (!like.defined()) return like;
  return graph::apply("fill", std::span<const Value>{},
                      {{"dtype", like.dtype()}, {"shape", shape.sizes()}, {"value", value}});
}

Value number_like(const Value& like, double value) { return filled_like(like, {}, value); }

Value apply_to(std::string_view op, const Value& x, const graph::Attributes& attributes) {
  return graph::apply(op, {x}, attributes);
}

Value transposed(const Value& x, std::vector<std::int64_t> order) {
  return apply_to("transpose", x, {{"perm", std::move(order)}});
}

}  // namespace muster::nn
