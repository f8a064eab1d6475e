// Placed networks over several workers: the same bits as on one, and nothing where it does not belong.
#include "muster/graph/partition.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "muster/graph/partition_search.h"
#include "stages.h"

namespace muster::graph {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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

// As nn's optimizers are made: state for each parameter, a rate and a counter of steps for all.
class Optimizer {
 public:
  Optimizer(std::string op, const std::vector<ParameterPtr>& parameters)
      : op_(std::move(op)), parameters_(parameters) {
    const Initializer zeros = [](const Tensor& out, const RandomStream&) {
      std::memset(out.bytes(), 0, out.size_bytes());
    };
    for (const ParameterPtr& parameter : parameters)
      for (std::size_t i = 0; i < states(); ++i)
        states_.push_back(std::make_shared<Parameter>(fmt::format("state{}.{}", i, parameter->name()),
                                                      parameter->type(), zeros, false));
    rate_ = std::make_shared<Parameter>("learning_rate", Tensor::scalar(0.05F), false);
    steps_ = std::make_shared<Parameter>("global_step", Tensor::zeros(DType::int32, {1}), false);
  }

  Values update(std::span<const Value> gradients) {
    const Value one = apply("fill", std::span<const Value>{},
                            {{"dtype", DType::int32}, {"shape", Ints{1}}, {"value", 1.0}});
    Values made{apply("assign_add", {steps_, one})};
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      std::vector<Value> inputs{parameters_[i], gradients[i], rate_};
      for (std::size_t k = 0; k < states(); ++k) inputs.emplace_back(states_[i * states() + k]);
      if (op_ == "adam") inputs.emplace_back(steps_);
      made.push_back(apply(op_, inputs, {{"momentum", 0.9}}));
    }
    return made[0];
  }

  const std::vector<ParameterPtr>& state() const { return states_; }
  const Parameter& counter() const { return *steps_; }

 private:
  std::size_t states() const { return op_ == "adam" ? 2 : 1; }

  std::string op_;
  std::vector<ParameterPtr> parameters_;
  std::vector<ParameterPtr> states_;
  ParameterPtr rate_, steps_;
};

// What a worker saw in a training.
struct Seen {
  std::vector<std::vector<float>> losses;
  std::map<std::string, std::vector<float>> parameters;  // that it has, state included
  std::set<std::string> elsewhere;                       // that others have
  std::optional<std::string> problem;
  std::optional<Parts> parts;
};

enum class Loop { one_graph, by_hand };

constexpr std::uint64_t steps = 3;

// Only the reader has a batch; others know its types.
std::vector<Tensor> batch_for(const Net& net, std::uint64_t step, bool reads) {
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
      if (made[0].is_failed()) return made;
      (*update_)(std::span(made).subspan(1));
      return Values(made[0]);
    });
    step_->want_outputs_everywhere();
  }

  Seen run(const RunContext& context) {
    Seen seen;
    for (std::uint64_t step = 0; step < steps; ++step) {
      Result<Tensor> loss = one_step(step, context);
      if (!loss) {
        seen.problem = loss.error().message;
        return seen;
      }
      seen.losses.push_back(elements(*loss));
    }
    look(seen, net_->parameters());
    look(seen, net_->statistics());
    look(seen, optimizer_.state());
    if (*optimizer_.counter().storage().data<std::int32_t>() != static_cast<std::int32_t>(steps))
      seen.problem = "the steps were not counted";
    const Function& first = loop_ == Loop::one_graph ? *step_ : *gradients_;
    if (first.plan()->parts() != nullptr) seen.parts = *first.plan()->parts();
    if (first.trace_count() != 1) seen.problem = "traced again: " + first.traces().back().reason;
    return seen;
  }

 private:
  Result<Tensor> one_step(std::uint64_t step, const RunContext& context) {
    Function& function = loop_ == Loop::one_graph ? *step_ : *gradients_;
    if (step == 0) MUSTER_TRY_VOID(function.compile(batch_for(*net_, step, false), {}, context));
    const bool reads = context.stages == nullptr || context.stages->size() == 1 ||
                       function.plan()->parts() == nullptr ||
                       function.plan()->parts()->reader == context.stages->rank();
    MUSTER_TRY(const std::vector<Tensor> made, function.call(batch_for(*net_, step, reads), {}, context));
    if (loop_ == Loop::by_hand) MUSTER_TRY_VOID(update_->call(std::span(made).subspan(1), {}, context));
    return made[0];
  }

  static void look(Seen& seen, const std::vector<ParameterPtr>& parameters) {
    for (const ParameterPtr& parameter : parameters)
      if (parameter->absence() == nullptr && parameter->materialized())
        seen.parameters[parameter->name()] = elements(parameter->storage());
      else
        seen.elsewhere.insert(parameter->name());
  }

  std::unique_ptr<Net> net_;
  Optimizer optimizer_;
  Loop loop_;
  std::shared_ptr<Function> gradients_;
  std::unique_ptr<Function> update_, step_;
};

