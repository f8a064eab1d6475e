// Attention as one op beside the ops that it stands for.
#include <gtest/gtest.h>

#include <cmath>

#include "muster/graph/graph.h"

namespace muster::graph {
namespace {
namespace attention_test {

Tensor numbers(const Shape& shape, double phase) {
  Tensor made(DType::float64, shape);
  for (std::int64_t i = 0; i < made.elements(); ++i)
    made.data<double>()[i] = std::sin(phase + 1.7 * static_cast<double>(i));
  return made;
}

constexpr double keep_prob = 0.6;

Values fused(std::span<const Value> in) {
  return apply("scaled_dot_product_attention", in,
               {{"keep_prob", keep_prob}, {"stream", std::int64_t{4}}, {"part", std::int64_t{1}}});
}

Values unfused(std::span<const Value> in) {
  const Value products = apply("batch_matmul", {in[0], in[1]}, {{"transpose_b", true}});
  const Value scaled =
      apply("mul", {products, Value(Tensor::from<double>(std::vector{1 / std::sqrt(3.0)}, {}))});
  const Value kept =
      apply("dropout", {apply("softmax", {scaled})},
            {{"keep_prob", keep_prob}, {"stream", std::int64_t{4}}, {"part", std::int64_t{1}}});
  return apply("batch_matmul", {kept, in[2]});
}

// The result weighted by numbers, and the gradients of that.
std::vector<Tensor> value_and_gradients(Values (*attention)(std::span<const Value>),
                                        const RunContext& context) {
  const std::vector<Tensor> inputs = {numbers({2, 2, 4, 3}, 0), numbers({2, 2, 5, 3}, 1),
                                      numbers({2, 2, 5, 2}, 2)};
  const auto function =
      value_and_grad("attention",
                     [attention](std::span<const Value> in) -> Values {
                       const Value y = attention(in)[0];
                       return apply("reduce_sum", {apply("mul", {y, numbers(y.shape(), 0.3)})});
                     },
                     {.positions = {0, 1, 2}});
  const auto made = function->call(inputs, {}, context);
  MUSTER_CHECK(made.has_value(), made.error().message);
  return *made;
}

TEST(Attention, DropsWhatDropoutBetweenSoftmaxAndValuesWould) {
  const RunContext context{.seed = 11, .step = 7, .first_sample = 3, .sample_stride = 2};
  const std::vector<Tensor> one = value_and_gradients(fused, context);
  const std::vector<Tensor> several = value_and_gradients(unfused, context);
  ASSERT_EQ(one.size(), several.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    for (std::int64_t j = 0; j < one[i].elements(); ++j)
      EXPECT_NEAR(one[i].data<double>()[j], several[i].data<double>()[j], 1e-12) << "result " << i;
}

TEST(Attention, DropsOthersInAnotherStep) {
  const Tensor one = value_and_gradients(fused, {.seed = 11, .step = 7})[0];
  const Tensor other = value_and_gradients(fused, {.seed = 11, .step = 8})[0];
  EXPECT_NE(*one.data<double>(), *other.data<double>());
}

}  // namespace attention_test
}  // namespace
}  // namespace muster::graph
