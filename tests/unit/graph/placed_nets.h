// Small networks whose layers are placed, and their training, for tests of divided graphs.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/graph/plan.h"
#include "stages.h"

namespace muster::graph {

using Ints = std::vector<std::int64_t>;

// A network: what it is called with, and a loss made of that and of parameters.
class Net {
 public:
  virtual ~Net() = default;
  virtual std::vector<Tensor> batch(std::uint64_t step) const = 0;
  virtual Values loss(std::span<const Value> inputs) = 0;

  const std::vector<ParameterPtr>& parameters() const { return parameters_; }
  // What is written on the way, without gradients.
  virtual std::vector<ParameterPtr> statistics() const { return {}; }

 protected:
  ParameterPtr parameter(const std::string& name, const Shape& shape, float scale = 0.3F) {
    const Initializer fill = [scale](const Tensor& out, const RandomStream& stream) {
      for (std::int64_t i = 0; i < out.elements(); ++i)
        out.data<float>()[i] =
            scale * static_cast<float>(2 * stream.uniform(static_cast<std::uint64_t>(i)) - 1);
    };
    parameters_.push_back(std::make_shared<Parameter>(name, TensorType{DType::float32, shape}, fill));
    return parameters_.back();
  }

 private:
  std::vector<ParameterPtr> parameters_;
};

// As nn's optimizers are made from the row of their update: state for each parameter, a rate and a counter of
// steps for all.
class Optimizer {
 public:
  Optimizer(std::string op, const std::vector<ParameterPtr>& parameters)
      : op_(std::move(op)), schema_(find_op(op_)->optimizer), parameters_(parameters) {
    const Initializer tenths = [](const Tensor& out, const RandomStream&) {
      std::fill_n(out.data<float>(), out.elements(), 0.1F);
    };
    for (const ParameterPtr& parameter : parameters)
      for (const OptimizerState& state : kept_states())
        states_.push_back(std::make_shared<Parameter>(fmt::format("{}.{}", state.name, parameter->name()),
                                                      parameter->type(), tenths, false));
    rate_ = std::make_shared<Parameter>("learning_rate", Tensor::scalar(0.05F), false);
    steps_ = std::make_shared<Parameter>("global_step", Tensor::zeros(DType::int32, {1}), false);
  }

  Values update(std::span<const Value> gradients) {
    const Value one = apply("fill", std::span<const Value>{},
                            {{"dtype", DType::int32}, {"shape", Ints{1}}, {"value", 1.0}});
    Values made{apply("assign_add", {steps_, one})};
    const std::size_t count = kept_states().size();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      std::vector<Value> inputs{parameters_[i], gradients[i], rate_};
      for (std::size_t k = 0; k < count; ++k) inputs.emplace_back(states_[i * count + k]);
      const auto& read = schema_.inputs;
      if (std::find(read.begin(), read.end(), "global_step") != read.end()) inputs.emplace_back(steps_);
      made.push_back(apply(op_, inputs, {{"momentum", 0.9}}));
    }
    return made[0];
  }

  const std::vector<ParameterPtr>& state() const { return states_; }
  const Parameter& counter() const { return *steps_; }

 private:
  std::vector<OptimizerState> kept_states() const {
    std::vector<OptimizerState> kept = schema_.states;
    std::erase_if(kept, [](const OptimizerState& state) { return !state.kept_with.empty(); });
    return kept;
  }

  std::string op_;
  const OptimizerSchema& schema_;
  std::vector<ParameterPtr> parameters_;
  std::vector<ParameterPtr> states_;
  ParameterPtr rate_, steps_;
};

// All that are not numbers are alike.
using Bits = std::vector<std::uint32_t>;
inline Bits bits_of(const Tensor& tensor) {
  Bits made;
  for (const float element : tensor.span<float>())
    made.push_back(std::isnan(element) ? UINT32_MAX : std::bit_cast<std::uint32_t>(element));
  return made;
}

// What a worker saw in a training.
struct Seen {
  std::vector<Bits> losses;
  std::map<std::string, Bits> parameters;  // that it has, state included
  std::set<std::string> elsewhere;         // that others have
  std::optional<std::string> problem;
  std::optional<Partition> partition;
};

