#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "muster/nn/nn.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const std::vector<ParameterPtr>& parameters) {
  std::vector<std::string> found;
  for (const ParameterPtr& parameter : parameters) found.push_back(parameter->name());
  return found;
}

class Block : public Cell {
 public:
  Block() : Cell("Block") { insert_child("fc", std::make_shared<Dense>(2, 2)); }
  Values construct(std::span<const Value> inputs) override { return children()[0].second->call(inputs); }
};

class Network : public Cell {
 public:
  Network() : Cell("Network") {
    insert_child("block", std::make_shared<Block>());
    insert_child("out", std::make_shared<Dense>(2, 1, DenseOptions{.has_bias = false}));
  }
  Values construct(std::span<const Value> inputs) override {
    ++constructions;
    Values y = children()[0].second->call(inputs);
    return training() ? children()[1].second->call(y) : y;
  }
  int constructions = 0;
};

Tensor matrix(std::int64_t rows, std::int64_t columns, float value = 1) {
  Tensor made(DType::float32, {rows, columns});
  std::fill_n(made.data<float>(), made.elements(), value);
  return made;
}

TEST(Cell, NamesParametersByTheirPath) {
  const Network net;
  EXPECT_THAT(names(net.parameters()), ElementsAre("block.fc.weight", "block.fc.bias", "out.weight"));
  EXPECT_EQ(net.parameters_and_names()[0].first, "block.fc.weight");
  EXPECT_EQ(net.children()[0].second->children()[0].second->description(), "Dense 'block.fc'");
  net.parameters()[1]->set_requires_grad(false);
  EXPECT_THAT(names(net.trainable_params()), ElementsAre("block.fc.weight", "out.weight"));
}

TEST(Cell, ASharedChildHasItsLastNameAndCountsOnce) {
  const auto shared = std::make_shared<Dense>(2, 2, DenseOptions{.has_bias = false});
  const SequentialCell net{shared, std::make_shared<ReLU>(), shared};
  EXPECT_THAT(names(net.parameters()), ElementsAre("2.weight"));
}

