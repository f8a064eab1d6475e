#include "muster/nn/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/nn/nn.h"
#include "tests/unit/base/mentions.h"

namespace muster::nn {
namespace {
namespace place_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// A layer, an op of its own, and another layer.
class Network : public Cell {
 public:
  Network() : Cell("Network"), relu("relu") {
    insert_child("first", first);
    insert_child("second", second);
  }
  Values construct(std::span<const Value> inputs) override {
    return second->call({{relu(first->call(inputs))}});
  }

  std::shared_ptr<Dense> first = std::make_shared<Dense>(3, 3, DenseOptions{.has_bias = false});
  std::shared_ptr<Dense> second = std::make_shared<Dense>(3, 3, DenseOptions{.has_bias = false});

  struct Relu : Primitive {
    using Primitive::Primitive;
    Value operator()(const Values& inputs) const { return call(inputs).front(); }
  } relu;
};

graph::Graph traced(Cell& cell) {
  const auto trace = graph::Trace::begin("test");
  Values outputs;
  {
    const graph::Trace::Scope scope(*trace);
    const Value input = trace->input({DType::float32, {2, 3}});
    outputs = cell.call({&input, 1});
  }
  return trace->finish(outputs);
}

// "matmul 1", "relu -"
std::vector<std::string> places(const graph::Graph& graph) {
  std::vector<std::string> found;
  for (const graph::Node& node : graph.nodes)
    found.push_back(std::string(node.op->name) + " " +
                    (node.placement != nullptr ? std::to_string(node.placement->rank) : "-"));
  return found;
}

TEST(Place, OpsOfAPlacedCellCarryItsRankAndWhereItWasPlaced) {
  Network net;
  ASSERT_TRUE(net.first->place("MS_WORKER", 3));
  const graph::Graph graph = traced(net);
  EXPECT_THAT(places(graph), ElementsAre("matmul 3", "relu -", "matmul -"));
  EXPECT_THAT(graph.nodes[0].placement->origin, MatchesRegex("Dense 'first', place_test\\.cpp:[0-9]+"));
}

TEST(Place, TheInnermostPlaceWins) {
  Network net;
  ASSERT_TRUE(net.place("MS_WORKER", 0));
  ASSERT_TRUE(net.second->place("MS_WORKER", 2));
  EXPECT_THAT(places(traced(net)), ElementsAre("matmul 0", "relu 0", "matmul 2"));
}

TEST(Place, APrimitiveHasAPlaceOfItsOwn) {
  Network net;
  ASSERT_TRUE(net.first->place("MS_WORKER", 1));
  ASSERT_TRUE(net.relu.place("MS_WORKER", 4));
  EXPECT_THAT(places(traced(net)), ElementsAre("matmul 1", "relu 4", "matmul -"));
}

TEST(Place, ChangesTheVersionOnlyWhenTheRankChanges) {
  Network net;
  const auto unplaced = net.tree_version();
  ASSERT_TRUE(net.first->place("MS_WORKER", 1));
  const auto placed = net.tree_version();
  EXPECT_NE(placed, unplaced);
  ASSERT_TRUE(net.first->place("MS_WORKER", 1));
  EXPECT_EQ(net.tree_version(), placed);
}

TEST(Place, APrimitiveThatIsPlacedLaterIsTracedAgain) {
  Network net;
  const Tensor input = Tensor::zeros(DType::float32, {2, 3});
  graph::Function function("f", [&](std::span<const Value> inputs) { return net.call(inputs); });
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(function.call({&input, 1}, "", {}));
  EXPECT_EQ(function.trace_count(), 1U);
  ASSERT_TRUE(net.relu.place("MS_WORKER", 4));
  ASSERT_TRUE(function.call({&input, 1}, "", {}));
  EXPECT_EQ(function.trace_count(), 2U);
}

TEST(Place, AnotherRoleIsRefusedWithTheChoices) {
  Network net;
  const auto refused = net.first->place("MS_SCHED", 0);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              MatchesRegex("Dense 'first' \\(place_test\\.cpp:[0-9]+\\): place: the role 'MS_SCHED' computes "
                           "nothing; choose 'MS_WORKER'"));
  EXPECT_FALSE(net.first->placed());
}

TEST(Place, ANegativeRankIsRefused) {
  Network net;
  const auto refused = net.first->place("MS_WORKER", -1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, Mentions("-1", "choose", "from 0"));
}

TEST(Place, KnowsWhetherThePlacedCellWasCalled) {
  Network net;
  ASSERT_TRUE(net.first->place("MS_WORKER", 0));
  EXPECT_FALSE(net.first->called_where_placed());
  traced(net);
  EXPECT_TRUE(net.first->called_where_placed());
}

TEST(Place, CountsTheRanksOfWhatLives) {
  EXPECT_EQ(placed_ranks(), 0U);
  {
    Network net;
    ASSERT_TRUE(net.first->place("MS_WORKER", 5));
    ASSERT_TRUE(net.relu.place("MS_WORKER", 2));
    EXPECT_EQ(placed_ranks(), 6U);
    EXPECT_EQ(placed_ranks(Placed::primitive), 3U);
    ASSERT_TRUE(net.first->place("MS_WORKER", 1));
    EXPECT_EQ(placed_ranks(), 3U) << "a cell that was placed again is on its old rank no more";
  }
  EXPECT_EQ(placed_ranks(), 0U);
}

// ---- Who uses the first input -----------------------------------------------------------------------------

// A network that does what it is told.
class Told : public Cell {
 public:
  using Construct = std::function<Values(std::span<const Value>)>;
  explicit Told(Construct construct) : Cell("Told"), construct_(std::move(construct)) {}
  Values construct(std::span<const Value> inputs) override { return construct_(inputs); }

