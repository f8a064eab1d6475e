// Private to nn: helpers of construct code.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "muster/nn/cell.h"

namespace muster::nn {

// `cell` takes one tensor: it, or an Exception that says so.
Value only_input(const Cell& cell, std::span<const Value> inputs);
// An Exception unless there are as many inputs as `names` says ("logits and labels"), and each has a value.
void require_inputs(const Cell& cell, std::span<const Value> inputs, std::size_t count,
                    std::string_view names);

// A tensor of one number, of the dtype of `like`.
Value number_like(const Value& like, double value);
// A tensor of `shape` full of one number, of the dtype of `like`.
Value filled_like(const Value& like, const Shape& shape, double value);

// Ops that are rows of graph.
Value apply_to(std::string_view op, const Value& x, const graph::Attributes& attributes = {});
// `axes` of `x` in another order: output axis i is input axis order[i].
Value transposed(const Value& x, std::vector<std::int64_t> order);

}  // namespace muster::nn
