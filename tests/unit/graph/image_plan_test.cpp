// Plans of convolutions: fused, and with values in the kernels' own formats where the machine has such
// kernels.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/graph/plan.h"
#include "muster/tensor/kernels.h"
#include "step_times.h"

namespace muster::graph {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <class T>
Tensor normal(const Shape& shape, std::uint64_t stream) {
  Tensor made(dtype_of<T>, shape);
  const RandomStream numbers(5, stream);
  for (std::int64_t i = 0; i < made.elements(); ++i)
    made.data<T>()[i] = static_cast<T>(static_cast<float>(numbers.normal(static_cast<std::uint64_t>(i))));
  return made;
}

template <class T>
std::vector<Tensor> inputs_of() {
  const Tensor variance = normal<T>({20}, 6);
  for (T& value : variance.span<T>()) value = std::abs(value);
  return {normal<T>({2, 20, 9, 9}, 1), normal<T>({20, 20, 3, 3}, 2), normal<T>({20}, 3),
          normal<T>({20}, 4),          normal<T>({20}, 5),           variance,
          normal<T>({20, 20, 1, 1}, 7)};
}

// A block with a way around it: conv, norm, relu, conv, norm, add, relu, pools.
Value block(std::span<const Value> in, bool training) {
  const Attributes padded{{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}};
  const Attributes norm{{"training", training}};
  const Value first = apply("conv2d", {in[0], in[1]}, padded);
  const Value inner = apply("relu", {apply("batch_norm", {first, in[2], in[3], in[4], in[5]}, norm)});
  const Value second = apply("conv2d", {inner, in[6]});
  const Value joined =
      apply("relu", {apply("add", {apply("batch_norm", {second, in[2], in[3], in[4], in[5]}, norm), in[0]})});
  const Attributes window{{"kernel", std::vector<std::int64_t>{3, 3}},
                          {"strides", std::vector<std::int64_t>{3, 3}}};
  const Value pooled = apply("avg_pool2d", {apply("max_pool2d", {joined}, window)}, window);
  return apply("reduce_sum", {apply("mul", {pooled, pooled})});
}

std::shared_ptr<Function> block_gradients(bool training) {
  return value_and_grad("block",
                        [training](std::span<const Value> in) -> Values { return block(in, training); },
                        {.parameters = {}, .positions = {0, 1, 2, 3, 6}});
}

class ImagePlan : public ::testing::TestWithParam<bool> {};

TEST_P(ImagePlan, ComputesWhatFloat64Does) {
  const auto function = block_gradients(GetParam());
  const auto found = function->call(inputs_of<float>(), {}, {.threads = 2});
  ASSERT_TRUE(found) << found.error().message;
  const auto expected = function->call(inputs_of<double>(), {}, {});
  ASSERT_TRUE(expected) << expected.error().message;
  for (std::size_t i = 0; i < found->size(); ++i) {
    double scale = 0;
    for (const double value : (*expected)[i].span<double>()) scale = std::max(scale, std::abs(value));
    for (std::int64_t j = 0; j < (*expected)[i].elements(); ++j)
      ASSERT_NEAR((*found)[i].data<float>()[j], (*expected)[i].data<double>()[j], 1e-4 * scale)
          << "output " << i << " at " << j;
  }
}

TEST_P(ImagePlan, GivesTheSameBitsEachTime) {
  const auto function = block_gradients(GetParam());
  const auto first = function->call(inputs_of<float>(), {}, {.threads = 2});
  const auto second = block_gradients(GetParam())->call(inputs_of<float>(), {}, {.threads = 2});
  ASSERT_TRUE(first && second);
  for (std::size_t i = 0; i < first->size(); ++i)
    EXPECT_EQ(std::memcmp((*first)[i].bytes(), (*second)[i].bytes(), (*first)[i].size_bytes()), 0) << i;
}

// The same block on images and weights in bfloat16.
std::shared_ptr<Function> low_block_gradients(bool training) {
  const Body body = [training](std::span<const Value> in) -> Values {
    std::vector<Value> low(in.begin(), in.end());
    for (const std::size_t i : {0, 1, 6}) low[i] = floating_as(in[i], DType::bfloat16);
    return floating_as(block(low, training), DType::float32);
  };
  return value_and_grad("low", body, {.parameters = {}, .positions = {0, 1, 2, 3, 6}});
}

// Of all elements together. Where rounding chose another maximum, or another side of relu, a whole gradient
// goes another way: of one element in a hundred that makes a distance of a tenth.
double distance(const Tensor& found, const Tensor& expected) {
  double apart = 0, scale = 0;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double exact = expected.data<double>()[i];
    const double difference = static_cast<double>(found.data<float>()[i]) - exact;
    apart += difference * difference;
    scale += exact * exact;
  }
  return std::sqrt(apart / scale);
}

