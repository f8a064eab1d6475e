#include "muster/nn/losses.h"

#include <fmt/format.h>

#include <utility>

#include "muster/nn/arguments.h"
#include "muster/nn/cell_text.h"
#include "muster/nn/ops.h"
#include "muster/nn/values.h"

namespace muster::nn {
namespace {

constexpr std::string_view two = "logits and labels";

// Logits (N, C, d...) and labels (N, d...) as rows (N d..., C) and (N d...,); (C,) and () as one row.
struct Rows {
  Value logits;
  Value labels;
  Shape losses;  // the shape of the labels
};

Rows as_rows(const Value& logits, const Value& labels) {
  const Shape& shape = logits.shape();
  if (shape.rank() == 2) return {logits, labels, labels.shape()};
  if (shape.rank() == 1) {
    const Value one = labels.shape().rank() == 0 ? ops::reshape(labels, {1}) : labels;
    return {ops::reshape(logits, {1, shape[0]}), one, labels.shape()};
  }
  std::vector<std::int64_t> order{0};
  std::vector<std::int64_t> expected{shape[0]};
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) {
    order.push_back(static_cast<std::int64_t>(axis));
    expected.push_back(shape[axis]);
  }
  order.push_back(1);
  if (labels.shape() != Shape(expected)) return {logits, labels, labels.shape()};  // the op refuses it
  const std::int64_t rows = labels.shape().elements();
  return {ops::reshape(transposed(logits, std::move(order)), {rows, shape[1]}), ops::reshape(labels, {rows}),
          labels.shape()};
}

// One loss for each label, or one for all.
Value in_shape(const Value& loss, const std::string& reduction, const Shape& losses) {
  if (reduction != "none" || loss.shape() == losses) return loss;
  return ops::reshape(loss, losses);
}

Result<> check_reduction(std::string_view owner, const std::string& reduction) {
  if (reduction == "mean" || reduction == "sum" || reduction == "none") return {};
  return refuse_argument(owner, "reduction", "'mean', 'sum' or 'none'", "'" + reduction + "'");
}

Value difference(std::span<const Value> inputs) { return ops::sub(inputs[0], inputs[1]); }

Value one_less(const Value& x) { return ops::sub(number_like(x, 1), x); }

}  // namespace

LossBase::LossBase(std::string reduction, std::string class_name)
    : Cell(std::move(class_name)), reduction_(std::move(reduction)) {
  check_reduction(this->class_name(), reduction_).value();
}

Value LossBase::get_loss(const Value& x, const Value& weights) const {
  const Value weighted = weights.defined() ? ops::mul(x, weights) : x;
  if (reduction_ == "mean") return ops::reduce_mean(weighted);
  return reduction_ == "sum" ? ops::reduce_sum(weighted) : weighted;
}

Values LossBase::construct(std::span<const Value>) {
  throw Exception(Code::invalid_argument, description() + " defines no construct, so it cannot be called");
}

// ---- Differences ------------------------------------------------------------------------------------------

Values L1Loss::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 2, two);
  return get_loss(apply_to("abs", difference(inputs)));
}

Values MSELoss::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 2, two);
  return get_loss(apply_to("square", difference(inputs)));
}

SmoothL1Loss::SmoothL1Loss(double beta, std::string reduction)
    : LossBase(std::move(reduction), "SmoothL1Loss"), beta_(beta) {
  require_positive("SmoothL1Loss", "beta", beta).value();
}

// With c = min(d, beta) both cases are c (d - c / 2) / beta.
Values SmoothL1Loss::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 2, two);
  const Value d = apply_to("abs", difference(inputs));
  const Value c = graph::apply("minimum", {d, number_like(d, beta_)});
  const Value half = ops::sub(d, ops::mul(c, number_like(c, 0.5)));
  return get_loss(ops::mul(ops::mul(c, half), number_like(c, 1 / beta_)));
}

// ---- Two classes ------------------------------------------------------------------------------------------

BCELoss::BCELoss(BCEOptions options)
    : LossBase(std::move(options.reduction), "BCELoss"), weight_(std::move(options.weight)) {}

Values BCELoss::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 2, two);
  const auto log = [](const Value& x) {
    return apply_to("log", graph::apply("maximum", {x, number_like(x, 1e-12)}));
  };
  const Value& x = inputs[0];
  const Value& y = inputs[1];
  const Value sum = ops::add(ops::mul(y, log(x)), ops::mul(one_less(y), log(one_less(x))));
  return get_loss(apply_to("neg", sum), weight_);
}

BCEWithLogitsLoss::BCEWithLogitsLoss(BCEWithLogitsOptions options)
    : LossBase(std::move(options.reduction), "BCEWithLogitsLoss"),
      weight_(std::move(options.weight)),
      pos_weight_(std::move(options.pos_weight)) {}