enum class Loop { one_graph, by_hand };

inline constexpr std::uint64_t steps = 3;

// Only the reader has a batch; others know its types.
inline std::vector<Tensor> batch_for(const Net& net, std::uint64_t step, bool reads) {
  std::vector<Tensor> batch = net.batch(step);
  if (reads) return batch;
  for (Tensor& tensor : batch) tensor = Tensor::absent(tensor.dtype(), tensor.shape(), "the reader has it");
  return batch;
}

class Training {
 public:
  Training(std::unique_ptr<Net> net, const std::string& optimizer, Loop loop)
      : net_(std::move(net)), optimizer_(optimizer, net_->parameters()), loop_(loop) {
    gradients_ = value_and_grad("net", [this](std::span<const Value> inputs) { return net_->loss(inputs); },
                                {.parameters = net_->parameters()});
    update_ = std::make_unique<Function>(
        "update", [this](std::span<const Value> inputs) { return optimizer_.update(inputs); });
    step_ = std::make_unique<Function>("step", [this](std::span<const Value> inputs) {
      Values made = (*gradients_)(inputs);
      (*update_)(std::span(made).subspan(1));
      return Values(made[0]);
    });
    step_->replicate_outputs();
  }

  Seen run(const RunContext& context) {
    Seen seen;
    for (std::uint64_t step = 0; step < steps; ++step) {
      Result<Tensor> loss = one_step(step, context);
      if (!loss) {
        seen.problem = loss.error().message;
        return seen;
      }
      seen.losses.push_back(bits_of(*loss));
    }
    look(seen, net_->parameters());
    look(seen, net_->statistics());
    look(seen, optimizer_.state());
    if (*optimizer_.counter().storage().data<std::int32_t>() != static_cast<std::int32_t>(steps))
      seen.problem = "the steps were not counted";
    const Function& first = loop_ == Loop::one_graph ? *step_ : *gradients_;
    if (first.plan()->partition() != nullptr) seen.partition = *first.plan()->partition();
    if (first.trace_count() != 1) seen.problem = "traced again: " + first.traces().back().reason;
    return seen;
  }

 private:
  Result<Tensor> one_step(std::uint64_t step, const RunContext& context) {
    Function& function = loop_ == Loop::one_graph ? *step_ : *gradients_;
    if (step == 0) MUSTER_TRY_VOID(function.compile(batch_for(*net_, step, false), {}, context));
    const bool reads = context.stages == nullptr || context.stages->size() == 1 ||
                       function.plan()->partition() == nullptr ||
                       function.plan()->partition()->reader == context.stages->rank();
    MUSTER_TRY(const std::vector<Tensor> made, function.call(batch_for(*net_, step, reads), {}, context));
    if (loop_ == Loop::by_hand) MUSTER_TRY_VOID(update_->call(std::span(made).subspan(1), {}, context));
    return made[0];
  }

  static void look(Seen& seen, const std::vector<ParameterPtr>& parameters) {
    for (const ParameterPtr& parameter : parameters)
      if (parameter->absence() == nullptr && parameter->materialized())
        seen.parameters[parameter->name()] = bits_of(parameter->storage());
      else
        seen.elsewhere.insert(parameter->name());
  }

  std::unique_ptr<Net> net_;
  Optimizer optimizer_;
  Loop loop_;
  std::shared_ptr<Function> gradients_;
  std::unique_ptr<Function> update_, step_;
};

// ---- Networks --------------------------------------------------------------------------------------------

class Chain final : public Net {
 public:
  explicit Chain(std::vector<PlacementPtr> placements) : placements_(std::move(placements)) {
    for (std::size_t i = 0; i < placements_.size(); ++i)
      weights_.push_back(parameter(fmt::format("w{}", i), {6, 6}));
  }
  std::vector<Tensor> batch(std::uint64_t step) const override { return {numbers({4, 6}, step)}; }
  Values loss(std::span<const Value> inputs) override {
    Value x = inputs[0];
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const PlaceScope place(placements_[i]);
      x = apply("tanh", {apply("matmul", {x, weights_[i]})});
    }
    return apply("reduce_mean", {apply("mul", {x, x})});
  }

 private:
  std::vector<PlacementPtr> placements_;
  std::vector<ParameterPtr> weights_;
};

