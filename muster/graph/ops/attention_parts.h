// Private to graph: attributes of attention, and the same in ops that exist.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "muster/graph/ops/rules.h"
#include "muster/tensor/tensor.h"

namespace muster::graph::attention_parts {

// Whether the last input is a number that the products are multiplied with, or divided by.
inline bool has_scale(const Attributes& attributes) { return attributes.find("scale_input") != nullptr; }
// Whether the mask, bool, is followed by the number that products become where it is `fills_where`.
inline bool has_fill(const Attributes& attributes) { return attributes.find("fills_where") != nullptr; }
inline bool divides(const Attributes& attributes) {
  return attributes.get("scale_input", std::string()) == "div";
}
inline double keep_prob_of(const Attributes& attributes) { return attributes.get("keep_prob", 1.0); }
inline bool blind_is_zero(const Attributes& attributes) { return attributes.get("blind_is_zero", false); }
inline bool is_rows_first(const Attributes& attributes) { return attributes.get("rows_first", false); }

// (samples, heads, rows, depth), also of a tensor whose rows come before its heads.
inline Shape heads_first(const Shape& shape, bool rows_first) {
  return rows_first && shape.rank() == 4 ? Shape{shape[0], shape[2], shape[1], shape[3]} : shape;
}

inline double scale_of(const Attributes& attributes, std::int64_t depth) {
  return attributes.get("scale", depth > 0 ? 1 / std::sqrt(static_cast<double>(depth)) : 1.0);
}

inline Value product(const Value& a, const Value& b, bool transpose_a = false, bool transpose_b = false) {
  return apply("batch_matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

inline Value total(const Value& x) {
  return apply("reduce_sum", {x}, {{"axes", Sizes{-1}}, {"keep_dims", true}});
}

// Of products that do not count.
inline constexpr double lowest = -1e30;

// (queries, keys), true where the key is not behind the query.
inline Tensor past_keys(std::int64_t queries, std::int64_t keys) {
  Tensor made(DType::bool_, Shape{queries, keys});
  for (std::int64_t i = 0; i < queries; ++i)
    for (std::int64_t j = 0; j < keys; ++j) made.data<bool>()[i * keys + j] = j <= i;
  return made;
}

// The same in ops that exist, with all products in memory: for gradients that the fused ops have none of.
// Heads that share keys are an axis of their own, so that k and v repeat by broadcasting.
class Unfused {
 public:
  Unfused(std::span<const Value> inputs, const Attributes& attributes)  // q, k, v and perhaps the mask
      : rows_first_(is_rows_first(attributes)),
        heads_(heads_first(inputs[0].shape(), rows_first_)[1] /
               heads_first(inputs[1].shape(), rows_first_)[1]),
        scale_(scale_of(attributes, inputs[0].shape()[3])),
        q(in_groups(inputs[0])),
        k(in_groups(inputs[1], 1)),
        v(in_groups(inputs[2], 1)) {
    if (has_scale(attributes)) {
      const Value given = apply("reshape", {inputs.back()}, {{"shape", Sizes{}}});
      factor_ = apply("cast", {given}, {{"dtype", q.dtype()}});
      if (divides(attributes)) factor_ = over(scalar_like(factor_, 1), factor_);
      inputs = inputs.first(inputs.size() - 1);
    }
    const Value products = scaled(product(q, k, false, true));
    const Shape shape = products.shape();
    Value visible = visible_keys(inputs, shape, attributes);
    Value s = products;
    const bool has_added = inputs.size() > 3 && inputs[3].dtype() != DType::bool_;
    if (has_added) s = plus(s, apply("cast", {mask_in_groups(inputs[3], shape)}, {{"dtype", q.dtype()}}));
    if (has_fill(attributes)) {
      not_filled_ = visible;
      const Value fill = apply("reshape", {inputs[4]}, {{"shape", Sizes{}}});
      s = apply("select", {visible, s, apply("cast", {fill}, {{"dtype", s.dtype()}})});
    }
    if (has_fill(attributes)) visible = Value();  // what it hides counts as the fill
    // A query that may see nothing gives zeros.
    if (has_added && blind_is_zero(attributes)) visible = and_not_blind(visible, s);
    if (visible.defined()) s = apply("select", {visible, s, scalar_like(s, lowest)});
    p = apply("softmax", {s});
    if (visible.defined()) p = apply("select", {visible, p, scalar_like(p, 0)});
    if (keep_prob_of(attributes) < 1) {
      const Value ones = filled_like(out_of_groups(p), 1);
      growth = apply("reshape",
                     {apply("dropout", {ones},
                            {{"keep_prob", keep_prob_of(attributes)},
                             {"stream", attributes.get("stream", std::int64_t{0})},
                             {"part", attributes.get("part", std::int64_t{0})}})},
                     {{"shape", shape.sizes()}});
    }
  }

  // One of q, k, v, y and their gradients as (samples, shared heads, heads that share one, ...).
  Value in_groups(const Value& given, std::int64_t group = 0) const {
    const Value x = exchanged(given);
    const Shape& shape = x.shape();
    const std::int64_t each = group == 0 ? heads_ : group;
    return apply("reshape", {x}, {{"shape", Sizes{shape[0], shape[1] / each, each, shape[2], shape[3]}}});
  }
  Value out_of_groups(const Value& x) const {
    const Shape& shape = x.shape();
    return apply("reshape", {x}, {{"shape", Sizes{shape[0], shape[1] * shape[2], shape[3], shape[4]}}});
  }
  // The gradient of `like`, which the products may have repeated.
  Value gradient_of(const Value& like, const Value& gradient) const {
    return exchanged(out_of_groups(summed_like(gradient, like)));
  }
  // Of the mask, for that of the products; undefined where none flows.
  Value gradient_of_mask(const Value& mask, const Value& ds) const {
    if (mask.dtype() == DType::bool_) return Value();
    return summed_like(apply("cast", {out_of_groups(ds)}, {{"dtype", mask.dtype()}}), mask);
  }
  Value dropped(const Value& x) const { return growth.defined() ? times(x, growth) : x; }
  Value scaled(const Value& x) const {
    const Value made = times(x, scale_);
    return factor_.defined() ? times(made, factor_) : made;
  }
  // The gradient through the softmax, which is its own transpose, and what the mask fills.
  Value through_softmax(const Value& dp) const {
    return of_products(times(p, minus(dp, total(times(dp, p)))));
  }
  // Nothing flows to products that something else took the place of.
  Value of_products(const Value& ds) const { return not_filled_.defined() ? where(not_filled_, ds) : ds; }

 private:
  // From rows before heads to heads first, and back.
  Value exchanged(const Value& x) const {
    return rows_first_ ? apply("transpose", {x}, {{"perm", Sizes{0, 2, 1, 3}}}) : x;
  }

  // The mask, of at most four axes, for products of five.
  Value mask_in_groups(const Value& mask, const Shape& products) const {
    Sizes sizes(4 - mask.shape().rank(), 1);
    sizes.insert(sizes.end(), mask.shape().begin(), mask.shape().end());
    const bool repeats = sizes[1] == 1;
    return apply("reshape", {mask},
                 {{"shape", Sizes{sizes[0], repeats ? 1 : products[1], repeats ? 1 : products[2], sizes[2],
                                  sizes[3]}}});
  }

  // Undefined: all are visible.
  Value visible_keys(std::span<const Value> inputs, const Shape& products,
                     const Attributes& attributes) const {
    Value visible;
    if (inputs.size() > 3 && inputs[3].dtype() == DType::bool_) visible = mask_in_groups(inputs[3], products);
    if (attributes.get("fills_where", false)) visible = apply("logical_not", {visible});
    if (attributes.get("is_causal", false)) {
      const Tensor past = past_keys(products[3], products[4]);
      visible = visible.defined() ? apply("logical_and", {visible, past}) : Value(past);
    }
    return visible;
  }

  // `visible` without the queries of which all products are minus infinity.
  static Value and_not_blind(const Value& visible, const Value& s) {
    const Value least = scalar_like(s, -std::numeric_limits<double>::infinity());
    const Value seen = visible.defined() ? apply("select", {visible, s, least}) : s;
    const Value top = apply("reduce_max", {seen}, {{"axes", Sizes{-1}}, {"keep_dims", true}});
    const Value sees = apply("not_equal", {top, least});
    return visible.defined() ? apply("logical_and", {visible, sees}) : sees;
  }

  bool rows_first_;
  std::int64_t heads_;  // that share keys
  double scale_;
  Value factor_;      // undefined: there is none
  Value not_filled_;  // undefined: all are products

 public:
  Value q, k, v;
  Value p;       // softmax
  Value growth;  // of dropout; undefined: there is none
};

}  // namespace muster::graph::attention_parts