template <class N, class... Arguments>
void expect_same_bits_on(std::uint32_t size, const std::string& optimizer, Loop loop,
                         const Arguments&... arguments) {
  const Seen alone = Training(std::make_unique<N>(arguments...), optimizer, loop).run({.seed = 3});
  ASSERT_FALSE(alone.problem) << *alone.problem;
  for (const bool buffered : {false, true}) {
    const std::vector<Seen> seen = on_workers<Seen>(
        size,
        [&](const RunContext& context) {
          return Training(std::make_unique<N>(arguments...), optimizer, loop).run(context);
        },
        buffered);
    std::map<std::string, std::vector<float>> together;
    std::set<std::size_t> fingerprints;
    for (const Seen& worker : seen) {
      ASSERT_FALSE(worker.problem) << *worker.problem;
      EXPECT_EQ(worker.losses, alone.losses);
      for (const auto& [name, values] : worker.parameters)
        EXPECT_TRUE(together.emplace(name, values).second) << name << " was made twice";
      ASSERT_TRUE(worker.parts);
      fingerprints.insert(worker.parts->fingerprint);
    }
    EXPECT_EQ(fingerprints.size(), 1u);
    EXPECT_EQ(together, alone.parameters);
  }
}

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
  LeNet() {
    conv1_ = parameter("conv1.weight", {6, 1, 5, 5});
    conv2_ = parameter("conv2.weight", {16, 6, 5, 5}, 0.1F);
    for (const auto& [name, in, out] : {std::tuple{"fc1", 400, 120}, {"fc2", 120, 84}, {"fc3", 84, 10}}) {
      dense_.push_back(parameter(fmt::format("{}.weight", name), {out, in}, 0.1F));
      dense_.push_back(parameter(fmt::format("{}.bias", name), {out}, 0.1F));
    }
  }
  std::vector<Tensor> batch(std::uint64_t step) const override {
    Tensor labels(DType::int32, {8});
    for (int i = 0; i < 8; ++i) labels.data<std::int32_t>()[i] = (i + static_cast<int>(step)) % 10;
    return {numbers({8, 1, 32, 32}, step), labels};
  }
  Values loss(std::span<const Value> inputs) override {
    Value x = convolution(inputs[0], conv1_, 3, "LeNet 'conv1', lenet.py:31");
    x = convolution(x, conv2_, 4, "LeNet 'conv2', lenet.py:32");
    x = apply("reshape", {x}, {{"shape", Ints{8, 400}}});
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
      switch (below(6)) {
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
          values.push_back(apply("mul", {a, b}));
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
};

// ---- The same bits ---------------------------------------------------------------------------------------

class SameBits : public testing::TestWithParam<std::tuple<std::string, Loop>> {
 protected:
  std::string optimizer() const { return std::get<0>(GetParam()); }
  Loop loop() const { return std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Training, SameBits,
                         testing::Combine(testing::Values("momentum", "adam"),
                                          testing::Values(Loop::one_graph, Loop::by_hand)),
                         [](const auto& chosen) {
                           return std::get<0>(chosen.param) +
                                  (std::get<1>(chosen.param) == Loop::one_graph ? "InOneGraph" : "ByHand");
                         });

TEST_P(SameBits, OfAChainThatComesBackToItsFirstWorker) {
  expect_same_bits_on<Chain>(3, optimizer(), loop(), std::vector{on(0), on(1), on(0), PlacementPtr(), on(2)});
}

TEST_P(SameBits, OfLeNetOnFiveWorkers) { expect_same_bits_on<LeNet>(5, optimizer(), loop()); }

TEST_P(SameBits, OfAResidualNetWhoseSkipsCross) { expect_same_bits_on<Residual>(3, optimizer(), loop()); }

TEST_P(SameBits, OfALayerUsedByTwoWorkers) { expect_same_bits_on<Shared>(3, optimizer(), loop()); }

TEST_P(SameBits, OnWorkersThatOwnNothing) {
  expect_same_bits_on<Chain>(4, optimizer(), loop(), std::vector{on(2), PlacementPtr(), on(1)});
}

TEST(SameBitsOfAnyGraph, OnAnyPlacement) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    expect_same_bits_on<Random>(2 + seed % 3, seed % 2 == 0 ? "adam" : "momentum",
                                seed % 4 < 2 ? Loop::one_graph : Loop::by_hand, seed, 2 + seed % 3);
    if (testing::Test::HasFailure()) return;
  }
}

