#include "muster/nn/recurrent.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "muster/nn/arguments.h"
#include "muster/nn/cell_text.h"
#include "muster/nn/initializers.h"
#include "muster/nn/operators.h"
#include "muster/nn/ops.h"
#include "muster/nn/values.h"

namespace muster::nn {
namespace {

// x (..., features) to x weight^T + bias. Made once for all steps: so the weight is transposed once, and its
// gradients are summed before they are.
class Linear {
 public:
  Linear(const ParameterPtr& weight, const ParameterPtr& bias, DType dtype)
      : columns_(transposed(graph::floating_as(weight, dtype), {1, 0})) {
    if (bias != nullptr) bias_ = graph::floating_as(bias, dtype);
  }
  Value operator()(const Value& x) const {
    const Value y = ops::matmul(x, columns_);
    return bias_.defined() ? ops::bias_add(y, bias_) : y;
  }

 private:
  Value columns_, bias_;
};

template <Value (*activation)(const Value&)>
Values rnn_step(const Value& given, const Value& carried, const Values&) {
  return {activation(given + carried)};
}

Values lstm_step(const Value& given, const Value& carried, const Values& states) {
  const Value sum = given + carried;
  const Values gates = ops::split_by(sum, sum.shape()[1] / 4, 1);
  const Value c = ops::sigmoid(gates[1]) * states[1] + ops::sigmoid(gates[0]) * ops::tanh(gates[2]);
  return {ops::sigmoid(gates[3]) * ops::tanh(c), c};
}

Values gru_step(const Value& given, const Value& carried, const Values& states) {
  const Value& h = states[0];
  const Values from_x = ops::split_by(given, h.shape()[1], 1),
               from_h = ops::split_by(carried, h.shape()[1], 1);
  const Value reset = ops::sigmoid(from_x[0] + from_h[0]);
  const Value update = ops::sigmoid(from_x[1] + from_h[1]);
  const Value fresh = ops::tanh(from_x[2] + reset * from_h[2]);
  return {fresh + update * (h - fresh)};
}

bool is_lengths(const Value& value) { return is_whole(value.dtype()); }

}  // namespace

Recurrent::Recurrent(std::string class_name, Kind kind, std::int64_t input_size, std::int64_t hidden_size,
                     const RecurrentOptions& options)
    : Cell(std::move(class_name)),
      kind_(kind),
      input_size_(input_size),
      hidden_size_(hidden_size),
      options_(options) {
  require_count(this->class_name(), "input_size", input_size).value();
  require_count(this->class_name(), "hidden_size", hidden_size).value();
  require_count(this->class_name(), "num_layers", options.num_layers).value();
  if (!(options.dropout >= 0 && options.dropout < 1))
    refuse_argument(this->class_name(), "dropout", "in [0, 1)", options.dropout).value();
  make_weights();
}

void Recurrent::make_weights() {
  weights_.resize(static_cast<std::size_t>(options_.num_layers * directions()));
  for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
    const std::int64_t features = layer == 0 ? input_size_ : hidden_size_ * directions();
    for (std::int64_t direction = 0; direction < directions(); ++direction)
      make(weights_[static_cast<std::size_t>(layer * directions() + direction)], features,
           fmt::format("_l{}{}", layer, direction == 0 ? "" : "_reverse"));
  }
}

void Recurrent::make(Weights& weights, std::int64_t features, const std::string& ending) {
  const std::int64_t rows = kind_.gates * hidden_size_;
  const auto add = [&](ParameterPtr& member, const char* name, const Shape& shape) {
    member = std::make_shared<graph::Parameter>(name + ending, graph::TensorType{DType::float32, shape},
                                                uniform(1 / std::sqrt(static_cast<double>(hidden_size_))));
    keep_param(name + ending, member);
  };
  add(weights.weight_ih, "weight_ih", {rows, features});
  add(weights.weight_hh, "weight_hh", {rows, hidden_size_});
  if (!options_.has_bias) return;
  add(weights.bias_ih, "bias_ih", {rows});
  add(weights.bias_hh, "bias_hh", {rows});
}