TEST_P(ImagePlan, InBfloat16IsNearWhatFloat64Computes) {
  const auto function = low_block_gradients(GetParam());
  const auto found = function->call(inputs_of<float>(), {}, {.threads = 2});
  ASSERT_TRUE(found) << found.error().message;
  const auto expected = block_gradients(GetParam())->call(inputs_of<double>(), {}, {});
  ASSERT_TRUE(expected) << expected.error().message;
  for (std::size_t i = 0; i < found->size(); ++i) {
    EXPECT_EQ((*found)[i].dtype(), DType::float32);
    EXPECT_LT(distance((*found)[i], (*expected)[i]), 0.15) << "output " << i;
  }
}

TEST_P(ImagePlan, InBfloat16TakesTheLibrarysKernelsAndFusesAsInFloat32) {
  if (primitive_library() == nullptr || !this_processor().avx512_bf16)
    GTEST_SKIP() << "there are no such kernels here";
  const auto function = low_block_gradients(GetParam());
  ASSERT_TRUE(function->call(inputs_of<float>(), {}, {}));
  const std::string text = function->plan()->to_string();
  for (const char* op : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight", "max_pool2d", "avg_pool2d"})
    EXPECT_THAT(text, HasSubstr(std::string(op) + " [onednn]")) << text;
  EXPECT_THAT(text, HasSubstr(GetParam() ? "batch_norm_relu [onednn]" : "batch_norm [onednn]"));
  EXPECT_THAT(text, HasSubstr("add_relu [reference]"));
}

INSTANTIATE_TEST_SUITE_P(Training, ImagePlan, ::testing::Bool());

int count(const std::string& text, std::string_view wanted) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(wanted, at)) != std::string::npos; ++at) ++found;
  return found;
}

std::string plan_text(const Function& function) { return function.plan()->to_string(); }

TEST(FusedRelu, JoinsWhatComesBeforeItBothWays) {
  const auto function = block_gradients(true);
  ASSERT_TRUE(function->call(inputs_of<float>(), {}, {}));
  const std::string text = plan_text(*function);
  EXPECT_THAT(text, HasSubstr("batch_norm_relu ["));
  EXPECT_THAT(text, HasSubstr("batch_norm_relu_grad ["));
  EXPECT_THAT(text, HasSubstr("add_relu ["));
  EXPECT_THAT(text, Not(HasSubstr("\n  relu [")));
}

TEST(FusedRelu, JoinsAConvolution) {
  const auto function = std::make_shared<Function>("conv", [](std::span<const Value> in) -> Values {
    return apply("relu", {apply("conv2d", {in[0], in[1]})});
  });
  const std::vector<Tensor> inputs = inputs_of<float>();
  const auto outputs = function->call(std::span(inputs).first(2), {}, {});
  ASSERT_TRUE(outputs);
  EXPECT_THAT(plan_text(*function), Not(HasSubstr("relu [")));
  for (const float value : (*outputs)[0].span<float>()) EXPECT_GE(value, 0);
}

TEST(Formats, AreKeptBetweenKernels) {
  if (primitive_library() == nullptr) GTEST_SKIP() << "there is no primitive library here";
  const auto function = std::make_shared<Function>("convs", [](std::span<const Value> in) -> Values {
    Value y = in[0];
    for (int i = 0; i < 4; ++i) y = apply("relu", {apply("add", {apply("conv2d", {y, in[6]}), y})});
    return apply("max_pool2d", {y}, {{"kernel", std::vector<std::int64_t>{3, 3}}});
  });
  ASSERT_TRUE(function->call(inputs_of<float>(), {}, {}));
  const std::string text = plan_text(*function);
  EXPECT_LE(count(text, "reorder ["), 3) << text;  // the images, the weight and the output
}