// ---- What each worker has and does ------------------------------------------------------------------------

std::vector<Seen> train_lenet(Loop loop) {
  return on_workers<Seen>(5, [&](const RunContext& context) {
    return Training(std::make_unique<LeNet>(), "momentum", loop).run(context);
  });
}

TEST(ALeNetOnFiveWorkers, KeepsEachParameterWithItsStateOnOneOnly) {
  const std::vector<Seen> seen = train_lenet(Loop::by_hand);
  const auto names = [&](std::size_t rank) {
    std::vector<std::string> found;
    for (const auto& [name, values] : seen[rank].parameters) found.push_back(name);
    return found;
  };
  EXPECT_THAT(names(0), ElementsAre("fc1.bias", "fc1.weight", "state0.fc1.bias", "state0.fc1.weight"));
  EXPECT_THAT(names(3), ElementsAre("conv1.weight", "state0.conv1.weight"));
  for (const Seen& worker : seen) EXPECT_EQ(worker.parameters.size() + worker.elsewhere.size(), 16u);
}

TEST(ALeNetOnFiveWorkers, SendsActivationsForwardAndTheirGradientsBack) {
  const std::vector<Seen> seen = train_lenet(Loop::by_hand);
  const Parts& parts = *seen[0].parts;
  EXPECT_EQ(parts.reader, 3u);
  std::vector<std::string> crossings;
  for (const Crossing& crossing : parts.crossings)
    crossings.push_back(fmt::format("{} to {}: {}", crossing.from, crossing.to, to_string(crossing.type)));
  EXPECT_THAT(crossings,
              ElementsAre("3 to 2: int32 (8,)", "3 to 4: float32 (8, 6, 14, 14)", "4 to 0: float32 (8, 400)",
                          "0 to 1: float32 (8, 120)", "1 to 2: float32 (8, 84)", "2 to 1: float32 (8, 84)",
                          "1 to 0: float32 (8, 120)", "0 to 4: float32 (8, 16, 5, 5)",
                          "4 to 3: float32 (8, 6, 14, 14)", "2 to 0: float32 ()", "2 to 1: float32 ()",
                          "2 to 3: float32 ()", "2 to 4: float32 ()"));
  EXPECT_THAT(parts.parts[3].placed, ElementsAre("LeNet 'conv1', lenet.py:31"));
  EXPECT_THAT(parts.parts[1].parameters, ElementsAre("fc2.weight", "fc2.bias"));
  EXPECT_GT(parts.parts[4].flops, parts.parts[2].flops);
}

// By rank.
std::vector<std::string> reasons(const std::function<std::string(const RunContext&)>& work,
                                 std::uint32_t size = 2) {
  return on_workers<std::string>(size, work);
}