Values Recurrent::construct(std::span<const Value> inputs) {
  const bool has_lengths = inputs.size() > 1 && inputs.back().defined() && is_lengths(inputs.back());
  const std::span<const Value> given = inputs.first(inputs.size() - (has_lengths ? 1 : 0));
  if (given.size() != 1 && given.size() != 1 + kind_.states)
    throw Exception(Code::invalid_argument,
                    fmt::format("{}: {} inputs do not fit: x, or x and {} are needed, and lengths may follow",
                                description(), inputs.size(), kind_.states == 1 ? "h" : "h and c"));
  require_inputs(*this, given, given.size(), "x and its states");
  if (const Shape& shape = given[0].shape(); shape.rank() != 3 || shape[2] != input_size_)
    throw Exception(Code::invalid_argument, fmt::format("{}: input {} does not fit: ({}, {}) is needed",
                                                        description(), muster::to_string(shape),
                                                        options_.batch_first ? "N, T" : "T, N", input_size_));
  Value x = options_.batch_first ? transposed(given[0], {1, 0, 2}) : given[0];
  const Value lengths = has_lengths ? inputs.back() : Value();
  if (has_lengths && lengths.shape() != Shape{x.shape()[1]})
    throw Exception(Code::invalid_argument,
                    fmt::format("{}: lengths {} do not fit: ({},) is needed, one for each sample",
                                description(), muster::to_string(lengths.shape()), x.shape()[1]));
  const Values before = begin(x, given.subspan(1));  // all layers' h, then all layers' c
  std::vector<Values> behind(kind_.states);
  for (std::size_t place = 0; place < weights_.size();) {
    Values outputs;
    for (std::int64_t direction = 0; direction < directions(); ++direction, ++place) {
      Values states;
      for (std::size_t state = 0; state < kind_.states; ++state)
        states.push_back(before[state * weights_.size() + place]);
      Pass pass = run(weights_[place], x, std::move(states), lengths, direction == 1);
      outputs.push_back(pass.outputs);
      for (std::size_t state = 0; state < kind_.states; ++state) behind[state].push_back(pass.states[state]);
    }
    x = outputs.size() == 1 ? outputs[0] : ops::concat(outputs, 2);
    if (training() && options_.dropout > 0 && place < weights_.size())
      x = ops::dropout(x, 1 - options_.dropout, graph::default_context());
  }
  Values result{options_.batch_first ? transposed(x, {1, 0, 2}) : x};
  for (const Values& states : behind) result.push_back(ops::stack(states));
  return result;
}

Values Recurrent::begin(const Value& x, std::span<const Value> given) const {
  const Shape needed{static_cast<std::int64_t>(weights_.size()), x.shape()[1], hidden_size_};
  Values states;
  for (std::size_t state = 0; state < kind_.states; ++state) {
    const Value all = given.empty() ? filled_like(x, needed, 0) : given[state];
    if (all.shape() != needed)
      throw Exception(Code::invalid_argument,
                      fmt::format("{}: a state {} does not fit: {} is needed, (layers x directions, N, "
                                  "hidden_size)",
                                  description(), muster::to_string(all.shape()), muster::to_string(needed)));
    const Values parts = ops::unstack(all);
    states.insert(states.end(), parts.begin(), parts.end());
  }
  return states;
}

Recurrent::Pass Recurrent::run(const Weights& weights, const Value& x, Values states, const Value& lengths,
                               bool is_reverse) const {
  const std::int64_t steps = x.shape()[0], samples = x.shape()[1], rows = kind_.gates * hidden_size_;
  const Linear from_x(weights.weight_ih, weights.bias_ih, x.dtype());
  const Linear from_h(weights.weight_hh, weights.bias_hh, states[0].dtype());
  const Value flat = ops::reshape(x, {steps * samples, x.shape()[2]});
  const Values given = ops::unstack(ops::reshape(from_x(flat), {steps, samples, rows}));
  Values outputs(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t t = is_reverse ? given.size() - 1 - i : i;
    Values after = kind_.step(given[t], from_h(states[0]), states);
    outputs[t] = after[0];
    if (lengths.defined()) {
      const Value is_inside = ops::expand_dims(lengths > static_cast<std::int64_t>(t), 1);
      outputs[t] = ops::select(is_inside, after[0], ops::zeros_like(after[0]));
      for (std::size_t state = 0; state < after.size(); ++state)
        after[state] = ops::select(is_inside, after[state], states[state]);
    }
    states = std::move(after);
  }
  return {ops::stack(outputs), std::move(states)};
}

std::string Recurrent::settings() const {
  return CellText()
      .add(input_size_)
      .add(hidden_size_)
      .add_unless("num_layers", options_.num_layers, 1)
      .add_unless("has_bias", options_.has_bias, true)
      .add_unless("batch_first", options_.batch_first, false)
      .add_unless("dropout", options_.dropout, 0)
      .add_unless("bidirectional", options_.bidirectional, false)
      .take();
}

RNN::RNN(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options,
         RecurrentActivation activation)
    : Recurrent(
          "RNN",
          {.step = activation == RecurrentActivation::tanh ? &rnn_step<ops::tanh> : &rnn_step<ops::relu>},
          input_size, hidden_size, options) {}

LSTM::LSTM(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options)
    : Recurrent("LSTM", {.gates = 4, .states = 2, .step = &lstm_step}, input_size, hidden_size, options) {}

GRU::GRU(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options)
    : Recurrent("GRU", {.gates = 3, .step = &gru_step}, input_size, hidden_size, options) {}

}  // namespace muster::nn