// What a dense block does: its images beside what a convolution makes of them, again and again.
Value densely_joined(std::span<const Value> in) {
  const Attributes channels{{"axis", std::int64_t{1}}};
  Value y = apply("conv2d", {in[0], in[1]});
  for (int i = 0; i < 3; ++i)
    y = apply("conv2d", {apply("concat", {y, apply("relu", {y})}, channels), in[2]});
  return apply("reduce_sum", {apply("mul", {y, y})});
}

void expect_near_doubles(Function& function, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> exact;
  for (const Tensor& input : inputs) exact.push_back(input.cast(DType::float64));
  const auto found = function.call(inputs, {}, {.threads = 2}).value();
  const std::string text = plan_text(function);
  const auto expected = function.call(exact, {}, {}).value();
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_LT(distance(found[i], expected[i]), 1e-5) << "output " << i << "\n" << text;
}

TEST(Formats, AreKeptWhereChannelsAreJoinedAndCut) {
  if (primitive_library() == nullptr) GTEST_SKIP() << "there is no primitive library here";
  for (const std::int64_t count_of_channels : {16, 20}) {  // whole blocks of channels, and others
    const auto function =
        value_and_grad("dense block", [](std::span<const Value> in) -> Values { return densely_joined(in); },
                       {.parameters = {}, .positions = {0, 1, 2}});
    const Shape weight{count_of_channels, 2 * count_of_channels, 1, 1};
    const std::vector<Tensor> inputs{normal<float>({2, 8, 9, 9}, 1),
                                     normal<float>({count_of_channels, 8, 3, 3}, 2),
                                     normal<float>(weight, 3)};
    ASSERT_TRUE(function->call(inputs, {}, {}));
    if (count_of_channels == 16) {
      EXPECT_LE(count(plan_text(*function), "reorder ["), 12);
    }
    expect_near_doubles(*function, inputs);
  }
}

// The library computes batch_norm in blocks of 4 channels a hundred times slower than in others.
TEST(Formats, OfGroupedConvolutionsAreNotThoseThatAreSlow) {
  if (primitive_library() == nullptr) GTEST_SKIP() << "there is no primitive library here";
  const auto function = value_and_grad(
      "grouped",
      [](std::span<const Value> in) -> Values {
        const Value y = apply("conv2d", {in[0], in[1]}, {{"group", std::int64_t{3}}});
        const Value normed = apply("batch_norm", {y, in[2], in[3], in[4], in[5]}, {{"training", true}});
        const Value pooled = apply("avg_pool2d", {normed}, {{"kernel", std::vector<std::int64_t>{3, 3}}});
        return apply("reduce_sum", {apply("mul", {pooled, pooled})});
      },
      {.parameters = {}, .positions = {0, 1, 2, 3}});
  const std::vector<Tensor> inputs{
      normal<float>({2, 12, 9, 9}, 1), normal<float>({12, 4, 1, 1}, 2),
      normal<float>({12}, 3),          normal<float>({12}, 4),
      normal<float>({12}, 5),          Tensor::from<float>(std::vector(12, 1.0F), {12})};
  ASSERT_TRUE(function->call(inputs, {}, {}));
  const std::string text = plan_text(*function);
  for (const std::string_view op : {"batch_norm", "avg_pool2d"})
    for (std::size_t at = text.find(op); at != std::string::npos; at = text.find(op, at + 1))
      EXPECT_THAT(text.substr(at, text.find('\n', at) - at), Not(HasSubstr("4b"))) << text;
  expect_near_doubles(*function, inputs);
}