TEST(Cell, IsTracedOnceUntilSomethingIsWritten) {
  Network net;
  const Value x = matrix(3, 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(net(x).shape(), (Shape{3, 2}));
  EXPECT_EQ(net.constructions, 1);
  net.set_train();
  EXPECT_EQ(net(x).shape(), (Shape{3, 1}));
  EXPECT_EQ(net.constructions, 2);
  net.insert_child("out", std::make_shared<Dense>(2, 5));
  EXPECT_EQ(net(x).shape(), (Shape{3, 5}));
  EXPECT_EQ(net.constructions, 3);
  net.set_train();  // new only for the new child
  EXPECT_EQ(net(x).shape(), (Shape{3, 5}));
  EXPECT_EQ(net.constructions, 4);
  net.set_train();
  EXPECT_EQ(net(x).shape(), (Shape{3, 5}));
  EXPECT_EQ(net.constructions, 4);
}

TEST(Cell, AWriteFarBelowIsSeen) {
  Network net;
  const Value x = matrix(1, 2);
  (void)net(x);
  net.children()[0].second->children()[0].second->touch("something");
  (void)net(x);
  EXPECT_EQ(net.constructions, 2);
}

TEST(Cell, SaysWhatHasChangedBelow) {
  Network net;
  std::uint64_t before = graph::next_version();
  net.set_train();
  EXPECT_THAT(net.change_since(before), Mentions("Network", "training"));
  const CellPtr inner = net.children()[0].second;
  inner->touch("attribute 'scale' was set");
  EXPECT_EQ(net.change_since(before), inner->description() + ": attribute 'scale' was set");
  before = graph::next_version();
  net.insert_child("out", std::make_shared<Dense>(2, 5));
  EXPECT_EQ(net.change_since(before), "Network: child 'out' was inserted");
  net.parameters().back()->set_requires_grad(false);
  EXPECT_THAT(net.change_since(before), Mentions(net.parameters().back()->name(), "requires_grad"));
}

TEST(Cell, ARemovalOfWhatIsNotThereChangesNothing) {
  Network net;
  const std::uint64_t version = net.tree_version();
  net.remove("nothing");
  EXPECT_EQ(net.tree_version(), version);
}

TEST(Dense, SaysWhichFeaturesDoNotFit) {
  class Net : public Cell {
   public:
    Net() : Cell("Net") { insert_child("fc", std::make_shared<Dense>(784, 10)); }
    Values construct(std::span<const Value> inputs) override { return children()[0].second->call(inputs); }
  } net;
  EXPECT_THAT(ERROR_OF(net(matrix(32, 20))),
              Mentions("'fc'", "(32, 20)", "20 features", "weight", "(10, 784)", "takes 784"));
}

TEST(Dense, TakesAnyNumberOfLeadingAxesAndAnActivation) {
  Dense dense(2, 3,
              {.weight_init = ones(), .bias_init = constant(-1), .activation = std::make_shared<ReLU>()});
  Tensor x(DType::float32, {1, 2, 2});
  const float values[] = {1, 2, 0, -5};
  std::copy_n(values, 4, x.data<float>());
  const Values y = dense(Value(x));
  ASSERT_TRUE(y.at(0).is_concrete());
  EXPECT_EQ(y[0].shape(), (Shape{1, 2, 3}));
  EXPECT_THAT(y[0].tensor().span<float>(), ElementsAre(2, 2, 2, 0, 0, 0));
}

TEST(Layers, FlattenKeepsTheFirstAxis) {
  Flatten flatten;
  EXPECT_EQ(flatten(Value(Tensor::zeros(DType::float32, {2, 3, 4}))).shape(), (Shape{2, 12}));
  EXPECT_EQ(flatten(Value(Tensor::zeros(DType::float32, {0, 3, 4}))).shape(), (Shape{0, 12}));
  EXPECT_THAT(ERROR_OF(flatten(Value(Tensor::scalar(1.0f)))), HasSubstr("at least one axis"));
}

TEST(Layers, TakeOneTensor) {
  ReLU relu;
  const Value x = matrix(1, 1);
  EXPECT_THAT(ERROR_OF(relu(x, x)), Mentions("ReLU", "takes", "2"));
  CrossEntropyLoss loss;
  EXPECT_THAT(ERROR_OF(loss(x)), Mentions("CrossEntropyLoss", "logits", "1 tensors"));
}

struct Moments {
  double mean = 0, deviation = 0, least = 0, greatest = 0;
};

Moments moments(const Initializer& initializer, Shape shape) {
  const Tensor values(DType::float32, std::move(shape));
  initializer(values, RandomStream(3, hash_text("fc.weight")));
  Moments found{0, 0, 1e9, -1e9};
  for (const float value : values.span<float>()) {
    found.mean += value / static_cast<double>(values.elements());
    found.least = std::min<double>(found.least, value);
    found.greatest = std::max<double>(found.greatest, value);
  }
  for (const float value : values.span<float>())
    found.deviation += (value - found.mean) * (value - found.mean) / static_cast<double>(values.elements());
  found.deviation = std::sqrt(found.deviation);
  return found;
}

TEST(Initializers, HaveTheirDistributions) {
  const Shape shape{200, 300};
  const Moments bell = moments(normal(), shape);
  EXPECT_NEAR(bell.mean, 0, 2e-4);
  EXPECT_NEAR(bell.deviation, 0.01, 1e-4);
  const auto expect_uniform = [&](const Initializer& initializer, double bound) {
    const Moments flat = moments(initializer, shape);
    EXPECT_NEAR(flat.mean, 0, bound * 0.02);
    EXPECT_NEAR(flat.deviation, bound / std::sqrt(3.0), bound * 0.02);
    EXPECT_GE(flat.least, -bound);
    EXPECT_LE(flat.greatest, bound);
    EXPECT_GT(flat.greatest, bound * 0.99);
  };
  expect_uniform(uniform(), 0.07);
  expect_uniform(xavier_uniform(), std::sqrt(6.0 / 500));
  expect_uniform(he_uniform(), std::sqrt(6.0 / 300));
  expect_uniform(he_uniform(std::sqrt(5.0)), std::sqrt(1.0 / 300));
  expect_uniform(he_uniform(0, Fan::out), std::sqrt(6.0 / 200));
  EXPECT_EQ(moments(ones(), shape).least, 1);
  EXPECT_EQ(moments(zeros(), shape).greatest, 0);
}

TEST(Initializers, AreFoundByName) {
  for (const char* name : {"zeros", "ones", "normal", "uniform", "xavier_uniform", "he_uniform"})
    EXPECT_TRUE(initializer_named(name)) << name;
  EXPECT_THAT(initializer_named("orthogonal2").error().message, Mentions("initializer", "'orthogonal2'"));
}

// What a program gets wrong is an error that it can catch, with names in it.
TEST(Cell, RefusesWhatIsNoChildAndPlacesThatAreNotThere) {
  SequentialCell net{std::make_shared<ReLU>()};
  EXPECT_THAT(ERROR_OF(net.insert_child("head", nullptr)), Mentions("SequentialCell", "'head'", "null"));
  EXPECT_THAT(ERROR_OF(net.insert_param("scale", nullptr)), Mentions("SequentialCell", "'scale'", "null"));
  EXPECT_THAT(ERROR_OF(net.insert(2, std::make_shared<ReLU>())), Mentions("insert", "place 2", "1 cells"));
  EXPECT_THAT(ERROR_OF(net.erase(1)), Mentions("erase", "place 1", "1 cells"));
  EXPECT_EQ(net.size(), 1);
}

TEST(Initializer, RefusesShapesThatItCannotFill) {
  const auto made = [](const graph::Initializer& fill, Shape shape) {
    return ERROR_OF(graph::Parameter("p", {DType::float32, shape}, fill).materialize(1));
  };
  EXPECT_THAT(made(identity(), {3}), Mentions("identity", "2 axes", "(3,)"));
  EXPECT_THAT(made(orthogonal(), {3}), Mentions("orthogonal", "2 axes at least", "(3,)"));
  EXPECT_THAT(made(sparse(0.5), {3, 3, 3}), Mentions("sparse", "2 axes", "(3, 3, 3)"));
  EXPECT_THAT(made(dirac(2), {3, 1, 1}), Mentions("dirac", "(3, 1, 1)", "2 equal groups"));
}

}  // namespace
}  // namespace muster::nn
