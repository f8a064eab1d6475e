#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "muster/nn/nn.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::nn {
namespace {
namespace layers_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor counted(Shape shape) {
  Tensor made(DType::float32, std::move(shape));
  for (std::int64_t i = 0; i < made.elements(); ++i) made.data<float>()[i] = static_cast<float>(i);
  return made;
}

std::vector<std::string> names(const std::vector<ParameterPtr>& parameters) {
  std::vector<std::string> found;
  for (const ParameterPtr& parameter : parameters) found.push_back(parameter->name());
  return found;
}

std::string failure(Cell& cell, const Value& x) { return ERROR_OF(cell(x)); }

TEST(Conv2d, HasWeightAndBiasOfItsGroups) {
  const Conv2d conv(4, 6, {3, 2}, {.group = 2, .has_bias = true});
  EXPECT_THAT(names(conv.parameters()), ElementsAre("weight", "bias"));
  EXPECT_EQ(conv.weight()->shape(), (Shape{6, 2, 3, 2}));
  EXPECT_EQ(Conv2d(4, 6, 3).bias(), nullptr);
}

TEST(Conv2d, PadsSoThatTheSameSizeComesOut) {
  const Window window{.kernel = {3, 2}, .stride = {2, 1}};
  EXPECT_THAT(window.pads(7, 6), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(window.pads(8, 6), ElementsAre(0, 1, 0, 1));
  const Window apart{.kernel = 3, .dilation = 2};
  EXPECT_THAT(apart.pads(7, 7), ElementsAre(2, 2, 2, 2));
  const Window inside{.kernel = 3, .pad_mode = PadMode::valid};
  EXPECT_THAT(inside.pads(7, 7), ElementsAre(0, 0, 0, 0));
}

TEST(Conv2d, SaysWhichArgumentCannotBe) {
  EXPECT_THAT(ERROR_OF(Conv2d(4, 6, 3, {.group = 3})), HasSubstr("3 does not divide 4 and 6"));
  EXPECT_THAT(ERROR_OF(Conv2d(4, 6, 0)), Mentions("Conv2d", "kernel_size", "least 1", "(0, 0)"));
  EXPECT_THAT(ERROR_OF(Conv2d(4, 6, 3, {.padding = 2})),
              Mentions("Conv2d", "padding", "2 needs", "pad_mode 'pad'"));
  Conv2d fine(4, 6, 3);
  EXPECT_THAT(failure(fine, counted({4, 5, 5})), Mentions("(4, 5, 5)", "(N, 4", "needed"));
  EXPECT_THAT(pad_mode_from("full").error().message,
              Mentions("pad_mode", "'same', 'valid'", "'pad'", "'full'"));
}

TEST(BatchNorm, KeepsMovingStatisticsThatGetNoGradient) {
  const BatchNorm2d norm(4);
  EXPECT_THAT(names(norm.parameters()), ElementsAre("mean", "variance", "gamma", "beta"));
  EXPECT_THAT(names(norm.trainable_params()), ElementsAre("gamma", "beta"));
  EXPECT_TRUE(BatchNorm1d(4, {.affine = false}).trainable_params().empty());
}

TEST(BatchNorm, SaysWhatDoesNotFit) {
  BatchNorm2d norm(4);
  EXPECT_THAT(failure(norm, counted({2, 3, 5, 5})),
              Mentions("BatchNorm2d", "(2, 3, 5, 5)", "(N, 4", "needed"));
  BatchNorm1d flat(4);
  EXPECT_THAT(failure(flat, counted({2, 3})), Mentions("BatchNorm1d", "(2, 3)", "4", "needed"));
  EXPECT_THAT(ERROR_OF(BatchNorm2d(4, {.momentum = 1.5})),
              Mentions("BatchNorm2d", "momentum", "[0, 1]", "1.5"));
}

TEST(Pools, SayWhatDoesNotFit) {
  EXPECT_THAT(ERROR_OF(MaxPool2d({.kernel_size = 2, .pad_mode = PadMode::pad, .padding = 2})),
              Mentions("half", "(2, 2)"));
  EXPECT_THAT(ERROR_OF(AvgPool2d({.kernel_size = 2, .ceil_mode = true})),
              Mentions("AvgPool2d", "ceil_mode", "needs", "pad_mode 'pad'"));
  AvgPool2d fine;
  EXPECT_THAT(failure(fine, counted({4, 4})), HasSubstr("(N, C, H, W) or (C, H, W) is needed, not (4, 4)"));
}

TEST(Containers, AListRenumbersItsCells) {
  const auto a = std::make_shared<ReLU>(), b = std::make_shared<ReLU>(), c = std::make_shared<ReLU>();
  CellList list{a, c};
  list.insert(1, b);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list.at(0), a);
  EXPECT_EQ(list.at(1), b);
  EXPECT_EQ(list.at(2), c);
  list.erase(0);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list.at(0), b);
  EXPECT_EQ(list.at(1), c);
  EXPECT_EQ(list.children()[1].first, "1");
  EXPECT_THAT(failure(list, counted({1})), HasSubstr("computes nothing itself"));
}