// On row-major images the library has no code of its own for batch_norm, only loops ten times as slow.
TEST(Formats, OfImagesInRowMajorOrderAreBlocksForBatchNorm) {
  if (primitive_library() == nullptr) GTEST_SKIP() << "there is no primitive library here";
  const auto body = [](std::span<const Value> in) -> Values {
    const Value y = apply("batch_norm", {in[0], in[1], in[2], in[3], in[4]}, {{"training", true}});
    return apply("reduce_sum", {apply("mul", {y, apply("relu", {y})})});
  };
  const auto function = value_and_grad("normed", body, {.parameters = {}, .positions = {0, 1, 2}});
  const std::vector<Tensor> inputs{normal<float>({2, 12, 9, 7}, 1), normal<float>({12}, 3),
                                   normal<float>({12}, 4), normal<float>({12}, 5),
                                   Tensor::from<float>(std::vector(12, 1.0F), {12})};
  ASSERT_TRUE(function->call(inputs, {}, {}));
  const std::string text = plan_text(*function);
  EXPECT_THAT(text, ::testing::ContainsRegex("batch_norm .*-> aBcd(8|16)b"));
  EXPECT_THAT(text, ::testing::ContainsRegex("batch_norm_grad .*-> aBcd(8|16)b"));
  expect_near_doubles(*function, inputs);
}

// With instructions for 8 numbers at once the library has loops alone for groups of 4 channels, which want
// row-major images.
TEST(Formats, OfSmallGroupsAreBlocksOfChannels) {
  if (primitive_library() == nullptr) GTEST_SKIP() << "there is no primitive library here";
  const auto body = [](std::span<const Value> in) -> Values {
    const Value y = apply("relu", {apply("conv2d", {in[0], in[1]}, {{"group", std::int64_t{8}}})});
    return apply("reduce_sum", {apply("mul", {y, y})});
  };
  const auto function = value_and_grad("grouped", body, {.parameters = {}, .positions = {0, 1}});
  const std::vector<Tensor> inputs{normal<float>({2, 32, 9, 7}, 1), normal<float>({24, 4, 3, 3}, 2)};
  ASSERT_TRUE(function->call(inputs, {}, {}));
  EXPECT_THAT(plan_text(*function), ::testing::ContainsRegex("conv2d .*-> a"));
  expect_near_doubles(*function, inputs);
}

// relu keeps the library's order; the library has no numbers of 8 bytes.
TEST(Formats, EndAtACastToADtypeThatTheLibraryLacks) {
  for (const DType dtype : {DType::float64, DType::int64, DType::bool_}) {
    const auto function = std::make_shared<Function>("cast", [dtype](std::span<const Value> in) -> Values {
      const Value y =
          apply("relu", {apply("conv2d", {apply("relu", {apply("conv2d", {in[0], in[1]})}), in[2]})});
      return apply("cast", {y}, {{"dtype", dtype}});
    });
    const std::vector<Tensor> inputs{normal<float>({2, 16, 8, 8}, 1), normal<float>({32, 16, 3, 3}, 2),
                                     normal<float>({32, 32, 3, 3}, 3)};
    const auto outputs = function->call(inputs, {}, {});
    ASSERT_TRUE(outputs) << outputs.error().message;
    EXPECT_EQ((*outputs)[0].dtype(), dtype);
  }
}

TEST(Formats, AWeightThatIsUpdatedIsReadAnew) {
  const auto weight = std::make_shared<Parameter>("weight", normal<float>({20, 20, 1, 1}, 7));
  const Tensor before = weight->storage().clone();
  Function function("step", [&](std::span<const Value> in) -> Values {
    const Value first = apply("conv2d", {in[0], weight});
    const Value updated = apply("sgd", {weight, weight, Tensor::scalar(1.0F)});  // weight - weight
    const Value second = apply("conv2d", {in[0], weight});
    return {first, second, updated};
  });
  const std::vector<Tensor> inputs{normal<float>({1, 20, 3, 3}, 1)};
  const auto outputs = function.call(inputs, {}, {});
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_NE((*outputs)[0].data<float>()[0], 0);
  for (const float value : (*outputs)[1].span<float>()) ASSERT_EQ(value, 0);
  for (const float value : weight->storage().span<float>()) ASSERT_EQ(value, 0);
}

