// Operators on values: x * 2 + y, x < 0.5. Numbers take the dtype of the tensor beside them (number_beside).
//
// They stand in the namespaces of Value and of Tensor, because that is where the language looks for them.
#pragma once

#include <concepts>
#include <cstdint>

#include "muster/nn/op_functions.h"
#include "muster/nn/ops_math.h"

namespace muster::graph {

// A number beside a tensor: whole ones and fractions promote differently.
class Number {
 public:
  template <std::integral I>
  Number(I value) : whole_(static_cast<std::int64_t>(value)) {}  // NOLINT: implicit by design
  template <std::floating_point F>
  Number(F value) : fraction_(static_cast<double>(value)), is_whole_(false) {}  // NOLINT: likewise

  Value beside(const Value& like) const {
    return is_whole_ ? nn::ops::number_beside(like, whole_) : nn::ops::number_beside(like, fraction_);
  }

 private:
  std::int64_t whole_ = 0;
  double fraction_ = 0;
  bool is_whole_ = true;
};

#define MUSTER_OPERATOR(symbol, function)                                                              \
  inline Value operator symbol(const Value& a, const Value& b) { return nn::ops::function(a, b); }     \
  inline Value operator symbol(const Value& a, Number b) { return nn::ops::function(a, b.beside(a)); } \
  inline Value operator symbol(Number a, const Value& b) { return nn::ops::function(a.beside(b), b); }
MUSTER_OPERATOR(+, add)
MUSTER_OPERATOR(-, sub)
MUSTER_OPERATOR(*, mul)
MUSTER_OPERATOR(/, div)
MUSTER_OPERATOR(%, mod)
MUSTER_OPERATOR(<, less)
MUSTER_OPERATOR(<=, less_equal)
MUSTER_OPERATOR(>, greater)
MUSTER_OPERATOR(>=, greater_equal)
#undef MUSTER_OPERATOR
inline Value operator-(const Value& x) { return nn::ops::neg(x); }

}  // namespace muster::graph

namespace muster {
using graph::operator+;
using graph::operator-;
using graph::operator*;
using graph::operator/;
using graph::operator%;
using graph::operator<;
using graph::operator<=;
using graph::operator>;
using graph::operator>=;
}  // namespace muster