 private:
  Construct construct_;
};

template <class Layer, class... Arguments>
std::shared_ptr<Layer> placed(std::uint32_t rank, Arguments&&... arguments) {
  auto layer = std::make_shared<Layer>(std::forward<Arguments>(arguments)...);
  MUSTER_CHECK(layer->place("MS_WORKER", rank).has_value(), "it is placed");
  return layer;
}

std::optional<std::uint32_t> input_consumer_of(const Told::Construct& construct, std::size_t inputs = 1) {
  Told net(construct);
  return input_consumer(net, inputs);
}

TEST(FirstUser, IsNotACellThatComputesNothing) {
  const auto nothing = placed<Identity>(0);
  const auto dense = placed<Dense>(2, 100, 10);
  EXPECT_EQ(input_consumer_of([&](auto inputs) { return dense->call(nothing->call(inputs)); }), 2U);
}

TEST(FirstUser, IsFoundWhateverItsTypesAre) {
  const auto flatten = std::make_shared<Flatten>();
  const auto relu = placed<ReLU>(4);
  const auto conv = placed<Conv2d>(1, 17, 3, 5);
  const auto dense = placed<Dense>(3, 100, 10);
  const auto embedding = placed<Embedding>(2, 50, 8);
  EXPECT_EQ(input_consumer_of([&](auto inputs) { return conv->call(inputs); }), 1U);
  EXPECT_EQ(input_consumer_of([&](auto inputs) { return dense->call(flatten->call(inputs)); }), 3U);
  EXPECT_EQ(input_consumer_of([&](auto inputs) { return dense->call(embedding->call(inputs)); }), 2U);
  EXPECT_EQ(input_consumer_of([&](auto inputs) { return dense->call(relu->call(inputs)); }), 4U);
}

TEST(FirstUser, IsThatOfTheFirstInput) {
  const auto left = placed<ReLU>(0), right = placed<ReLU>(1);
  const auto both = [&](auto inputs) -> Values {
    const Value second = right->call({{ops::cast(inputs[1], DType::float32)}}).front();
    const Value first = left->call(inputs.first(1)).front();
    return Values{first, second};
  };
  EXPECT_EQ(input_consumer_of(both, 2), 0U);
}

// Where nothing that is made up comes to a placed op, nobody knows.
TEST(FirstUser, IsUnknownWhereWhatIsNotPlacedTakesNoMadeUpType) {
  const auto relu = placed<ReLU>(1);
  const auto fixed = [&](auto inputs) { return relu->call({{ops::reshape(inputs[0], {32, 784})}}); };
  EXPECT_EQ(input_consumer_of(fixed), std::nullopt);
  EXPECT_EQ(input_consumer_of([](auto inputs) { return ops::relu(inputs[0]); }), std::nullopt);
}

TEST(Place, InAProcessAloneItChangesNoBit) {
  Network net;
  const std::vector<float> numbers{1, -2, 3, -4, 5, -6};
  const Tensor input = Tensor::from<float>(numbers, {2, 3});
  const Tensor before = net(input).read().value();
  ASSERT_TRUE(net.first->place("MS_WORKER", 3));
  const Tensor after = net(input).read().value();
  EXPECT_TRUE(std::equal(before.bytes(), before.bytes() + before.size_bytes(), after.bytes()));
}

}  // namespace place_test
}  // namespace
}  // namespace muster::nn