// LeNet-5 in small, of 21 samples.
template <class T>
std::vector<Tensor> few_channels_inputs() {
  return {normal<T>({21, 1, 18, 18}, 1),
          normal<T>({6, 1, 3, 3}, 2),
          normal<T>({6}, 3),
          normal<T>({16, 6, 3, 3}, 4),
          normal<T>({10, 64}, 5),
          normal<T>({16}, 6),
          normal<T>({16}, 7),
          Tensor::zeros(dtype_of<T>, {16}),
          Tensor::zeros(dtype_of<T>, {16})};
}

Value few_channels(std::span<const Value> in) {
  const Attributes window{{"kernel", std::vector<std::int64_t>{2, 2}},
                          {"strides", std::vector<std::int64_t>{2, 2}}};
  const Attributes padded{{"pads", std::vector<std::int64_t>{0, 1, 0, 1}}};
  Value x = apply("relu", {apply("conv2d", {in[0], in[1], in[2]})});
  x = apply("max_pool2d", {x}, window);
  x = apply("conv2d", {x, in[3]}, padded);
  x = apply("relu", {apply("batch_norm", {x, in[5], in[6], in[7], in[8]}, {{"training", true}})});
  x = apply("avg_pool2d", {apply("max_pool2d", {x}, window)}, {{"kernel", std::vector<std::int64_t>{2, 2}}});
  const Value flat = apply("reshape", {x}, {{"shape", std::vector<std::int64_t>{21, -1}}});
  const Value y = apply("matmul", {flat, in[4]}, {{"transpose_b", true}});
  return apply("reduce_mean", {apply("mul", {y, y})});
}

std::shared_ptr<Function> few_channels_gradients() {
  return value_and_grad("few channels", [](std::span<const Value> in) -> Values { return few_channels(in); },
                        {.parameters = {}, .positions = {1, 2, 3, 4, 5, 6}});
}

TEST(FewChannels, ComputeWhatFloat64Does) {
  const auto function = few_channels_gradients();
  const auto found = function->call(few_channels_inputs<float>(), {}, {.threads = 2});
  ASSERT_TRUE(found) << found.error().message;
  const auto expected = function->call(few_channels_inputs<double>(), {}, {});
  ASSERT_TRUE(expected) << expected.error().message;
  for (std::size_t i = 0; i < found->size(); ++i) {
    double scale = 0;
    for (const double value : (*expected)[i].span<double>()) scale = std::max(scale, std::abs(value));
    for (std::int64_t j = 0; j < (*expected)[i].elements(); ++j)
      ASSERT_NEAR((*found)[i].data<float>()[j], (*expected)[i].data<double>()[j], 1e-4 * scale)
          << "output " << i << " at " << j;
  }
}

TEST(FewChannels, AreConvolvedOutsideOfPlansToo) {
  const auto both = [](const std::vector<Tensor>& in) {
    const Value y = apply("conv2d", {in[0], in[1], in[2]});
    const Value dweight =
        apply("conv2d_grad_weight", {in[0], y}, {{"kernel", std::vector<std::int64_t>{3, 3}}});
    const Value dx =
        apply("conv2d_grad_input", {y, in[1]}, {{"input_size", std::vector<std::int64_t>{18, 18}}});
    return Values{y, dweight, dx};
  };
  const Values found = both(few_channels_inputs<float>());
  const Values expected = both(few_channels_inputs<double>());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Tensor values = found[i].tensor(), wanted = expected[i].tensor();
    double scale = 0;
    for (const double value : wanted.span<double>()) scale = std::max(scale, std::abs(value));
    for (std::int64_t j = 0; j < wanted.elements(); ++j)
      ASSERT_NEAR(values.data<float>()[j], wanted.data<double>()[j], 1e-5 * scale) << i << " at " << j;
  }
}