TEST(AnOutputOfAnotherWorker, SaysWhoHasIt) {
  const auto found = reasons([](const RunContext& context) {
    const auto weight = std::make_shared<Parameter>("fc.weight", numbers({3, 3}, 1));
    const auto function = value_and_grad("net",
                                         [&](std::span<const Value> inputs) -> Values {
                                           const PlaceScope place(on(1, "Net 'fc', net.py:9"));
                                           const Value y = apply("matmul", {inputs[0], weight});
                                           return {apply("reduce_sum", {y}), y};
                                         },
                                         {.parameters = {weight}, .has_aux = true});
    const auto outputs = function->call(std::vector{numbers({3, 3}, 2)}, {}, context);
    if (!outputs) return outputs.error().message;
    std::string text;
    for (const Tensor& output : *outputs) text += Value(output).read() ? "here; " : *output.absence() + "; ";
    return text + (Value(weight).read() ? "here" : Value(weight).read().error().message);
  });
  EXPECT_EQ(found[1], "here; here; here; here");
  EXPECT_EQ(
      found[0],
      "here; output 1 of 'net' is on worker 1 (Net 'fc', net.py:9), and this is worker 0: look at it "
      "there, or hand it on to what needs it there, as an optimizer does; "
      "the gradient of 'fc.weight' is on worker 1 (Net 'fc', net.py:9), and this is worker 0: look at it "
      "there, or hand it on to what needs it there, as an optimizer does; "
      "parameter 'fc.weight' is on worker 1 (Net 'fc', net.py:9), and this is worker 0: look at it "
      "there, or let all workers call gather_parameters() first");
}

TEST(AnOutputOfAnotherWorker, IsWhereItIsNeededWhenItIsHandedOn) {
  const auto found = reasons([](const RunContext& context) {
    Function first("first", [](std::span<const Value> inputs) -> Values {
      const PlaceScope place(on(1));
      return apply("add", {inputs[0], inputs[0]});
    });
    Function second("second", [](std::span<const Value> inputs) -> Values {
      return apply("reduce_sum", {inputs[0]});  // placed by its input alone
    });
    second.want_outputs_everywhere();
    const auto made = first.call(std::vector{numbers({4}, 1)}, {}, context);
    if (!made) return made.error().message;
    const auto sum = second.call(*made, {}, context);
    if (!sum) return sum.error().message;
    return fmt::format("{}, {} on worker {}", (*made)[0].absence() == nullptr, elements((*sum)[0])[0],
                       second.plan()->parts()->crossings[0].from);
  });
  const float sum = [] {
    float made = 0;
    for (const float x : elements(numbers({4}, 1))) made += 2 * x;
    return made;
  }();
  EXPECT_THAT(found, ElementsAre(HasSubstr("false, "), fmt::format("true, {} on worker 1", sum)));
}

TEST(APlanForOneWorker, ServesNoOther) {
  Function function("f", [](std::span<const Value> inputs) -> Values {
    const PlaceScope place(on(0));
    return apply("relu", {inputs[0]});
  });
  Post post(3);
  Worker first(post, 0), third(post, 2);
  const std::vector<Tensor> inputs{numbers({4}, 1)};
  EXPECT_EQ((*function.call(inputs, {}, {.stages = &first}))[0].absence(), nullptr);
  EXPECT_NE((*function.call(inputs, {}, {.stages = &third}))[0].absence(), nullptr);
  EXPECT_EQ((*function.call(inputs, {}, {}))[0].absence(), nullptr);
  ASSERT_EQ(function.trace_count(), 3u);
  EXPECT_EQ(function.traces()[1].reason, "worker 2 of 3, was 0 of 3");
}

TEST(AGroupOfOne, RunsAPlacedGraphAsIfItWereNot) {
  const auto text = [](bool places) {
    LeNet net;
    const auto trace = Trace::begin("net");
    std::vector<Value> inputs;
    for (const Tensor& tensor : net.batch(0))
      inputs.push_back(trace->input({tensor.dtype(), tensor.shape()}));
    Values outputs;
    {
      const Trace::Scope scope(*trace);
      outputs = net.loss(inputs);
    }
    Graph graph = *trace->finish(std::array{outputs[0]});
    if (!places)
      for (Node& node : graph.nodes) node.placement = nullptr;
    const auto plan = *Plan::compile(graph, {.division = {.rank = 0, .size = 1}});
    EXPECT_EQ(plan->parts() != nullptr, places);
    EXPECT_EQ(places ? plan->parts()->parts.size() : 5u, 5u);
    return plan->to_string();
  };
  EXPECT_EQ(text(true), text(false));
}

// ---- What cannot be
// ----------------------------------------------------------------------------------------

std::string problem_of(const Body& body, std::uint32_t size = 2) {
  Function function("net", body);
  Post post(size);
  Worker worker(post, 0);
  const auto made = function.compile(std::vector{numbers({4, 4}, 1)}, {}, {.stages = &worker});
  return made ? "none" : made.error().message;
}

