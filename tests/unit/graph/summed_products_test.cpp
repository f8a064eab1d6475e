// Sums of products of a few rows, which a plan makes one product of many rows, beside the sums themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/graph/plan.h"

namespace muster::graph {
namespace {
namespace summed_products_test {

Tensor numbers(std::int64_t rows, std::int64_t columns, double phase) {
  Tensor made(DType::float64, {rows, columns});
  for (std::int64_t i = 0; i < made.elements(); ++i)
    made.data<double>()[i] = std::sin(phase + 1.7 * static_cast<double>(i));
  return made;
}

// a and b of each step, one behind the other.
struct Steps {
  std::vector<std::int64_t> rows;
  std::int64_t width_a = 64;
  std::int64_t width_b = 65;

  std::vector<Tensor> operands() const {
    std::vector<Tensor> made;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      made.push_back(numbers(rows[i], width_a, static_cast<double>(i)));
      made.push_back(numbers(rows[i], width_b, 0.5 + static_cast<double>(i)));
    }
    return made;
  }
};

Value product(const Value& a, const Value& b) { return apply("matmul", {a, b}, {{"transpose_a", true}}); }

Value sum_of(std::span<const Value> operands) {
  Value sum = product(operands[0], operands[1]);
  for (std::size_t i = 2; i < operands.size(); i += 2)
    sum = apply("add", {sum, product(operands[i], operands[i + 1])});
  return sum;
}

std::vector<double> expected(const Steps& steps) {
  std::vector<double> sum(static_cast<std::size_t>(steps.width_a * steps.width_b), 0);
  const auto operands = steps.operands();
  for (std::size_t s = 0; s < steps.rows.size(); ++s)
    for (std::int64_t row = 0; row < steps.rows[s]; ++row)
      for (std::int64_t i = 0; i < steps.width_a; ++i)
        for (std::int64_t j = 0; j < steps.width_b; ++j)
          sum[static_cast<std::size_t>(i * steps.width_b + j)] +=
              operands[2 * s].data<double>()[row * steps.width_a + i] *
              operands[2 * s + 1].data<double>()[row * steps.width_b + j];
  return sum;
}

// How many products there are in the plan of the sum, which is checked.
std::ptrdiff_t products_in_plan(const Steps& steps,
                                const std::function<Values(std::span<const Value>)>& body) {
  const auto function = std::make_shared<Function>("sum", body);
  const auto made = function->call(steps.operands(), {}, {});
  MUSTER_CHECK(made.has_value(), made.error().message);
  const auto wanted = expected(steps);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR((*made)[0].data<double>()[i], wanted[i], 1e-10) << "element " << i;
  const auto plan = function->explain();
  return std::ranges::count(plan.steps, "matmul", &PlanStep::op);
}

Values sums(std::span<const Value> in) { return {sum_of(in)}; }

TEST(SummedProducts, AreOneProductForAboutAThousandRows) {
  EXPECT_EQ(products_in_plan({.rows = {2, 2, 2, 2}}, sums), 1);
  EXPECT_EQ(products_in_plan({.rows = {1, 7, 3, 16, 30}}, sums), 1);
  EXPECT_EQ(products_in_plan({.rows = std::vector<std::int64_t>(70, 31)}, sums), 3);  // 34, 34 and 2 steps
  EXPECT_EQ(products_in_plan({.rows = std::vector<std::int64_t>(69, 31)}, sums), 3);  // the last one alone
}

TEST(SummedProducts, StayAloneWhereJoiningGainsNothing) {
  EXPECT_EQ(products_in_plan({.rows = {2, 2, 2}}, sums), 3);
  EXPECT_EQ(products_in_plan({.rows = {64, 64, 64, 64}}, sums), 4);  // as much to copy as to add
}

TEST(SummedProducts, StayAloneWhereSomethingElseNeedsThem) {
  const auto body = [](std::span<const Value> in) -> Values {
    const Value first = product(in[0], in[1]);
    Value sum = first;
    for (std::size_t i = 2; i < in.size(); i += 2) sum = apply("add", {sum, product(in[i], in[i + 1])});
    return {sum, apply("exp", {first})};
  };
  EXPECT_EQ(products_in_plan({.rows = {2, 2, 2, 2}}, body), 4);
  EXPECT_EQ(products_in_plan({.rows = {2, 2, 2, 2, 2}}, body), 2);  // the first one, and the four others
}

// As a penalty on the weight itself makes it.
TEST(SummedProducts, AreJoinedBesideOtherValuesOfTheSum) {
  const auto body = [](std::span<const Value> in) -> Values {
    const Value other = apply("mul", {product(in[0], in[1]), Tensor::scalar(0.5)});
    return {apply("add", {apply("add", {other, sum_of(in.subspan(2))}), other})};
  };
  EXPECT_EQ(products_in_plan({.rows = {3, 2, 2, 2, 2}}, body), 2);
}

// A sum within a sum, whichever side it stands on.
TEST(SummedProducts, AreFoundInAnyOrderOfAdding) {
  const Steps steps{.rows = {3, 1, 4, 1, 5, 9}};
  EXPECT_EQ(products_in_plan(steps,
                             [](std::span<const Value> in) -> Values {
                               const Value left = sum_of(in.subspan(0, 4)), right = sum_of(in.subspan(4));
                               return {apply("add", {right, left})};
                             }),
            1);
}

}  // namespace summed_products_test
}  // namespace
}  // namespace muster::graph