TEST(FewChannels, LieSideBySideFromTheImageToTheFirstMatrix) {
  const auto function = few_channels_gradients();
  ASSERT_TRUE(function->call(few_channels_inputs<float>(), {}, {}));
  const std::string text = plan_text(*function);
  for (const std::string_view op :
       {"conv2d", "conv2d_grad_input", "conv2d_grad_weight", "max_pool2d", "max_pool2d_grad", "avg_pool2d",
        "channel_sum", "batch_norm_relu", "batch_norm_relu_grad"})
    EXPECT_EQ(count(text, fmt::format("\n  {} [", op)),
              count(text, fmt::format("\n  {} [batch blocked]", op)))
        << text;
  EXPECT_EQ(count(text, "\n  conv2d_grad_weight ["), 2) << text;
  EXPECT_LE(count(text, "\n  reorder ["), 3) << text;  // the image, the first matrix's input and its gradient
}

// Convolutions from few channels to many: the last one's images come as our own kernels made them.
std::shared_ptr<Function> widening() {
  return std::make_shared<Function>("widening", [](std::span<const Value> in) -> Values {
    Value x = in[0];
    for (std::size_t i = 1; i < in.size(); ++i) x = apply("relu", {apply("conv2d", {x, in[i]})});
    return x;
  });
}
template <class T>
std::vector<Tensor> widening_inputs() {
  return {normal<T>({16, 3, 8, 8}, 1), normal<T>({8, 3, 3, 3}, 2), normal<T>({32, 8, 3, 3}, 3),
          normal<T>({64, 32, 3, 3}, 4)};
}

TEST(FewChannels, PassTheirBlocksOnAndAgreeWithDoubles) {
  const auto function = widening();
  const auto found = function->call(widening_inputs<float>(), {}, {});
  ASSERT_TRUE(found) << found.error().message;
  // Images go from one of our kernels to the next in the order in which it made them.
  EXPECT_THAT(plan_text(*function),
              HasSubstr("\n  conv2d [batch blocked] -> Abcd16a\n  conv2d [batch blocked]"));
  const auto expected = widening()->call(widening_inputs<double>(), {}, {});
  ASSERT_TRUE(expected) << expected.error().message;
  for (std::int64_t i = 0; i < (*expected)[0].elements(); ++i)
    ASSERT_NEAR((*found)[0].data<float>()[i], (*expected)[0].data<double>()[i], 0.01)
        << i;  // of some hundreds
}

TEST(FewChannels, AreLeftToTheLibraryBesideManyChannels) {
  if (primitive_library() == nullptr) GTEST_SKIP() << "there is no primitive library here";
  const auto function = std::make_shared<Function>("stem", [](std::span<const Value> in) -> Values {
    return apply("conv2d", {in[0], in[1]});
  });
  const std::vector<Tensor> inputs{normal<float>({16, 3, 8, 8}, 1), normal<float>({64, 3, 3, 3}, 2)};
  ASSERT_TRUE(function->call(inputs, {}, {}));
  EXPECT_THAT(plan_text(*function), HasSubstr("conv2d [onednn]"));
}

TEST(FewChannels, HaveTheGradientsOfFiniteDifferences) {
  const auto function = few_channels_gradients();
  std::vector<Tensor> inputs = few_channels_inputs<double>();
  const auto analytic = function->call(inputs, {}, {});
  ASSERT_TRUE(analytic) << analytic.error().message;
  constexpr double step = 1e-6;
  for (std::int64_t i = 4; i < inputs[1].elements(); i += 9) {  // the middle of each kernel
    double& weight = inputs[1].data<double>()[i];
    const double kept = weight;
    weight = kept + step;
    const double above = *(*function->call(inputs, {}, {}))[0].data<double>();
    weight = kept - step;
    const double below = *(*function->call(inputs, {}, {}))[0].data<double>();
    weight = kept;
    const double numeric = (above - below) / (2 * step);
    EXPECT_NEAR((*analytic)[1].data<double>()[i], numeric, 1e-4 * (1 + std::abs(numeric))) << i;
  }
}

TEST(FusedRelu, GoesBeforeThePoolOnTheWayBack) {
  const auto function = few_channels_gradients();
  ASSERT_TRUE(function->call(few_channels_inputs<float>(), {}, {}));
  const std::string text = plan_text(*function);
  const std::size_t relu = text.find("\n  relu_grad [");
  const std::size_t pool = text.rfind("\n  max_pool2d_grad [");
  ASSERT_NE(relu, std::string::npos) << text;
  ASSERT_NE(pool, std::string::npos) << text;
  EXPECT_LT(relu, pool) << text;
}