TEST(APlacement, OutsideTheWorkersIsAnErrorThatNamesIt) {
  const auto body = [](std::span<const Value> inputs) -> Values {
    const PlaceScope place(on(7, "LeNet 'conv1', lenet.py:31"));
    return apply("relu", {inputs[0]});
  };
  EXPECT_EQ(
      problem_of(body, 5),
      "LeNet 'conv1', lenet.py:31 is placed on worker 7, but there are workers 0 to 4 only: place it on "
      "one of these");
}

TEST(APlacement, OfWritesToOneParameterMustBeOne) {
  const auto mean = std::make_shared<Parameter>("norm.mean", Tensor::zeros(DType::float32, {4}), false);
  const auto variance =
      std::make_shared<Parameter>("norm.variance", Tensor::zeros(DType::float32, {4}), false);
  const Value ones = numbers({4}, 3);
  const auto body = [&](std::span<const Value> inputs) -> Values {
    Value x = inputs[0];
    for (const std::uint32_t rank : {0, 1}) {
      const PlaceScope place(on(rank, fmt::format("Net 'norm{}', net.py:{}", rank, rank)));
      x = apply("batch_norm", {x, ones, ones, mean, variance}, {{"training", true}});
    }
    return x;
  };
  EXPECT_EQ(
      problem_of(body),
      "batch_norm on worker 1 (Net 'norm1', net.py:1) writes parameter 'norm.mean', which is on worker 0 "
      "(Net 'norm0', net.py:0): place them on the same worker");
}

TEST(APlacement, InsideOfACondIsThatOfTheWhole) {
  const auto body = [](std::uint32_t yes, std::uint32_t no) {
    return [yes, no](std::span<const Value> inputs) -> Values {
      const Value pred = apply("reduce_sum", {inputs[0]});
      const auto branch = [&](std::uint32_t rank, std::string op) {
        return [&inputs, rank, op]() -> Values {
          const PlaceScope place(on(rank, "Net '" + op + "', net.py:5"));
          return apply(op, {inputs[0]});
        };
      };
      return cond(pred, branch(yes, "relu"), branch(no, "tanh"));
    };
  };
  EXPECT_EQ(problem_of(body(1, 1)), "none");
  EXPECT_EQ(problem_of(body(1, 0)),
            "cond holds worker 1 (Net 'relu', net.py:5) and worker 0 (Net 'tanh', net.py:5): all that it "
            "computes must be placed on one worker");
}

TEST(APlacement, OfControlFlowRunsItThere) {
  const auto found = reasons([](const RunContext& context) {
    Function function("f", [](std::span<const Value> inputs) -> Values {
      Value x = inputs[0];
      {
        const PlaceScope place(on(0));
        x = apply("add", {x, x});
      }
      const Value grown = while_loop(
          [](std::span<const Value> state) -> Values {
            return apply("less", {apply("reduce_sum", {state[0]}), Tensor::scalar(100.F)});
          },
          [](std::span<const Value> state) -> Values {
            const PlaceScope place(on(1));
            return apply("add", {state[0], state[0]});
          },
          std::array{x})[0];
      return cond(
          apply("reduce_sum", {x}),
          [&]() -> Values {
            const PlaceScope place(on(0));
            return apply("relu", {grown});
          },
          [&]() -> Values { return x; });
    });
    function.want_outputs_everywhere();
    const auto made = function.call(std::vector{Tensor::from<float>(std::array{1.F, 2.F}, {2})}, {}, context);
    if (!made) return made.error().message;
    return fmt::format("{} {}", elements((*made)[0])[0], elements((*made)[0])[1]);
  });
  EXPECT_THAT(found, Each("64 128"));
}

// ---- Values that change
// ------------------------------------------------------------------------------------

