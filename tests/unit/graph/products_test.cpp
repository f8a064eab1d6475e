// Products in a row, in the order that a plan chooses, beside the order that they are written in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/graph/plan.h"

namespace muster::graph {
namespace {
namespace products_test {

using ::testing::Contains;
using ::testing::Not;

Tensor numbers(const Shape& shape, double phase) {
  Tensor made(DType::float64, shape);
  for (std::int64_t i = 0; i < made.elements(); ++i)
    made.data<double>()[i] = std::sin(phase + 1.7 * static_cast<double>(i));
  return made;
}

Value product(const Value& a, const Value& b, bool transpose_a = false, bool transpose_b = false) {
  const char* op = a.shape().rank() == 2 && b.shape().rank() == 2 ? "matmul" : "batch_matmul";
  return apply(op, {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

Value weighted(const Value& y) { return apply("reduce_sum", {apply("mul", {y, numbers(y.shape(), 0.3)})}); }

std::vector<std::string> results_of(const Function& function) {
  std::vector<std::string> types;
  for (const PlanStep& step : function.explain().steps) types.push_back(step.result);
  return types;
}

bool equal_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.bytes(), b.bytes(), a.size_bytes()) == 0;
}

std::vector<Tensor> run(Function& function, const std::vector<Tensor>& inputs) {
  const auto made = function.call(inputs, {}, {});
  MUSTER_CHECK(made.has_value(), made.error().message);
  return *made;
}

// (a b) c, or c (a b): 24 positions of 3 features, so that a product of the first two is 24 by 24 or, where
// the third comes first, 3 by 3. Each factor may lie transposed.
struct Chain {
  bool is_left = true;
  bool turns_product = false;
  std::vector<bool> lies_turned = {false, false, false};
  std::size_t batches = 0;  // leading axes
};

Shape matrix(std::size_t batches, std::int64_t rows, std::int64_t columns) {
  std::vector<std::int64_t> sizes(batches, 2);
  sizes.insert(sizes.end(), {rows, columns});
  return Shape(std::move(sizes));
}

std::vector<Tensor> factors(const Chain& chain) {
  constexpr std::int64_t wide = 24, narrow = 3;
  // Of the square product either side is 24; c has these rows or columns, and 2 of the other.
  const auto of = [&](std::int64_t rows, std::int64_t columns, bool turned, double phase) {
    return numbers(turned ? matrix(chain.batches, columns, rows) : matrix(chain.batches, rows, columns),
                   phase);
  };
  return {of(wide, narrow, chain.lies_turned[0], 0), of(narrow, wide, chain.lies_turned[1], 1),
          chain.is_left ? of(wide, 2, chain.lies_turned[2], 2) : of(2, wide, chain.lies_turned[2], 2)};
}

Value in_a_row(const Chain& chain, std::span<const Value> in, bool stays_apart) {
  const auto& turned = chain.lies_turned;
  const Value ab = product(in[0], in[1], turned[0], turned[1]);
  const Value y = chain.is_left ? product(ab, in[2], chain.turns_product, turned[2])
                                : product(in[2], ab, turned[2], chain.turns_product);
  if (!stays_apart) return y;
  return apply("add", {y, apply("mul", {apply("reduce_sum", {ab}), Tensor::scalar(0.0)})});
}

std::shared_ptr<Function> gradients(const Chain& chain, bool stays_apart) {
  return value_and_grad(
      "chain",
      [=](std::span<const Value> in) -> Values { return weighted(in_a_row(chain, in, stays_apart)); },
      {.positions = {0, 1, 2}});
}

std::vector<Chain> chains() {
  std::vector<Chain> all;
  for (std::size_t batches : {0, 1, 2})
    for (unsigned bits = 0; bits < 32; ++bits)
      all.push_back(
          {(bits & 1) == 0, (bits & 2) != 0, {(bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0}, batches});
  return all;
}

TEST(Products, InTheCheaperOrderHaveTheValuesAndGradientsOfTheWrittenOne) {
  for (const Chain& chain : chains()) {
    const auto cheap = gradients(chain, false), written = gradients(chain, true);
    const auto found = run(*cheap, factors(chain)), expected = run(*written, factors(chain));
    const std::string square = "float64 " + to_string(matrix(chain.batches, 24, 24));
    EXPECT_THAT(results_of(*cheap), Not(Contains(square)));
    EXPECT_THAT(results_of(*written), Contains(square));
    ASSERT_EQ(found.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i)
      for (std::int64_t at = 0; at < found[i].elements(); ++at)
        ASSERT_NEAR(found[i].data<double>()[at], expected[i].data<double>()[at], 1e-11);
  }
}

TEST(Products, OfOneMatrixForAllOthersAreReordered) {
  // x (2, 24, 3) (w (3, 24) v (24, 3)): both weights at once are cheaper than one by one.
  Function chain("chain",
                 [](std::span<const Value> in) -> Values { return product(product(in[0], in[1]), in[2]); });
  const std::vector<Tensor> inputs = {numbers({2, 24, 3}, 0), numbers({3, 24}, 1), numbers({24, 3}, 2)};
  run(chain, inputs);
  EXPECT_THAT(results_of(chain), Not(Contains("float64 (2, 24, 24)")));
  EXPECT_THAT(results_of(chain), Contains("float64 (2, 24, 3)"));
}

TEST(Products, OfThreeMatricesAndAVectorAllTakeTheVector) {
  Function chain("chain", [](std::span<const Value> in) -> Values {
    return product(product(product(in[0], in[1]), in[2]), in[3]);
  });
  const std::vector<Tensor> inputs = {numbers({16, 16}, 0), numbers({16, 16}, 1), numbers({16, 16}, 2),
                                      numbers({16, 1}, 3)};
  run(chain, inputs);
  EXPECT_THAT(results_of(chain), Not(Contains("float64 (16, 16)")));
}

TEST(Products, OfMatricesOfOneSizeKeepTheirOrderAndBits) {
  const auto written = [](std::span<const Value> in) -> Values {
    return product(product(in[0], in[1]), in[2]);
  };
  const std::vector<Tensor> inputs = {numbers({5, 5}, 0), numbers({5, 5}, 1), numbers({5, 5}, 2)};
  Function chain("chain", written);
  const auto found = run(chain, inputs);
  const std::vector<Value> values(inputs.begin(), inputs.end());
  EXPECT_TRUE(equal_bits(found[0], written(values)[0].tensor()));
}

TEST(Products, OfNoElementsKeepTheirOrder) {
  Function chain("chain",
                 [](std::span<const Value> in) -> Values { return product(product(in[0], in[1]), in[2]); });
  const auto found = run(chain, {numbers({0, 3, 2}, 0), numbers({0, 2, 4}, 1), numbers({0, 4, 5}, 2)});
  EXPECT_EQ(found[0].shape(), Shape({0, 3, 5}));
}

TEST(Products, StayInOrderWhereAFactorIsWrittenBetweenThem) {
  const auto weight = std::make_shared<Parameter>("weight", numbers({3, 24}, 1));
  const Tensor first = numbers({3, 24}, 1), second = numbers({3, 24}, 5);
  const auto written = [&](std::span<const Value> in) -> Values {
    const Value ab = product(in[0], weight);
    (void)apply("assign", {weight, second});
    return product(ab, in[1]);
  };
  Function chain("chain", written);
  const std::vector<Tensor> inputs = {numbers({24, 3}, 0), numbers({24, 2}, 2)};
  const auto found = run(chain, inputs);
  const Value expected = product(product(inputs[0], first), inputs[1]);
  EXPECT_TRUE(equal_bits(found[0], expected.tensor()));
}

TEST(Products, ThatAnOutputNeedsAreStillMade) {
  const auto function = value_and_grad("chain",
                                       [](std::span<const Value> in) -> Values {
                                         const Value ab = product(in[0], in[1]);
                                         return {weighted(product(ab, in[2])), ab};
                                       },
                                       {.positions = {0, 1, 2}, .has_aux = true});
  const std::vector<Tensor> inputs = factors({});
  const auto found = run(*function, inputs);
  EXPECT_TRUE(equal_bits(found[1], product(inputs[0], inputs[1]).tensor()));
}

}  // namespace products_test
}  // namespace
}  // namespace muster::graph
