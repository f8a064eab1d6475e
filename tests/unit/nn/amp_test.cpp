// Mixed precision of cells: what computes in bfloat16, what stays float32, and who may ask for it.
#include "muster/nn/amp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "muster/nn/nn.h"

namespace muster::nn {
namespace {

using ::testing::HasSubstr;

// Notes the dtype that comes in, and passes it on.
class Probe : public Cell {
 public:
  Probe() : Cell("Probe") {}
  Values construct(std::span<const Value> inputs) override {
    seen = inputs[0].dtype();
    return inputs[0];
  }
  DType seen = DType::bool_;
};

struct Net {
  std::shared_ptr<Probe> after_conv = std::make_shared<Probe>();
  std::shared_ptr<Probe> after_norm = std::make_shared<Probe>();
  std::shared_ptr<Probe> after_dense = std::make_shared<Probe>();
  std::shared_ptr<Cell> conv = std::make_shared<Conv2d>(3, 16, Size2d{3, 3}, Conv2dOptions{.has_bias = true});
  std::shared_ptr<Cell> dense = std::make_shared<Dense>(16 * 6 * 6, 5);
  std::shared_ptr<SequentialCell> cell = std::make_shared<SequentialCell>(std::initializer_list<CellPtr>{
      conv, after_conv, std::make_shared<BatchNorm2d>(16), after_norm, std::make_shared<ReLU>(),
      std::make_shared<Flatten>(), dense, after_dense});
};

Tensor images(std::uint64_t number = 1) {
  const RandomStream random(3, number);
  Tensor made(DType::float32, {4, 3, 6, 6});
  for (std::int64_t i = 0; i < made.elements(); ++i)
    made.data<float>()[i] = static_cast<float>(random.normal(static_cast<std::uint64_t>(i)));
  return made;
}

Tensor output_of(Cell& cell, const Tensor& input) {
  const Values made = cell(input);
  return made[0].read().value();
}

void expect_near(const Tensor& found, const Tensor& expected, double tolerance) {
  double scale = 0;
  for (const float value : expected.span<float>())
    scale = std::max(scale, std::abs(static_cast<double>(value)));
  for (std::int64_t i = 0; i < expected.elements(); ++i)
    ASSERT_NEAR(found.data<float>()[i], expected.data<float>()[i], tolerance * scale) << "element " << i;
}

TEST(Amp, O2ComputesInBfloat16AndGivesFloat32NearTheFullResult) {
  Net net;
  net.cell->set_train();
  const Tensor full = output_of(*net.cell, images());
  EXPECT_EQ(net.after_conv->seen, DType::float32);
  ASSERT_TRUE(auto_mixed_precision(*net.cell, {.level = "O2"}));
  const Tensor low = output_of(*net.cell, images());
  EXPECT_EQ(net.after_conv->seen, DType::bfloat16);
  EXPECT_EQ(net.after_norm->seen, DType::bfloat16);
  EXPECT_EQ(low.dtype(), DType::float32);
  expect_near(low, full, 0.03);
  for (const ParameterPtr& parameter : net.cell->parameters())
    EXPECT_EQ(parameter->dtype(), DType::float32) << parameter->name();
}

TEST(Amp, O1ComputesProductsInBfloat16AndTheRestInFloat32) {
  Net net;
  net.cell->set_train();
  const Tensor full = output_of(*net.cell, images());
  ASSERT_TRUE(auto_mixed_precision(*net.cell, {.level = "O1"}));
  const Tensor mixed = output_of(*net.cell, images());
  EXPECT_EQ(net.after_conv->seen, DType::float32);
  EXPECT_EQ(net.after_norm->seen, DType::float32);
  expect_near(mixed, full, 0.03);
  EXPECT_NE(0, std::memcmp(mixed.bytes(), full.bytes(), full.size_bytes()));
}

TEST(Amp, AutoGivesProductsInBfloat16AndNormalisesInFloat32) {
  Net net;
  ASSERT_TRUE(auto_mixed_precision(*net.cell, {.level = "auto"}));
  output_of(*net.cell, images());
  EXPECT_EQ(net.after_conv->seen, DType::bfloat16);
  EXPECT_EQ(net.after_norm->seen, DType::float32);
}

TEST(Amp, ALaterLevelTakesThePlaceOfAnEarlierOne) {
  Net net;
  const Tensor full = output_of(*net.cell, images());
  ASSERT_TRUE(auto_mixed_precision(*net.cell, {.level = "O2"}));
  ASSERT_TRUE(auto_mixed_precision(*net.cell, {.level = "O1"}));
  output_of(*net.cell, images());
  EXPECT_EQ(net.after_conv->seen, DType::float32);
  ASSERT_TRUE(auto_mixed_precision(*net.cell, {.level = "O0"}));
  output_of(*net.cell, images());
  EXPECT_EQ(net.after_dense->seen, DType::float32);
}

TEST(Amp, WhatToFloatWasCalledForKeepsItsDtypeAtO1AndAuto) {
  for (const char* level : {"O1", "auto"}) {
    Net net;
    ASSERT_TRUE(net.dense->to_float(DType::float32));
    ASSERT_TRUE(net.conv->to_float(DType::bfloat16));
    ASSERT_TRUE(auto_mixed_precision(*net.cell, {.level = level}));
    output_of(*net.cell, images());
    EXPECT_EQ(net.after_conv->seen, DType::bfloat16) << level;
    EXPECT_EQ(net.after_dense->seen, DType::float32) << level;
  }
}

TEST(Amp, ListsOfOnesOwnSayWhichCellsComputeInBfloat16) {
  const auto is_conv = [](const Cell& cell) { return cell.class_name() == "Conv2d"; };
  const auto is_dense = [](const Cell& cell) { return cell.class_name() == "Dense"; };
  Net white;
  ASSERT_TRUE(custom_mixed_precision(*white.cell, {.white = is_conv}));
  const Tensor by_white = output_of(*white.cell, images());
  EXPECT_EQ(white.after_conv->seen, DType::float32);
  EXPECT_TRUE(white.conv->precision());
  EXPECT_FALSE(white.dense->precision());
  Net black;
  ASSERT_TRUE(custom_mixed_precision(*black.cell, {.black = is_dense}));
  output_of(*black.cell, images());
  EXPECT_EQ(black.after_conv->seen, DType::bfloat16);
  EXPECT_EQ(black.after_dense->seen, DType::bfloat16) << "what a black cell gives goes on in bfloat16";
  EXPECT_EQ(black.dense->precision()->inputs, DType::float32);
  EXPECT_FALSE(custom_mixed_precision(*black.cell, {}));
  EXPECT_FALSE(custom_mixed_precision(*black.cell, {.white = is_conv, .black = is_dense}));
}

TEST(Amp, OtherLevelsAndDtypesAreRefused) {
  Net net;
  EXPECT_THAT(auto_mixed_precision(*net.cell, {.level = "O4"}).error().message, HasSubstr("'O4'"));
  EXPECT_THAT(auto_mixed_precision(*net.cell, {.level = "O2", .dtype = DType::float64}).error().message,
              HasSubstr("not in float64"));
  EXPECT_THAT(net.cell->to_float(DType::int32).error().message, HasSubstr("not in int32"));
}

TEST(Amp, EagerModeComputesWhatThePlanDoes) {
  Net net;
  ASSERT_TRUE(auto_mixed_precision(*net.cell, {.level = "O2"}));
  const Tensor planned = output_of(*net.cell, images());
  graph::set_eager(true);
  const Tensor eager = output_of(*net.cell, images());
  graph::set_eager(false);
  EXPECT_EQ(net.after_conv->seen, DType::bfloat16);
  EXPECT_EQ(eager.dtype(), DType::float32);
  expect_near(eager, planned, 0.01);
}

TEST(Amp, AStepUpdatesFloat32WeightsByLessThanBfloat16CouldHold) {
  const auto net = std::make_shared<Dense>(8, 1, DenseOptions{.weight_init = ones(), .bias_init = zeros()});
  ASSERT_TRUE(auto_mixed_precision(*net, {.level = "O2"}));
  const auto sgd = std::make_shared<SGD>(net->trainable_params(), SGDOptions{.learning_rate = 1e-4});
  TrainOneStepCell step(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>(), true), sgd);
  step.set_train();
  Tensor x(DType::float32, {1, 8});
  std::fill_n(x.data<float>(), 8, 1.0F);
  const Values loss = step(x, Tensor::zeros(DType::float32, {1, 1}));
  EXPECT_EQ(loss[0].dtype(), DType::float32);
  EXPECT_EQ(*loss[0].read().value().data<float>(), 64.0F);
  EXPECT_NEAR(net->parameters()[0]->storage().data<float>()[0], 1 - 1e-4 * 16, 1e-6);  // 1 - 2^-10 is nearest
}

// x plus a tensor that is no parameter.
class Shifted : public Cell {
 public:
  Shifted() : Cell("Shifted") {}
  Values construct(std::span<const Value> inputs) override {
    return ops::add(inputs[0], Tensor::scalar(1.0F));
  }
};

TEST(Amp, ATensorOfTheCodesOwnMeetsBfloat16InIt) {
  Shifted cell;
  EXPECT_EQ(cell(images()).dtype(), DType::float32);
  ASSERT_TRUE(cell.to_float(DType::bfloat16));
  EXPECT_EQ(cell(images()).dtype(), DType::bfloat16);
}

TEST(Amp, ALossIsComputedInFloat32WhereThatIsAskedFor) {
  const auto net = std::make_shared<Dense>(8, 1);
  ASSERT_TRUE(net->to_float(DType::bfloat16));
  const Tensor x = images().reshaped({54, 8}), labels = Tensor::zeros(DType::float32, {54, 1});
  for (const bool wide : {false, true}) {
    WithLossCell cell(net, std::make_shared<L1Loss>(), wide);
    const Values loss = cell(x, wide ? labels : graph::floating_as(labels, DType::bfloat16).tensor());
    EXPECT_EQ(loss[0].dtype(), wide ? DType::float32 : DType::bfloat16);
  }
}

TEST(Amp, AMixedLayerNormComputesInFloat32) {
  LayerNorm norm({16});
  const Tensor x = images().reshaped({27, 16});
  const Tensor full = output_of(norm, x);
  ASSERT_TRUE(norm.to_float(DType::bfloat16));
  const Values low = norm(x);
  EXPECT_EQ(low[0].dtype(), DType::bfloat16);
  expect_near(graph::floating_as(low[0], DType::float32).tensor(), full, 0.01);
}

}  // namespace
}  // namespace muster::nn