TEST(AParameterThatChanges, IsSentAsItIsWhenItIsUsed) {
  const auto run = [](const RunContext& context) {
    const auto weight =
        std::make_shared<Parameter>("w", Tensor::from<float>(std::array{1.F, 2.F}, {2}), false);
    Function function("f", [&](std::span<const Value> inputs) -> Values {
      Value owned, before, after;
      {
        const PlaceScope place(on(0));
        owned = apply("mul", {inputs[0], weight});
      }
      {
        const PlaceScope place(on(1));
        before = apply("add", {owned, weight});
      }
      apply("assign", {weight, before});
      {
        const PlaceScope place(on(1));
        after = apply("add", {before, weight});
      }
      return {before, after, weight};
    });
    function.want_outputs_everywhere();
    const auto made = function.call(std::vector{Tensor::from<float>(std::array{3.F, 4.F}, {2})}, {}, context);
    if (!made) return made.error().message;
    std::string text;
    for (const Tensor& output : *made)
      text += fmt::format("{} {}; ", elements(output)[0], elements(output)[1]);
    return text;
  };
  EXPECT_EQ(run({}), "4 10; 8 20; 4 10; ");
  EXPECT_THAT(reasons(run), Each("4 10; 8 20; 4 10; "));
}

TEST(CountersAndRates, AreEverywhereAndCrossNowhere) {
  const std::vector<Seen> seen = train_lenet(Loop::one_graph);
  for (const Crossing& crossing : seen[0].parts->crossings)
    EXPECT_THAT(crossing.what, Not(AnyOf(HasSubstr("global_step"), HasSubstr("learning_rate"))));
}

// ---- At the same time
// --------------------------------------------------------------------------------------

// Copies its input, and calls what the test wants to happen meanwhile.
thread_local std::function<void()> meanwhile = [] {};
const Op& busy_op() {
  static const Op op{
      .name = "busy",
      .documentation = "Its input.",
      .infer = [](const Signature& signature) -> Result<std::vector<TensorType>> {
        return std::vector<TensorType>{signature.inputs[0]};
      },
      .kernels = {{"test", [](const Signature&) { return true; },
                   [](const Signature& signature) -> Prepared {
                     return {std::make_shared<const std::size_t>(signature.inputs[0].size_bytes())};
                   },
                   [](const KernelCall& call) {
                     meanwhile();
                     std::memcpy(call.outputs[0], call.inputs[0], call.setting<std::size_t>());
                   }}},
  };
  return op;
}

// Opens once; waiting has a deadline.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

// Nodes of `count` elements, on workers 0 and 1 as `order` says; then worker `joins` adds all up. Worker 1 is
// busy until worker 0 is.
std::vector<std::string> busy_workers(const std::vector<std::uint32_t>& order, std::uint32_t joins,
                                      std::int64_t count) {
  Gate gate;
  return reasons([&](const RunContext& context) {
    std::string problem;
    Function function("f", [&](std::span<const Value> inputs) -> Values {
      Value sum = inputs[0];
      std::vector<Value> made;
      for (const std::uint32_t rank : order) {
        const PlaceScope place(on(rank));
        const bool waits = rank == 1 || made.size() + 1 == order.size();
        made.push_back(waits ? Trace::current()->add(busy_op(), inputs.first(1), {})[0]
                             : apply("tanh", {inputs[0]}));
      }
      const PlaceScope place(on(joins));
      for (const Value& value : made) sum = apply("add", {sum, value});
      return sum;
    });
    function.want_outputs_everywhere();
    meanwhile = [&] {
      if (context.stages->rank() == 0)
        gate.open();
      else if (!gate.wait())
        problem = "worker 0 was not busy at the same time";
    };
    const auto made = function.call(std::vector{numbers({count}, 1)}, {}, context);
    return made ? problem : made.error().message;
  });
}

TEST(AWorker, ComputesWhileAnotherMakesWhatItNeedsLater) {
  EXPECT_THAT(busy_workers({1, 0}, 0, 16), Each(""));
}