class LeNet final : public Net {
 public:
  explicit LeNet(std::int64_t samples = 8) : samples_(samples) {
    conv1_ = parameter("conv1.weight", {6, 1, 5, 5});
    conv2_ = parameter("conv2.weight", {16, 6, 5, 5}, 0.1F);
    for (const auto& [name, in, out] : {std::tuple{"fc1", 400, 120}, {"fc2", 120, 84}, {"fc3", 84, 10}}) {
      dense_.push_back(parameter(fmt::format("{}.weight", name), {out, in}, 0.1F));
      dense_.push_back(parameter(fmt::format("{}.bias", name), {out}, 0.1F));
    }
  }
  std::vector<Tensor> batch(std::uint64_t step) const override {
    Tensor labels(DType::int32, {samples_});
    for (std::int64_t i = 0; i < samples_; ++i)
      labels.data<std::int32_t>()[i] = static_cast<std::int32_t>((i + static_cast<std::int64_t>(step)) % 10);
    return {numbers({samples_, 1, 32, 32}, step), labels};
  }
  Values loss(std::span<const Value> inputs) override {
    Value x = convolution(inputs[0], conv1_, 3, "LeNet 'conv1', lenet.py:31");
    x = convolution(x, conv2_, 4, "LeNet 'conv2', lenet.py:32");
    x = apply("reshape", {x}, {{"shape", Ints{samples_, 400}}});
    x = apply("relu", {dense(x, 0, "LeNet 'fc1', lenet.py:28")});
    x = apply("relu", {dense(x, 1, "LeNet 'fc2', lenet.py:29")});
    x = dense(x, 2, "LeNet 'fc3', lenet.py:30");
    return apply("softmax_cross_entropy", {x, inputs[1]});
  }

 private:
  static Value convolution(const Value& x, const Value& weight, std::uint32_t rank, std::string origin) {
    Value y;
    {
      const PlaceScope place(on(rank, std::move(origin)));
      y = apply("conv2d", {x, weight});
    }
    return apply("max_pool2d", {apply("relu", {y})}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  }
  Value dense(const Value& x, std::uint32_t rank, std::string origin) const {
    const PlaceScope place(on(rank, std::move(origin)));
    return apply("bias_add",
                 {apply("matmul", {x, dense_[2 * rank]}, {{"transpose_b", true}}), dense_[2 * rank + 1]});
  }

  std::int64_t samples_;
  ParameterPtr conv1_, conv2_;
  std::vector<ParameterPtr> dense_;
};

// Blocks with a way around each, on another worker than the block before: the skip crosses too.
class Residual final : public Net {
 public:
  Residual() {
    for (int i = 0; i < 4; ++i) {
      weights_.push_back(parameter(fmt::format("conv{}", i), {16, 16, 3, 3}));
      weights_.push_back(parameter(fmt::format("gamma{}", i), {16}, 1));
      weights_.push_back(parameter(fmt::format("beta{}", i), {16}));
      for (const auto& [name, value] : {std::pair{"mean", 0.F}, {"variance", 1.F}}) {
        const Initializer fill = [value = value](const Tensor& out, const RandomStream&) {
          std::fill_n(out.data<float>(), out.elements(), value);
        };
        statistics_.push_back(std::make_shared<Parameter>(fmt::format("{}{}", name, i),
                                                          TensorType{DType::float32, {16}}, fill, false));
      }
    }
  }
  std::vector<Tensor> batch(std::uint64_t step) const override { return {numbers({2, 16, 8, 8}, step)}; }
  std::vector<ParameterPtr> statistics() const override { return statistics_; }
  Values loss(std::span<const Value> inputs) override {
    Value x = inputs[0];
    for (std::size_t i = 0; i < 4; ++i) {
      const Value before = x;
      {
        const PlaceScope place(on(static_cast<std::uint32_t>(i + 1) % 3));
        const std::size_t w = 3 * i, s = 2 * i;
        x = apply("conv2d", {x, weights_[w]}, {{"pads", Ints{1, 1, 1, 1}}});
        x = apply("batch_norm", {x, weights_[w + 1], weights_[w + 2], statistics_[s], statistics_[s + 1]},
                  {{"training", true}});
      }
      x = apply("relu", {apply("add", {x, before})});
    }
    return apply("reduce_mean", {apply("mul", {x, x})});
  }

