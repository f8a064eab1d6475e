// Gradients of gradients, in float64 against finite differences of the gradient.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "muster/graph/graph.h"

namespace muster::graph {
namespace {

struct Given {
  std::string name;
  std::string op;
  Attributes attributes;
  std::vector<Shape> inputs;      // float64, all differentiated
  std::vector<Tensor> more = {};  // further inputs, as they are
};

// Numbers that are neither near zero nor near each other.
Tensor numbers(const Shape& shape, double phase) {
  Tensor made(DType::float64, shape);
  for (std::int64_t i = 0; i < made.elements(); ++i)
    made.data<double>()[i] = 1.5 * std::sin(phase + 1.7 * static_cast<double>(i)) + 0.1;
  return made;
}

// A scalar that depends on every element in a way of its own.
Value mixed(const Value& value, double phase) {
  return apply("reduce_sum", {apply("mul", {value, numbers(value.shape(), phase)})});
}

class SecondDerivative : public ::testing::TestWithParam<Given> {
 protected:
  void SetUp() override {
    const Given& given = GetParam();
    GradientOptions options;
    for (std::size_t i = 0; i < given.inputs.size(); ++i) {
      inputs_.push_back(numbers(given.inputs[i], static_cast<double>(i)));
      options.positions.push_back(i);
    }
    inputs_.insert(inputs_.end(), given.more.begin(), given.more.end());
    const auto first = value_and_grad(
        "first",
        [&given](std::span<const Value> in) -> Values {
          const Values outputs = apply_all(given.op, in, given.attributes);
          return mixed(outputs[0], 0.3);
        },
        options);
    // All first gradients at once.
    slopes_ = [first](std::span<const Value> in) -> Values {
      const Values made = (*first)(in);
      Value sum = mixed(made[1], 0.7);
      for (std::size_t i = 2; i < made.size(); ++i)
        sum = apply("add", {sum, mixed(made[i], static_cast<double>(i))});
      return sum;
    };
    second_ = value_and_grad("second", slopes_, options);
  }

  double slopes() {
    const auto outputs = second_->call(inputs_, {}, {});
    MUSTER_CHECK(outputs.has_value(), outputs.error().message);
    return *(*outputs)[0].data<double>();
  }

