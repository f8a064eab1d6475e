// Gradients of all workers become one: where they travel together, and that it changes no bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "muster/graph/plan.h"
#include "muster/nn/nn.h"
#include "tests/unit/base/mirror_group.h"

namespace muster::nn {
namespace {

using ::testing::ElementsAre;

std::vector<std::pair<DType, std::size_t>> calls_of(const MirrorGroup& pair) {
  std::vector<std::pair<DType, std::size_t>> made;
  for (const MirrorGroup::Call& call : pair.calls) made.emplace_back(call.dtype, call.count);
  return made;
}

TEST(ReduceGradients, KeepsDtypesApart) {
  MirrorGroup pair;
  graph::Function reduce(
      "reduce", [](std::span<const Value> inputs) { return reduce_gradients(inputs, Reduction::sum, {}); });
  const std::vector<Tensor> gradients{Tensor::scalar(1.0f), Tensor::scalar(2.0), Tensor::scalar(3.0f)};
  const auto reduced = reduce.call(gradients, {}, {.communicator = &pair});
  ASSERT_TRUE(reduced) << reduced.error().message;
  EXPECT_EQ(*(*reduced)[0].data<float>(), 2);
  EXPECT_EQ(*(*reduced)[1].data<double>(), 4);
  EXPECT_EQ(*(*reduced)[2].data<float>(), 6);
  EXPECT_THAT(calls_of(pair), ElementsAre(std::pair(DType::float32, 2u), std::pair(DType::float64, 1u)));
}

TEST(ReduceGradients, LetsElementsTravelInTheOrderThatIsAskedFor) {
  const std::pair<ElementOrder, bool> orders[] = {{ElementOrder::of_kernels, true},
                                                  {ElementOrder::of_tensors, false}};
  for (const auto& [order, expected] : orders) {
    const auto trace = graph::Trace::begin("reduce");
    const graph::Trace::Scope scope(*trace);
    const Value gradient = trace->input({DType::float32, {2}});
    const Values reduced = reduce_gradients({&gradient, 1}, Reduction::sum, {}, order);
    const graph::Graph graph = trace->finish(reduced, {{0, 1}});
    ASSERT_EQ(graph.nodes.size(), 1U);
    EXPECT_EQ(graph.nodes[0].attributes.get("weight_order", !expected), expected);
  }
}

struct Trained {
  std::vector<std::size_t> buckets;  // of the first step, in elements
  std::vector<float> weights;
};

// Some steps of a net of three dense layers.
Trained train(const Buckets& buckets, bool return_grad) {
  MirrorGroup pair;
  auto net = std::make_shared<SequentialCell>(std::initializer_list<CellPtr>{
      std::make_shared<Dense>(6, 5), std::make_shared<Tanh>(), std::make_shared<Dense>(5, 4),
      std::make_shared<Tanh>(), std::make_shared<Dense>(4, 3)});
  const auto optimizer =
      std::make_shared<Momentum>(net->trainable_params(), MomentumOptions{.learning_rate = 0.1});
  TrainOneStepCell step(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), optimizer,
                        {.return_grad = return_grad, .reduction = Reduction::mean, .buckets = buckets});
  Tensor x(DType::float32, {2, 6}), y(DType::float32, {2, 3});
  for (std::int64_t i = 0; i < 12; ++i) x.data<float>()[i] = static_cast<float>(i % 5) - 2;
  for (std::int64_t i = 0; i < 6; ++i) y.data<float>()[i] = static_cast<float>(i % 3);
  Trained made;
  for (int i = 0; i < 3; ++i) {
    const Values outputs = step.call(std::vector<Value>{x, y}, {.seed = 5, .communicator = &pair});
    if (i > 0) continue;
    made.buckets = pair.counts();
  }
  for (const ParameterPtr& parameter : net->parameters())
    for (const float value : parameter->storage().span<float>()) made.weights.push_back(value);
  return made;
}

TEST(ReduceGradients, MakesBucketsFromTheLastLayerToTheFirst) {
  // Of 3, 12; 4, 20; 5 and 30 elements, as the layers' biases and weights have.
  EXPECT_THAT(train({.bytes = 1}, false).buckets, ::testing::UnorderedElementsAre(3, 12, 4, 20, 5, 30));
  const std::vector<std::size_t> halves = train({.splits = {2}}, false).buckets;
  EXPECT_THAT(halves, ElementsAre(15, 59));
  EXPECT_THAT(train({}, false).buckets, ElementsAre(74));
}

TEST(ReduceGradients, ChangesNoBitWithTheBuckets) {
  for (const bool return_grad : {false, true}) {
    const std::vector<float> whole = train({}, return_grad).weights;
    for (const Buckets& buckets : {Buckets{.bytes = 1}, Buckets{.bytes = 100}, Buckets{.splits = {1, 4}}}) {
      const std::vector<float> split = train(buckets, return_grad).weights;
      ASSERT_EQ(split.size(), whole.size());
      EXPECT_EQ(std::memcmp(split.data(), whole.data(), whole.size() * sizeof(float)), 0);
    }
  }
}

// As the reducer of a loop by hand makes it: the gradients come from outside and leave side by side.
TEST(ReduceGradients, WritesWhatLeavesSideBySideToWhereItLeaves) {
  const auto trace = graph::Trace::begin("reduce");
  Values inputs;
  for (int i = 0; i < 3; ++i) inputs.push_back(trace->input({DType::float32, {2}}));
  const auto finish = [&] {
    const graph::Trace::Scope scope(*trace);
    const Values reduced = reduce_gradients(inputs, Reduction::sum, {.splits = {1}});
    return trace->finish(reduced, {{0, 3}});
  };
  const auto plan = graph::Plan::compile(finish());
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT((*plan)->to_string(), ::testing::Not(::testing::HasSubstr("copy")));
  EXPECT_EQ((*plan)->explain().buckets_bytes, 0u);
  MirrorGroup pair;
  const std::vector<Tensor> gradients(3, Tensor::from<float>(std::array{3.0f, 4.0f}, {2}));
  const auto reduced = (*plan)->run(gradients, {.communicator = &pair});
  ASSERT_TRUE(reduced) << reduced.error().message;
  EXPECT_THAT(calls_of(pair), ElementsAre(std::pair(DType::float32, 2u), std::pair(DType::float32, 4u)));
  for (const Tensor& each : *reduced) EXPECT_THAT(each.span<float>(), ElementsAre(6, 8));
}

// One that leaves twice, or in another order, is copied to where it leaves.
TEST(ReduceGradients, GivesWhatLeavesInAnyOrder) {
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{1, 0}, {0, 1, 0}, {0, 0, 1}, {0, 1}}) {
    const auto trace = graph::Trace::begin("reduce");
    const Values inputs{trace->input({DType::float32, {1}}), trace->input({DType::float32, {1}})};
    const auto finish = [&] {
      const graph::Trace::Scope scope(*trace);
      Values reduced = reduce_gradients(inputs, Reduction::sum, {});
      reduced.push_back(ops::reshape(reduced[0], {1, 1}));
      Values leaving;
      for (const std::size_t i : order) leaving.push_back(reduced[i]);
      return trace->finish(leaving, {{0, leaving.size()}});
    };
    const auto plan = graph::Plan::compile(finish());
    ASSERT_TRUE(plan) << plan.error().message;
    MirrorGroup pair;
    const std::vector<Tensor> gradients{Tensor::from<float>(std::array{1.0f}, {1}),
                                        Tensor::from<float>(std::array{2.0f}, {1})};
    const auto reduced = (*plan)->run(gradients, {.communicator = &pair});
    ASSERT_TRUE(reduced) << reduced.error().message;
    for (std::size_t k = 0; k < order.size(); ++k)
      EXPECT_EQ(*(*reduced)[k].data<float>(), order[k] == 1 ? 4 : 2);
  }
}

TEST(ReduceGradients, RefusesBucketsThatCannotBe) {
  EXPECT_TRUE(check_buckets({}));
  EXPECT_TRUE(check_buckets({.splits = {1, 2, 9}}));
  EXPECT_FALSE(check_buckets({.bytes = -1}));
  EXPECT_FALSE(check_buckets({.splits = {2, 1}}));
}

}  // namespace
}  // namespace muster::nn