 private:
  std::vector<ParameterPtr> weights_, statistics_;
};

// Ops that are rows alone: no part of the division knows them by name.
class Rows final : public Net {
 public:
  Rows() : weight_(parameter("w", {6, 6})), gamma_(parameter("gamma", {6}, 1)) {}
  std::vector<Tensor> batch(std::uint64_t step) const override {
    Tensor places(DType::int32, {4, 6});
    for (std::int64_t i = 0; i < places.elements(); ++i)
      places.data<std::int32_t>()[i] =
          static_cast<std::int32_t>((i * 5 + static_cast<std::int64_t>(step)) % 6);
    return {numbers({4, 6}, step), places};
  }
  Values loss(std::span<const Value> inputs) override {
    Value x = inputs[0];
    {
      const PlaceScope place(on(0));
      x = apply("rms_norm", {apply("matmul", {x, weight_}), gamma_});
    }
    {
      const PlaceScope place(on(1));
      x = apply("cumprod", {x}, {{"axis", std::int64_t{1}}});
    }
    {
      const PlaceScope place(on(2));
      x = apply("gather_elements", {x, inputs[1]}, {{"axis", std::int64_t{1}}});
    }
    return apply("reduce_mean", {apply("mul", {x, x})});
  }

 private:
  ParameterPtr weight_, gamma_;
};

// One weight, used by two workers and by none in particular.
class Shared final : public Net {
 public:
  Shared() : weight_(parameter("w", {6, 6})) {}
  std::vector<Tensor> batch(std::uint64_t step) const override { return {numbers({4, 6}, step)}; }
  Values loss(std::span<const Value> inputs) override {
    Value x = inputs[0];
    for (const auto& placement : {on(1), on(2), PlacementPtr(), on(1)}) {
      const PlaceScope place(placement);
      x = apply("tanh", {apply("matmul", {x, weight_})});
    }
    return apply("reduce_mean", {apply("mul", {x, x})});
  }

 private:
  ParameterPtr weight_;
};

// Any ops on any workers, and on none in particular.
class Random final : public Net {
 public:
  Random(std::uint32_t seed, std::uint32_t size) : seed_(seed), size_(size) {
    for (int i = 0; i < 5; ++i) weights_.push_back(parameter(fmt::format("w{}", i), {6, 6}));
  }
  std::vector<Tensor> batch(std::uint64_t step) const override {
    return {numbers({6, 6}, 2 * step), numbers({6, 6}, 2 * step + 1)};
  }
  Values loss(std::span<const Value> inputs) override {
    std::mt19937 random(seed_);
    const auto below = [&](std::size_t count) { return random() % count; };
    std::vector<Value> values(inputs.begin(), inputs.end());
    for (int i = 0; i < 14; ++i) {
      const std::size_t rank = below(size_ + 2);
      const PlaceScope place(rank < size_ ? on(static_cast<std::uint32_t>(rank)) : nullptr);
      const Value& a = values[values.size() - 1 - below(std::min<std::size_t>(values.size(), 4))];
      const Value& b = below(2) == 0 ? values[below(values.size())] : Value(weights_[below(5)]);
      switch (below(7)) {
        case 0:
          values.push_back(apply("add", {a, b}));
          break;
        case 1:
          values.push_back(apply("relu", {a}));
          break;
        case 2:
          values.push_back(apply("reshape", {apply("tanh", {a})}, {{"shape", Ints{6, 6}}}));
          break;
        case 3:
          values.push_back(apply("bias_add", {apply("mul", {a, b}), bias_}));
          break;
        case 4:
          values.push_back(apply("relu", {apply("bias_add", {apply("matmul", {a, b}), bias_})}));
          break;
        default:
          values.push_back(apply("tanh", {apply("matmul", {a, b})}));
      }
    }
    Value sum;
    {
      const PlaceScope place(on(static_cast<std::uint32_t>(below(size_))));
      sum = apply("add", {values.back(), values[values.size() - 3]});
    }
    return apply("reduce_mean", {apply("mul", {sum, sum})});
  }