Values BCEWithLogitsLoss::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 2, two);
  const Value& x = inputs[0];
  const Value& y = inputs[1];
  Value softplus = apply_to("softplus", apply_to("neg", x));
  if (pos_weight_.defined()) {
    const Value more = ops::mul(ops::sub(pos_weight_, number_like(pos_weight_, 1)), y);
    softplus = ops::mul(ops::add(more, number_like(more, 1)), softplus);
  }
  return get_loss(ops::add(ops::mul(one_less(y), x), softplus), weight_);
}

// ---- Many classes -----------------------------------------------------------------------------------------

SoftmaxCrossEntropyWithLogits::SoftmaxCrossEntropyWithLogits(SoftmaxCrossEntropyOptions options)
    : LossBase(std::move(options.reduction), "SoftmaxCrossEntropyWithLogits"), sparse_(options.sparse) {}

Values SoftmaxCrossEntropyWithLogits::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 2, two);
  if (sparse_) return graph::apply("softmax_cross_entropy", inputs, {{"reduction", reduction()}});
  if (inputs[0].shape().rank() != 2 || inputs[1].shape() != inputs[0].shape())
    throw Exception(
        Code::invalid_argument,
        fmt::format("{}: logits (N, C) and labels of the same shape are needed, not {} and {}; for class "
                    "numbers say sparse=True",
                    description(), muster::to_string(inputs[0].shape()),
                    muster::to_string(inputs[1].shape())));
  const Value logs = apply_to("log_softmax", inputs[0], {{"axis", std::int64_t{-1}}});
  const Value sums = apply_to("reduce_sum", ops::mul(logs, inputs[1]),
                              {{"axes", std::vector<std::int64_t>{1}}, {"keep_dims", false}});
  return get_loss(apply_to("neg", sums));
}

NLLLoss::NLLLoss(NLLOptions options) : LossBase(options.reduction, "NLLLoss"), options_(std::move(options)) {}

Values NLLLoss::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 2, two);
  const Rows rows = as_rows(inputs[0], inputs[1]);
  std::vector<Value> given{rows.logits, rows.labels};
  if (options_.weight.defined()) given.push_back(options_.weight);
  return in_shape(
      graph::apply("nll_loss", given, {{"reduction", reduction()}, {"ignore_index", options_.ignore_index}}),
      reduction(), rows.losses);
}

CrossEntropyLoss::CrossEntropyLoss(CrossEntropyOptions options)
    : LossBase(options.reduction, "CrossEntropyLoss"), options_(std::move(options)) {
  if (!(options_.label_smoothing >= 0 && options_.label_smoothing <= 1))
    refuse_argument("CrossEntropyLoss", "label_smoothing", "in [0, 1]", options_.label_smoothing).value();
}

Values CrossEntropyLoss::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 2, two);
  return is_floating(inputs[1].dtype()) && inputs[0].shape() == inputs[1].shape()
             ? of_probabilities(inputs[0], inputs[1])
             : of_numbers(inputs[0], inputs[1]);
}

Value CrossEntropyLoss::of_numbers(const Value& logits, const Value& labels) const {
  const Rows rows = as_rows(logits, labels);
  std::vector<Value> given{rows.logits, rows.labels};
  if (options_.weight.defined()) given.push_back(options_.weight);
  return in_shape(graph::apply("softmax_cross_entropy", given,
                               {{"reduction", reduction()},
                                {"ignore_index", options_.ignore_index},
                                {"label_smoothing", options_.label_smoothing}}),
                  reduction(), rows.losses);
}

Value CrossEntropyLoss::of_probabilities(const Value& logits, const Value& labels) const {
  const Shape& shape = logits.shape();
  if (shape.rank() == 0)
    throw Exception(Code::invalid_argument, description() + ": logits need a class axis, not ()");
  const std::int64_t axis = shape.rank() == 1 ? 0 : 1;
  const std::int64_t classes = shape[static_cast<std::size_t>(axis)];
  Value wanted = labels;
  if (options_.label_smoothing > 0) {
    wanted = ops::mul(wanted, number_like(wanted, 1 - options_.label_smoothing));
    wanted = ops::add(wanted, number_like(wanted, options_.label_smoothing / static_cast<double>(classes)));
  }
  if (options_.weight.defined()) {
    std::vector<std::int64_t> sizes(shape.rank(), 1);
    sizes[static_cast<std::size_t>(axis)] = classes;
    wanted = ops::mul(wanted, ops::reshape(options_.weight, Shape(std::move(sizes))));
  }
  const Value product = ops::mul(apply_to("log_softmax", logits, {{"axis", axis}}), wanted);
  const Value losses = apply_to(
      "neg",
      apply_to("reduce_sum", product, {{"axes", std::vector<std::int64_t>{axis}}, {"keep_dims", false}}));
  return get_loss(losses);
}

std::string LossBase::settings() const { return CellText().add("reduction", reduction_).take(); }

}  // namespace muster::nn