// Two convolutions with weights in blocks of 16 channels, and what trains them.
struct Training {
  ParameterPtr first = std::make_shared<Parameter>("first", normal<float>({16, 32, 3, 3}, 1));
  ParameterPtr second = std::make_shared<Parameter>("second", normal<float>({32, 16, 1, 1}, 2));
  std::vector<ParameterPtr> moments = {
      std::make_shared<Parameter>("m", Tensor::zeros(DType::float32, {16, 32, 3, 3})),
      std::make_shared<Parameter>("n", Tensor::zeros(DType::float32, {32, 16, 1, 1}))};
  Tensor images = normal<float>({2, 32, 7, 7}, 3);

  Value network(const Value& x) const {
    const Attributes padded{{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}};
    const Value hidden = apply("relu", {apply("conv2d", {x, first}, padded)});
    const Value y = apply("conv2d", {apply("add", {hidden, hidden}), second});
    return apply("reduce_mean", {apply("mul", {y, y})});
  }
  Value update(const Value& gradient, std::size_t index) const {
    return apply("momentum", {index == 0 ? first : second, gradient, Tensor::scalar(0.01F), moments[index]},
                 {{"momentum", 0.9}, {"weight_decay", 0.1}});
  }
  // Everything as one graph.
  Function step() const {
    return Function("step", [this](std::span<const Value> in) -> Values {
      const Value loss = network(in[0]);
      const auto gradients = Trace::current()->gradient({&loss, 1}, std::vector<Value>{first, second});
      for (std::size_t i = 0; i < 2; ++i) update(gradients[i], i);
      return loss;
    });
  }
};

bool equal_bits(const Tensor& a, const Tensor& b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.bytes(), b.bytes(), a.size_bytes()) == 0;
}

TEST(ParameterFormats, GiveTheBitsOfParametersInRowMajorOrder) {
  const Training kept, apart;
  Function step = kept.step();
  const auto gradient =
      value_and_grad("gradient", [&](std::span<const Value> in) -> Values { return apart.network(in[0]); },
                     {.parameters = {apart.first, apart.second}});
  for (int i = 0; i < 3; ++i) {
    const auto loss = step.call({&kept.images, 1}, {}, {.threads = 2});
    ASSERT_TRUE(loss) << loss.error().message;
    const auto expected = gradient->call({&apart.images, 1}, {}, {.threads = 2});
    ASSERT_TRUE(expected) << expected.error().message;
    EXPECT_TRUE(equal_bits((*loss)[0], (*expected)[0])) << i;
    for (std::size_t j = 0; j < 2; ++j) apart.update((*expected)[j + 1], j);
  }
  EXPECT_TRUE(equal_bits(kept.first->storage(), apart.first->storage()));
  EXPECT_TRUE(equal_bits(kept.second->storage(), apart.second->storage()));
  for (std::size_t j = 0; j < 2; ++j)
    EXPECT_TRUE(equal_bits(kept.moments[j]->storage(), apart.moments[j]->storage()));
}

TEST(ParameterFormats, SaveTheReordersOfGradients) {
  if (primitive_library() == nullptr) GTEST_SKIP() << "there is no primitive library here";
  const Training training;
  Function step = training.step();
  ASSERT_TRUE(step.call({&training.images, 1}, {}, {}));
  const std::string text = plan_text(step);
  // What follows the first gradient of a weight are gradients and the update of both, as they come.
  EXPECT_THAT(text.substr(text.find("conv2d_grad_weight")), Not(HasSubstr("reorder"))) << text;
  EXPECT_THAT(text, ::testing::ContainsRegex("momentum .* -> .*, 2 together"));
}