 private:
  std::uint32_t seed_, size_;
  std::vector<ParameterPtr> weights_;
  ParameterPtr bias_ = parameter("bias", {6});
};

// Convolutions, norms, pools and ways around them on any workers, of few channels and of many.
class RandomImages final : public Net {
 public:
  RandomImages(std::uint32_t seed, std::uint32_t size, bool low = false)
      : seed_(seed), size_(size), low_(low) {
    for (const std::int64_t from : channels)
      for (const std::int64_t to : channels)
        weights_.push_back(parameter(fmt::format("conv{}to{}", from, to), {to, from, 3, 3}));
    for (const std::int64_t count : channels) {
      scales_.push_back(parameter(fmt::format("scale{}", count), {count}, 1));
      biases_.push_back(parameter(fmt::format("bias{}", count), {count}));
      for (const char* name : {"mean", "variance"}) {
        const Initializer ones = [](const Tensor& out, const RandomStream&) {
          std::fill_n(out.data<float>(), out.elements(), 1.F);
        };
        statistics_.push_back(std::make_shared<Parameter>(fmt::format("{}{}", name, count),
                                                          TensorType{DType::float32, {count}}, ones, false));
      }
    }
    dense_ = parameter("dense", {5, 5});
  }
  std::vector<Tensor> batch(std::uint64_t step) const override { return {numbers({16, 6, 8, 8}, step)}; }
  std::vector<ParameterPtr> statistics() const override { return statistics_; }
  Values loss(std::span<const Value> inputs) override {
    const PrecisionScope precision({.rule = low_ ? Precision::Rule::automatic : Precision::Rule::given});
    std::mt19937 random(seed_);
    const auto below = [&](std::size_t count) { return random() % count; };
    std::vector<std::uint32_t> norms;  // each norm's statistics are written on one worker
    for (std::size_t i = 0; i < channels.size(); ++i)
      norms.push_back(static_cast<std::uint32_t>(below(size_)));
    Value x = inputs[0];
    std::size_t at = 0;  // which of the channels x has
    std::vector<Value> before(channels.size());
    for (int i = 0; i < 7; ++i) {
      const std::size_t rank = below(size_ + 1);
      const PlaceScope place(rank < size_ ? on(static_cast<std::uint32_t>(rank)) : nullptr);
      switch (below(5)) {
        case 0: {
          const PlaceScope there(on(norms[at]));
          x = apply("batch_norm", {x, scales_[at], biases_[at], statistics_[2 * at], statistics_[2 * at + 1]},
                    {{"training", true}});
          break;
        }
        case 1:
          x = apply("relu", {x});
          break;
        case 2:
          if (before[at].defined())
            x = apply("relu", {apply("add", {x, floating_as(before[at], x.dtype())})});
          break;
        default: {
          before[at] = x;
          const std::size_t to = below(channels.size());
          x = apply("conv2d", {x, weights_[at * channels.size() + to]}, {{"pads", Ints{1, 1, 1, 1}}});
          at = to;
        }
      }
    }
    const PlaceScope place(on(static_cast<std::uint32_t>(below(size_))));
    x = apply("max_pool2d", {apply("relu", {x})}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}});
    x = floating_as(apply("mul", {x, x}), DType::float32);
    return apply("add", {apply("reduce_mean", {x}), apply("reduce_mean", {apply("tanh", {dense_})})});
  }

 private:
  inline static const std::vector<std::int64_t> channels{6, 16, 20};
  std::uint32_t seed_, size_;
  bool low_;
  std::vector<ParameterPtr> weights_, scales_, biases_, statistics_;
  ParameterPtr dense_;
};

}  // namespace muster::graph