TEST(Containers, ChildrenAddedLaterHaveTheWholePath) {
  const auto list = std::make_shared<CellList>();
  SequentialCell net{list};
  list->append(std::make_shared<Dense>(2, 2, DenseOptions{.has_bias = false}));
  EXPECT_THAT(names(net.parameters()), ElementsAre("0.0.weight"));
}

TEST(Containers, FlattenTakesAxes) {
  const Value x = counted({2, 3, 4, 5});
  EXPECT_EQ(Flatten()(x).shape(), (Shape{2, 60}));
  EXPECT_EQ(Flatten(0)(x).shape(), (Shape{120}));
  EXPECT_EQ(Flatten(1, 2)(x).shape(), (Shape{2, 12, 5}));
  EXPECT_EQ(Flatten(-2, -1)(x).shape(), (Shape{2, 3, 20}));
  Flatten wrong(2, 4);
  EXPECT_THAT(failure(wrong, x), Mentions("Flatten", "(2, 3, 4, 5)", "axes 2", "to 4"));
}

TEST(Losses, RefuseAnUnknownReduction) {
  EXPECT_THAT(ERROR_OF(MSELoss("average")),
              Mentions("MSELoss", "reduction", "'mean', 'sum'", "'none'", "'average'"));
  EXPECT_THAT(ERROR_OF(CrossEntropyLoss({.label_smoothing = 2})),
              Mentions("CrossEntropyLoss", "label_smoothing", "[0, 1]", "not 2"));
}

TEST(Losses, OneSampleMayComeWithoutABatch) {
  CrossEntropyLoss loss;
  const Values one = loss(Value(counted({3})), Value(Tensor::scalar(std::int32_t{2})));
  ASSERT_TRUE(one.at(0).is_concrete());
  EXPECT_NEAR(one[0].tensor().data<float>()[0], 0.40760596, 1e-6);
}

TEST(Activations, AreFoundByName) {
  for (const char* name :
       {"relu", "relu6", "leakyrelu", "elu", "gelu", "silu", "sigmoid", "tanh", "softmax", "logsoftmax"})
    EXPECT_TRUE(activation_named(name)) << name;
  EXPECT_THAT(activation_named("swish").error().message, Mentions("activation", "'swish'"));
}

TEST(Embedding, ThePaddingBeginsWithZeros) {
  const Embedding embedding(3, 2, {.embedding_table = ones(), .padding_idx = 1});
  EXPECT_THAT(embedding.embedding_table()->materialize(1).span<float>(), ElementsAre(1, 1, 0, 0, 1, 1));
  EXPECT_THAT(ERROR_OF(Embedding(3, 2, {.padding_idx = 3})),
              Mentions("Embedding", "padding_idx", "[0, 3", "not 3"));
  EXPECT_THAT(ERROR_OF(Embedding(0, 2, {.padding_idx = 0, .is_table = true})),
              Mentions("takes any number has no padding_idx", "give it a vocabulary"));
}

// A network of one weight whose loss is weight * data * label.
class Product : public Cell {
 public:
  Product() : Cell("Product") {
    weight_ = std::make_shared<graph::Parameter>("weight", Tensor::scalar(2.0f));
    insert_param("weight", weight_);
  }
  Values construct(std::span<const Value> inputs) override { return ops::mul(weight_, inputs[0]); }
  ParameterPtr weight_;
};

class Times : public Cell {
 public:
  Values construct(std::span<const Value> inputs) override { return ops::mul(inputs[0], inputs[1]); }
};

TEST(TrainOneStepCell, GivesTheLossAndTakesAStepInOnePlan) {
  const auto net = std::make_shared<Product>();
  const auto loss = std::make_shared<WithLossCell>(net, std::make_shared<Times>());
  const auto sgd =
      std::make_shared<SGD>(ParameterGroups(net->trainable_params()), SGDOptions{.learning_rate = 0.5});
  TrainOneStepCell step(loss, sgd, {.sens = 2, .return_grad = true});
  EXPECT_THAT(names(step.parameters()), ElementsAre("weight", "learning_rate", "global_step"));
  const Value data_and_label[] = {Tensor::scalar(3.0f), Tensor::scalar(0.5f)};
  for (const float expected : {3.0f, 0.75f}) {
    const Values made = step.call(data_and_label);
    ASSERT_EQ(made.size(), 2u);
    ASSERT_TRUE(made[0].is_concrete());
    EXPECT_EQ(*made[0].tensor().data<float>(), expected);
    EXPECT_EQ(*made[1].tensor().data<float>(), 3.0f);
  }
  EXPECT_EQ(*net->weight_->storage().data<float>(), -1.0f);
}

std::vector<float> filled(const Initializer& initializer, Shape shape) {
  const Tensor values(DType::float32, std::move(shape));
  initializer(values, RandomStream(3, hash_text("fc.weight")));
  return {values.span<float>().begin(), values.span<float>().end()};
}

double deviation(const std::vector<float>& values) {
  double square = 0;
  for (const float value : values) square += value * value;
  return std::sqrt(square / static_cast<double>(values.size()));
}