TEST(ParameterFormats, ReadersBetweenStepsSeeWhatWasTrained) {
  const Training training, watched;
  Function alone = training.step();
  Function step = watched.step();
  Function evaluation("evaluation",
                      [&](std::span<const Value> in) -> Values { return watched.network(in[0]); });
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(alone.call({&training.images, 1}, {}, {}));
    ASSERT_TRUE(step.call({&watched.images, 1}, {}, {}));
    const auto loss = evaluation.call({&watched.images, 1}, {}, {});
    ASSERT_TRUE(loss) << loss.error().message;
    const Value eager = watched.network(watched.images);
    const float expected = eager.tensor().data<float>()[0];
    EXPECT_NEAR((*loss)[0].data<float>()[0], expected, 1e-5 * expected) << i;
    EXPECT_TRUE(equal_bits(watched.first->storage(), training.first->storage())) << i;
  }
}

TEST(ParameterFormats, ValuesThatAreSetBetweenStepsCount) {
  const Training training;
  Function step = training.step();
  ASSERT_TRUE(step.call({&training.images, 1}, {}, {}));
  for (const ParameterPtr& parameter : {training.first, training.moments[0], training.moments[1]})
    ASSERT_TRUE(parameter->set(Tensor::zeros(DType::float32, parameter->shape())));
  const auto loss = step.call({&training.images, 1}, {}, {});
  ASSERT_TRUE(loss);
  EXPECT_EQ((*loss)[0].data<float>()[0], 0);
}

// One convolution and the update of its weight; `before` may do more to it.
Function weight_step(const ParameterPtr& weight, const std::function<void()>& before) {
  const auto moment = std::make_shared<Parameter>("m", Tensor::zeros(DType::float32, weight->shape()));
  return Function("step", [=](std::span<const Value> in) -> Values {
    const Value y = apply("conv2d", {in[0], weight});
    const Value loss = apply("reduce_mean", {apply("mul", {y, y})});
    const auto gradients = Trace::current()->gradient({&loss, 1}, std::vector<Value>{weight});
    before();
    return {loss, apply("momentum", {weight, gradients[0], Tensor::scalar(0.1F), moment})};
  });
}

TEST(ParameterFormats, AreNotThoseWithPadding) {
  const auto weight = std::make_shared<Parameter>("weight", normal<float>({20, 20, 3, 3}, 1));
  Function step = weight_step(weight, [] {});
  const Tensor images = normal<float>({2, 20, 7, 7}, 2);
  ASSERT_TRUE(step.call({&images, 1}, {}, {}));
  EXPECT_THAT(plan_text(step), Not(::testing::ContainsRegex("momentum .* ->")));
}

TEST(ParameterFormats, AreNotThoseOfParametersThatSomethingElseWrites) {
  const auto weight = std::make_shared<Parameter>("weight", normal<float>({16, 16, 3, 3}, 1));
  const Tensor images = normal<float>({2, 16, 7, 7}, 2);
  const Value half = apply("mul", {weight, Tensor::scalar(0.5F)});
  const auto halve = [&] { (void)apply("assign", {weight, half}); };
  Function step = weight_step(weight, halve);
  const auto outputs = step.call({&images, 1}, {}, {});
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_THAT(plan_text(step), Not(::testing::ContainsRegex("momentum .* ->")));
  EXPECT_TRUE(equal_bits((*outputs)[1], weight->storage()));
  // The gradient is far smaller than what was assigned.
  for (std::int64_t i = 0; i < weight->storage().elements(); ++i)
    ASSERT_NEAR(weight->storage().data<float>()[i], half.tensor().data<float>()[i], 0.2F);
}

TEST(RunObserver, IsToldOfEachStepOfEachRun) {
  const auto function = block_gradients(true);
  StepTimes once, times;
  ASSERT_TRUE(function->call(inputs_of<float>(), {}, {.observer = &once}));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(function->call(inputs_of<float>(), {}, {.observer = &times}));
  ASSERT_FALSE(once.all.empty());
  EXPECT_EQ(times.all.size(), 2 * once.all.size());
  EXPECT_THAT(times.all[0].what, HasSubstr("["));
  std::chrono::nanoseconds total{};
  for (const StepTime& time : times.all) total += time.taken;
  EXPECT_GT(total.count(), 0);
}

}  // namespace
}  // namespace muster::graph