TEST(AWorker, ComputesWhileALargeValueWaitsForItsReceiver) {
  EXPECT_THAT(busy_workers({1, 0, 0}, 1, 100'000), Each(""));
}

// ---- Together with data parallelism
// ------------------------------------------------------------------------

// A group of two whose other member always holds the same.
class Doubling final : public Communicator {
 public:
  std::vector<std::size_t> counts;
  std::uint32_t rank() const override { return 0; }
  std::uint32_t size() const override { return 2; }
  Result<> all_reduce(const void* in, void* out, std::size_t count, DType, Reduction) override {
    counts.push_back(count);
    const auto* from = static_cast<const float*>(in);
    std::transform(from, from + count, static_cast<float*>(out), [](float x) { return x + x; });
    return {};
  }
};

TEST(AnAllReduce, IsOneForEachWorkerOfWhatIsThere) {
  struct Made {
    std::vector<std::size_t> counts;
    std::vector<std::vector<float>> values;
    std::string problem;
  };
  const auto run = [](const Attributes& attributes) {
    return on_workers<Made>(2, [&](const RunContext& given) {
      Made made;
      Doubling replicas;
      RunContext context = given;
      context.communicator = &replicas;
      Function function("f", [&](std::span<const Value> inputs) -> Values {
        Values gradients;
        for (std::size_t i = 0; i < 6; ++i) {
          const PlaceScope place(on(i % 2));
          gradients.push_back(apply("add", {inputs[i], inputs[i]}));
        }
        return apply_all("all_reduce", gradients, attributes);
      });
      function.want_outputs_everywhere();
      std::vector<Tensor> inputs;
      for (std::int64_t i = 0; i < 6; ++i) inputs.push_back(numbers({i + 1}, 1));
      const auto outputs = function.call(inputs, {}, context);
      if (!outputs) made.problem = outputs.error().message;
      if (outputs)
        for (const Tensor& output : *outputs) made.values.push_back(elements(output));
      made.counts = replicas.counts;
      return made;
    });
  };
  std::vector<std::vector<float>> expected;
  for (std::int64_t i = 0; i < 6; ++i) {
    expected.push_back(elements(numbers({i + 1}, 1)));
    for (float& x : expected.back()) x *= 4;
  }
  const auto expect = [&](const Attributes& attributes, const std::vector<std::size_t>& first,
                          const std::vector<std::size_t>& second) {
    const std::vector<Made> made = run(attributes);
    for (const Made& worker : made) {
      EXPECT_EQ(worker.problem, "");
      EXPECT_EQ(worker.values, expected);
    }
    EXPECT_EQ(made[0].counts, first);
    EXPECT_EQ(made[1].counts, second);
  };
  expect({{"reduction", std::string("sum")}}, {1 + 3 + 5}, {2 + 4 + 6});
  expect({{"reduction", std::string("sum")}, {"bucket_bytes", std::int64_t{16}}}, {4, 5}, {2, 4, 6});
  // Cut before the fourth of all: two of the first worker come before it, and one of the second.
  expect({{"reduction", std::string("sum")}, {"bucket_splits", Ints{3}}}, {4, 5}, {2, 10});
}

// ---- Fewest bytes
// ------------------------------------------------------------------------------------------

TEST(FewestBytes, AreFoundOnSmallGraphsAlmostAlways) {
  std::mt19937 random(5);
  const auto below = [&](std::size_t count) { return random() % count; };
  std::size_t best = 0, all = 0;
  for (int round = 0; round < 200; ++round) {
    constexpr std::size_t pieces = 7;
    std::vector<std::optional<std::uint32_t>> fixed(pieces);
    for (const std::size_t piece : {0, 3, 6}) fixed[piece] = static_cast<std::uint32_t>(below(3));
    std::vector<Flow> flows;
    for (std::size_t from = 0; from + 1 < pieces; ++from) {
      Flow flow{.from = from, .to = {}, .bytes = 1 + below(9)};
      for (std::size_t to = from + 1; to < pieces; ++to)
        if (below(3) == 0) flow.to.push_back(to);
      if (!flow.to.empty()) flows.push_back(flow);
    }
    const std::vector<std::uint32_t> found = fewest_bytes(fixed, flows, 0);
    EXPECT_EQ(found, fewest_bytes(fixed, flows, 0));
    std::size_t least = SIZE_MAX;
    for (std::uint32_t code = 0; code < 81; ++code) {
      std::vector<std::uint32_t> ranks;
      std::uint32_t rest = code;
      for (const auto& rank : fixed) {
        ranks.push_back(rank ? *rank : rest % 3);
        if (!rank) rest /= 3;
      }
      least = std::min(least, transferred_bytes(ranks, flows));
    }
    for (std::size_t i = 0; i < pieces; ++i) EXPECT_EQ(found[i], fixed[i].value_or(found[i]));
    best += transferred_bytes(found, flows) == least ? 1 : 0;
    ++all;
  }
  EXPECT_GE(best * 100, all * 97);
}

}  // namespace
}  // namespace muster::graph