  std::vector<Tensor> inputs_;
  Body slopes_;
  std::shared_ptr<Function> second_;
};

TEST_P(SecondDerivative, IsTheDifferenceOfTheFirst) {
  const auto analytic = second_->call(inputs_, {}, {});
  ASSERT_TRUE(analytic) << analytic.error().message;
  constexpr double step = 1e-6;
  for (std::size_t g = 0; g < GetParam().inputs.size(); ++g)
    for (std::int64_t i = 0; i < inputs_[g].elements(); ++i) {
      double& element = inputs_[g].data<double>()[i];
      const double kept = element;
      element = kept + step;
      const double above = slopes();
      element = kept - step;
      const double below = slopes();
      element = kept;
      const double numeric = (above - below) / (2 * step);
      EXPECT_NEAR((*analytic)[1 + g].data<double>()[i], numeric, 2e-7 * (1 + std::abs(numeric)))
          << "input " << g << ", element " << i;
    }
}

TEST_P(SecondDerivative, IsTheSameOnATape) {
  const auto analytic = second_->call(inputs_, {}, {});
  ASSERT_TRUE(analytic) << analytic.error().message;
  set_eager(true);
  const Values eager = (*second_)(Values(inputs_.begin(), inputs_.end()));
  set_eager(false);
  ASSERT_EQ(eager.size(), analytic->size());
  for (std::size_t g = 0; g < eager.size(); ++g) {
    ASSERT_TRUE(eager[g].is_concrete());
    const double* expected = (*analytic)[g].data<double>();
    for (std::int64_t i = 0; i < (*analytic)[g].elements(); ++i)
      EXPECT_NEAR(eager[g].tensor().data<double>()[i], expected[i], 1e-12 * (1 + std::abs(expected[i])));
  }
}

const Shape matrix{3, 4};
const Tensor labels = Tensor::from<std::int32_t>(std::vector<std::int32_t>{2, 0, 3}, {3});

std::vector<Given> all() {
  std::vector<Given> given;
  for (const char* name : {"sigmoid", "tanh", "gelu", "silu", "elu", "softplus", "softmax", "log_softmax"})
    given.push_back({name, name, {}, {matrix}});
  given.push_back({"gelu_by_tanh", "gelu", {{"approximate", true}}, {matrix}});
  given.push_back({"elu_with_alpha", "elu", {{"alpha", 0.5}}, {matrix}});
  given.push_back({"softmax_of_columns", "softmax", {{"axis", std::int64_t{0}}}, {matrix}});
  given.push_back({"log_softmax_of_columns", "log_softmax", {{"axis", std::int64_t{0}}}, {matrix}});
  given.push_back({"layer_norm", "layer_norm", {}, {matrix, {4}, {4}}});
  given.push_back({"layer_norm_of_planes",
                   "layer_norm",
                   {{"begin_norm_axis", std::int64_t{1}}},
                   {{2, 2, 3}, {2, 3}, {2, 3}}});
  given.push_back({"layer_norm_of_everything",
                   "layer_norm",
                   {{"begin_norm_axis", std::int64_t{0}}},
                   {matrix, matrix, matrix}});
  given.push_back({"softmax_cross_entropy", "softmax_cross_entropy", {}, {matrix}, {labels}});
  given.push_back({"softmax_cross_entropy_smoothed",
                   "softmax_cross_entropy",
                   {{"label_smoothing", 0.2}, {"reduction", std::string("none")}},
                   {matrix},
                   {labels}});
  const std::vector<Shape> heads = {{1, 2, 2, 3}, {1, 1, 3, 3}, {1, 1, 3, 2}};
  given.push_back({"attention", "scaled_dot_product_attention", {}, heads});
  given.push_back({"attention_to_the_past",
                   "scaled_dot_product_attention",
                   {{"is_causal", true}, {"keep_prob", 0.6}, {"stream", std::int64_t{5}}},
                   heads});
  given.push_back({"attention_of_rows_before_heads",
                   "scaled_dot_product_attention",
                   {{"rows_first", true}, {"keep_prob", 0.6}},
                   {{1, 2, 2, 3}, {1, 3, 1, 3}, {1, 3, 1, 2}}});
  given.push_back({"attention_with_an_added_mask",
                   "scaled_dot_product_attention",
                   {{"scale", 0.3}},
                   {heads[0], heads[1], heads[2], {2, 3}}});
  return given;
}

INSTANTIATE_TEST_SUITE_P(Rows, SecondDerivative, ::testing::ValuesIn(all()),
                         [](const auto& given) { return given.param.name; });

TEST(SoftmaxCrossEntropy, HasTheHessianOfSoftmax) {
  // -log(softmax) of one sample: its Hessian is diag(p) - p p^T.
  const Tensor logits = numbers({1, 3}, 0.2);
  const Tensor label = Tensor::from<std::int32_t>(std::vector<std::int32_t>{1}, {1});
  const Tensor direction = numbers({1, 3}, 1.1);
  const auto loss = value_and_grad("loss",
                                   [&](std::span<const Value> in) -> Values {
                                     return apply("softmax_cross_entropy", {in[0], label});
                                   },
                                   {.positions = {0}});
  const auto along = value_and_grad("along",
                                    [&](std::span<const Value> in) -> Values {
                                      return apply("reduce_sum", {apply("mul", {(*loss)(in)[1], direction})});
                                    },
                                    {.positions = {0}});
  const auto product = along->call(std::vector{logits}, {}, {});
  ASSERT_TRUE(product) << product.error().message;
  const Tensor p = apply("softmax", {logits}).tensor();
  double mean = 0;
  for (int c = 0; c < 3; ++c) mean += p.data<double>()[c] * direction.data<double>()[c];
  for (int c = 0; c < 3; ++c)
    EXPECT_NEAR((*product)[1].data<double>()[c], p.data<double>()[c] * (direction.data<double>()[c] - mean),
                1e-12);
}

TEST(LayerNorm, LetsTheGradientPassThroughItsStatistics) {
  const Tensor x = numbers({2, 3}, 0.4), gamma = numbers({3}, 1.0), beta = numbers({3}, 2.0);
  const auto statistics =
      value_and_grad("statistics",
                     [&](std::span<const Value> in) -> Values {
                       const Value inputs[] = {in[0], gamma, beta};
                       const Values outputs = apply_all("layer_norm", inputs);
                       return apply("add", {mixed(outputs[1], 0.1), mixed(outputs[2], 0.9)});
                     },
                     {.positions = {0}});
  const auto analytic = statistics->call(std::vector{x}, {}, {});
  ASSERT_TRUE(analytic) << analytic.error().message;
  constexpr double step = 1e-6;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    double& element = x.data<double>()[i];
    const double kept = element;
    const auto at = [&](double value) {
      element = value;
      return *(*statistics->call(std::vector{x}, {}, {}))[0].data<double>();
    };
    const double numeric = (at(kept + step) - at(kept - step)) / (2 * step);
    element = kept;
    EXPECT_NEAR((*analytic)[1].data<double>()[i], numeric, 1e-7 * (1 + std::abs(numeric)));
  }
}

}  // namespace
}  // namespace muster::graph