TEST(Initializers, NormalOnesHaveTheirDeviation) {
  EXPECT_NEAR(deviation(filled(xavier_normal(), {200, 300})), std::sqrt(2.0 / 500), 5e-4);
  EXPECT_NEAR(deviation(filled(he_normal(), {200, 300})), std::sqrt(2.0 / 300), 5e-4);
  EXPECT_NEAR(deviation(filled(he_normal(0, Fan::out, Nonlinearity::tanh), {200, 300})),
              5.0 / 3 / std::sqrt(200.0), 1e-3);
  EXPECT_NEAR(deviation(filled(he_normal(0, Fan::in, Nonlinearity::linear), {20, 30, 10})),
              1 / std::sqrt(300.0), 2e-3);
}

TEST(Initializers, TruncatedNormalStaysInside) {
  const auto values = filled(truncated_normal({.sigma = 0.5, .mean = 0, .a = -1, .b = 1}), {100, 100});
  for (const float value : values) EXPECT_LE(std::abs(value), 1.0f);
  // The deviation of a normal cut at two sigma.
  EXPECT_NEAR(deviation(values), 0.5 * 0.87963, 0.01);
  for (const float value : filled(truncated_normal({.sigma = 1, .mean = 0, .a = 5, .b = 6}), {50})) {
    EXPECT_GE(value, 5.0f);
    EXPECT_LE(value, 6.0f);
  }
}

TEST(Initializers, IdentityAndOrthogonalAreWhatTheirNamesSay) {
  EXPECT_THAT(filled(identity(), {2, 3}), ElementsAre(1, 0, 0, 0, 1, 0));
  for (const Shape& shape : {Shape{3, 2, 4}, Shape{7, 3}}) {
    const auto values = filled(orthogonal(2), shape);
    const auto rows = static_cast<std::size_t>(shape[0]), columns = values.size() / rows;
    const std::size_t count = std::min(rows, columns), length = std::max(rows, columns);
    const auto at = [&](std::size_t vector, std::size_t i) {
      return rows <= columns ? values[vector * columns + i] : values[i * columns + vector];
    };
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = 0; b < count; ++b) {
        double product = 0;
        for (std::size_t i = 0; i < length; ++i) product += at(a, i) * at(b, i);
        EXPECT_NEAR(product, a == b ? 4 : 0, 1e-5) << a << ", " << b;
      }
  }
}

TEST(Initializers, VarianceScalingHasTheVarianceOfItsFan) {
  for (const Distribution distribution :
       {Distribution::uniform, Distribution::truncated_normal, Distribution::untruncated_normal}) {
    const auto of = [&](FanMode mode) {
      const VarianceScalingOptions options{.scale = 2, .mode = mode, .distribution = distribution};
      return deviation(filled(variance_scaling(options), {200, 300}));
    };
    EXPECT_NEAR(of(FanMode::in), std::sqrt(2.0 / 300), 1e-3);
    EXPECT_NEAR(of(FanMode::out), std::sqrt(2.0 / 200), 1e-3);
    EXPECT_NEAR(of(FanMode::average), std::sqrt(2.0 / 250), 1e-3);
  }
}

TEST(Initializers, SparseLeavesItsPartOfEachColumnZero) {
  const auto values = filled(sparse(0.25, 2), {10, 6});
  for (std::size_t column = 0; column < 6; ++column) {
    int zeros = 0;
    for (std::size_t row = 0; row < 10; ++row) zeros += values[row * 6 + column] == 0 ? 1 : 0;
    EXPECT_EQ(zeros, 3) << column;
  }
}

TEST(Initializers, DiracHandsOnTheChannelsOfEachGroup) {
  const auto values = filled(dirac(2), {4, 3, 3});
  std::vector<std::size_t> ones;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] == 1) ones.push_back(i);
  EXPECT_THAT(ones,
              testing::ElementsAre(1, 13, 19, 31));  // (0, 0), (1, 1), (2, 0) and (3, 1), each in its middle
  EXPECT_THAT(require_fitting({"dirac", dirac(2), 3, 5, 2}, {3, 2, 1}).error().message,
              Mentions("dirac", "3 output channels", "2 equal groups"));
  EXPECT_THAT(require_fitting(*initializer_kind_named("dirac"), {3, 2}).error().message,
              Mentions("dirac", "3 to 5 axes", "(3, 2)"));
}

TEST(Initializers, NamesMindNeitherCapitalsNorUnderscores) {
  EXPECT_TRUE(initializer_named("TruncatedNormal"));
  EXPECT_TRUE(initializer_named("HE_NORMAL"));
  EXPECT_THAT(require_fitting(*initializer_kind_named("xavier_normal"), {3}).error().message,
              Mentions("xavier_normal", "2 axes", "least", "(3,)"));
  EXPECT_THAT(require_fitting(*initializer_kind_named("identity"), {3, 3, 3}).error().message,
              Mentions("identity", "2 axes", "needed", "(3, 3, 3)"));
}

}  // namespace layers_test
}  // namespace
}  // namespace muster::nn
