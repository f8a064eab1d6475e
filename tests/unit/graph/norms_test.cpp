// Root mean square normalization and rotary positions that are written op by op, beside the ops that they
// become.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/graph/plan.h"

namespace muster::graph {
namespace {
namespace norms_test {

using ::testing::Contains;
using ::testing::Not;

using Sizes = std::vector<std::int64_t>;

Tensor numbers(const Shape& shape, double phase, DType dtype = DType::float64) {
  Tensor made(dtype, shape);
  for (std::int64_t i = 0; i < made.elements(); ++i) {
    const double each = std::sin(phase + 1.7 * static_cast<double>(i));
    if (dtype == DType::float64)
      made.data<double>()[i] = each;
    else
      made.data<float>()[i] = static_cast<float>(each);
  }
  return made;
}

Value number(double value, DType dtype = DType::float64) {
  return dtype == DType::float64 ? Value(Tensor::from<double>(std::vector{value}, {}))
                                 : Value(Tensor::from<float>(std::vector{static_cast<float>(value)}, {}));
}
Value times(const Value& a, const Value& b) { return apply("mul", {a, b}); }
Value plus(const Value& a, const Value& b) { return apply("add", {a, b}); }
Value in_dtype(const Value& x, DType dtype) { return apply("cast", {x}, {{"dtype", dtype}}); }
Value weighted(const Value& y) {
  return apply("reduce_sum", {times(in_dtype(y, DType::float64), numbers(y.shape(), 0.3))});
}
// y with another user of what stands inside of it, which keeps it in parts.
Value apart(const Value& y, const Value& inside) {
  const Value none = times(in_dtype(apply("reduce_sum", {inside}), DType::float64), number(0));
  return plus(y, in_dtype(none, y.dtype()));
}

std::vector<std::string> ops_of(const Function& function) {
  std::vector<std::string> names;
  for (const PlanStep& step : function.explain().steps) names.emplace_back(step.op);
  return names;
}

bool contains(const std::vector<std::string>& ops, const std::string& op) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

std::vector<Tensor> run(Function& function, const std::vector<Tensor>& inputs) {
  const auto made = function.call(inputs, {}, {});
  MUSTER_CHECK(made.has_value(), made.error().message);
  return *made;
}

std::shared_ptr<Function> gradients(const std::function<Value(std::span<const Value>)>& of,
                                    std::size_t count) {
  std::vector<std::size_t> positions(count);
  for (std::size_t i = 0; i < count; ++i) positions[i] = i;
  return value_and_grad("written", [of](std::span<const Value> in) -> Values { return weighted(of(in)); },
                        {.positions = positions});
}

void expect_near(const std::vector<Tensor>& found, const std::vector<Tensor>& expected, double bound) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    for (std::int64_t j = 0; j < found[i].elements(); ++j)
      ASSERT_NEAR(found[i].data<double>()[j], expected[i].data<double>()[j], bound) << "result " << i;
}

// ---- Normalization ----------------------------------------------------------------------------------------

struct Norm {
  std::string square = "mul";  // or square, or pow
  bool divides = false;        // by a root, instead of a product with rsqrt
  bool gamma_first = false;
  Sizes axes = {-1};
  bool stays_apart = false;
};

Value norm(const Norm& how, const Value& x, const Value& gamma) {
  const Value squares = how.square == "square" ? apply("square", {x})
                        : how.square == "pow"  ? apply("pow", {x, number(2)})
                                               : times(x, x);
  const Value mean = apply("reduce_mean", {squares}, {{"axes", how.axes}, {"keep_dims", true}});
  const Value shifted = plus(mean, number(0.1));
  const Value n =
      how.divides ? apply("div", {x, apply("sqrt", {shifted})}) : times(x, apply("rsqrt", {shifted}));
  const Value y = how.gamma_first ? times(gamma, n) : times(n, gamma);
  return how.stays_apart ? apart(y, n) : y;
}

std::vector<Tensor> norm_inputs(const Norm& how) {
  return {numbers({2, 3, 5}, 0), numbers(how.axes.size() == 1 ? Shape{5} : Shape{3, 5}, 1)};
}

class WrittenNorm : public ::testing::TestWithParam<Norm> {};

TEST_P(WrittenNorm, BecomesOneOpWithTheSameValueAndGradients) {
  Norm parts = GetParam();
  parts.stays_apart = true;
  const auto of = [](const Norm& how) {
    return gradients([how](std::span<const Value> in) { return norm(how, in[0], in[1]); }, 2);
  };
  const auto fused = of(GetParam()), several = of(parts);
  const auto found = run(*fused, norm_inputs(parts)), expected = run(*several, norm_inputs(parts));
  EXPECT_THAT(ops_of(*fused), Contains("rms_norm_grad"));
  EXPECT_THAT(ops_of(*fused), Not(Contains("reduce_mean")));
  EXPECT_THAT(ops_of(*several), Not(Contains("rms_norm")));
  expect_near(found, expected, 1e-12);
}

TEST_P(WrittenNorm, BecomesOneOpWithoutGradientsUnlessItHasAnExponent) {
  Function forward(
      "forward", [how = GetParam()](std::span<const Value> in) -> Values { return norm(how, in[0], in[1]); });
  run(forward, norm_inputs(GetParam()));
  EXPECT_NE(contains(ops_of(forward), "rms_norm"), GetParam().square == "pow");
}

INSTANTIATE_TEST_SUITE_P(Ways, WrittenNorm,
                         ::testing::Values(Norm{}, Norm{.square = "square"}, Norm{.square = "pow"},
                                           Norm{.divides = true},
                                           Norm{.square = "square", .divides = true, .gamma_first = true},
                                           Norm{.axes = {-2, -1}},
                                           Norm{.gamma_first = true, .axes = {1, 2}}));

bool becomes(const std::string& op, const std::function<Value(std::span<const Value>)>& of,
             const std::vector<Tensor>& inputs) {
  Function forward("forward", [of](std::span<const Value> in) -> Values { return of(in); });
  run(forward, inputs);
  return contains(ops_of(forward), op);
}

Value mean_of_squares(const Value& x, const Sizes& axes) {
  return apply("reduce_mean", {times(x, x)}, {{"axes", axes}, {"keep_dims", true}});
}

TEST(Norms, WhatOnlyLooksLikeOneStaysAsItIs) {
  const auto is_norm = [](const std::function<Value(std::span<const Value>)>& of) {
    return becomes("rms_norm", of, {numbers({2, 5, 5}, 0), numbers({5}, 1), numbers({2, 5, 5}, 2)});
  };
  const auto scaled = [](const Value& x, const Value& mean, const Value& gamma) {
    return times(times(x, apply("rsqrt", {plus(mean, number(0.1))})), gamma);
  };
  EXPECT_TRUE(is_norm([&](auto in) { return scaled(in[0], mean_of_squares(in[0], {-1}), in[1]); }));
  EXPECT_FALSE(is_norm([&](auto in) { return scaled(in[0], mean_of_squares(in[0], {1}), in[1]); }))
      << "a mean over columns";
  EXPECT_FALSE(is_norm([&](auto in) { return scaled(in[0], mean_of_squares(in[2], {-1}), in[1]); }))
      << "of other squares";
  EXPECT_FALSE(is_norm([&](auto in) { return scaled(in[0], mean_of_squares(in[0], {-1}), in[2]); }))
      << "gamma of each element";
  EXPECT_FALSE(is_norm([&](auto in) {
    const Value epsilon = apply("reduce_max", {in[2]}, {{"axes", Sizes{0, 1, 2}}});
    return times(times(in[0], apply("rsqrt", {plus(mean_of_squares(in[0], {-1}), epsilon)})), in[1]);
  })) << "an epsilon that is computed";
}

TEST(Norms, OfAPowerThatOthersHoldStayAsTheyAre) {
  const Tensor two = Tensor::scalar(2.0);
  const auto fused = gradients(
      [&](std::span<const Value> in) {
        const Value mean =
            apply("reduce_mean", {apply("pow", {in[0], two})}, {{"axes", Sizes{-1}}, {"keep_dims", true}});
        return times(times(in[0], apply("rsqrt", {plus(mean, number(0.1))})), in[1]);
      },
      2);
  run(*fused, norm_inputs({}));
  EXPECT_THAT(ops_of(*fused), Not(Contains("rms_norm")));
}

// As scripts of large language models have it: the statistics of bfloat16 in float32.
TEST(Norms, OfBfloat16ComputedInFloat32AreTheOpOfBfloat16) {
  const auto written = [](bool stays_apart) {
    return [=](std::span<const Value> in) {
      const Value narrow = in_dtype(in[0], DType::bfloat16), wide = in_dtype(narrow, DType::float32);
      const Value mean = mean_of_squares(wide, {-1});
      const Value n = times(wide, apply("rsqrt", {plus(mean, number(0.1, DType::float32))}));
      const Value y = times(in_dtype(in[1], DType::bfloat16), in_dtype(n, DType::bfloat16));
      return stays_apart ? apart(y, n) : y;
    };
  };
  const std::vector<Tensor> inputs = {numbers({4, 64}, 0, DType::float32), numbers({64}, 1, DType::float32)};
  const auto fused = gradients(written(false), 2), several = gradients(written(true), 2);
  const auto found = run(*fused, inputs), expected = run(*several, inputs);
  EXPECT_THAT(ops_of(*fused), Contains("rms_norm_grad"));
  EXPECT_THAT(ops_of(*several), Not(Contains("rms_norm_grad")));
  for (const std::size_t i : {1, 2})
    for (std::int64_t j = 0; j < found[i].elements(); ++j)
      ASSERT_NEAR(found[i].data<float>()[j], expected[i].data<float>()[j], 0.03) << "gradient " << i;
}

// ---- Rotary positions -------------------------------------------------------------------------------------

struct Rotary {
  Shape x = {2, 3, 4, 6};
  Shape table = {4, 6};
  bool splits = false;  // halves by split, not by slices
  bool exchanges_heads = false;
  bool stays_apart = false;
};

Value half(const Value& x, std::int64_t which) {
  Sizes begin(x.shape().rank(), 0), size = x.shape().sizes();
  size.back() /= 2;
  begin.back() = which * size.back();
  return apply("slice", {x}, {{"begin", begin}, {"size", size}});
}

Value rotary(const Rotary& how, const Value& given, const Value& cos, const Value& sin) {
  const Value x = how.exchanges_heads ? apply("transpose", {given}, {{"perm", Sizes{0, 2, 1, 3}}}) : given;
  const std::int64_t size = x.shape().sizes().back() / 2;
  const std::vector<Value> halves =
      how.splits
          ? apply_all("split", std::vector{x}, {{"axis", std::int64_t{-1}}, {"sizes", Sizes{size, size}}})
          : std::vector{half(x, 0), half(x, 1)};
  const Value turned = apply("concat", {apply("neg", {halves[1]}), halves[0]}, {{"axis", std::int64_t{-1}}});
  const Value y = plus(times(x, cos), times(turned, sin));
  return how.stays_apart ? apart(y, turned) : y;
}

class WrittenRotary : public ::testing::TestWithParam<Rotary> {};

TEST_P(WrittenRotary, BecomesOneOpWithTheSameBitsAndGradients) {
  Rotary parts = GetParam();
  parts.stays_apart = true;
  const auto of = [](const Rotary& how) {
    return gradients([how](std::span<const Value> in) { return rotary(how, in[0], in[1], in[2]); }, 3);
  };
  const std::vector<Tensor> inputs = {numbers(parts.x, 0), numbers(parts.table, 1), numbers(parts.table, 2)};
  const auto fused = of(GetParam()), several = of(parts);
  const auto found = run(*fused, inputs), expected = run(*several, inputs);
  EXPECT_THAT(ops_of(*fused), Contains("rotary"));
  EXPECT_THAT(ops_of(*fused), Not(Contains("concat")));
  EXPECT_THAT(ops_of(*several), Not(Contains("rotary")));
  EXPECT_EQ(0, std::memcmp(found[0].bytes(), expected[0].bytes(), sizeof(double)));
  EXPECT_EQ(0, std::memcmp(found[1].bytes(), expected[1].bytes(), found[1].size_bytes()));
  expect_near(found, expected, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, WrittenRotary,
    ::testing::Values(Rotary{}, Rotary{.splits = true}, Rotary{.table = {2, 1, 4, 6}},
                      Rotary{.table = {1, 6}}, Rotary{.x = {2, 4, 3, 6}, .table = {4, 1, 6}},
                      Rotary{.x = {4, 6}}, Rotary{.x = {2, 4, 3, 6}, .exchanges_heads = true},
                      Rotary{.x = {2, 4, 3, 6}, .table = {2, 1, 4, 6}, .exchanges_heads = true},
                      Rotary{.x = {2, 4, 3, 6}, .table = {3, 4, 6}, .exchanges_heads = true}));

TEST(Rotary, WhatOnlyLooksLikeItStaysAsItIs) {
  const std::vector<Tensor> inputs = {numbers({4, 6}, 0), numbers({4, 6}, 1), numbers({4, 6}, 2)};
  const auto is_rotary = [&](const Value& (*plain)(std::span<const Value>), std::int64_t first,
                             std::int64_t second) {
    return becomes(
        "rotary",
        [=](std::span<const Value> in) {
          const Value turned = apply("concat", {apply("neg", {half(in[0], first)}), half(in[0], second)},
                                     {{"axis", std::int64_t{-1}}});
          return plus(times(plain(in), in[1]), times(turned, in[2]));
        },
        inputs);
  };
  const auto x = [](std::span<const Value> in) -> const Value& { return in[0]; };
  const auto other = [](std::span<const Value> in) -> const Value& { return in[1]; };
  EXPECT_TRUE(is_rotary(x, 1, 0));
  EXPECT_FALSE(is_rotary(x, 0, 1)) << "halves that stay where they are";
  EXPECT_FALSE(is_rotary(x, 1, 1)) << "one half twice";
  EXPECT_FALSE(is_rotary(other, 1, 0)) << "turned is another tensor";
}

TEST(Rotary, InFrontOfAttentionLeavesHeadsWhereTheyAre) {
  Function forward("forward", [](std::span<const Value> in) -> Values {
    const Rotary how{.exchanges_heads = true};
    const Value v = apply("transpose", {in[0]}, {{"perm", Sizes{0, 2, 1, 3}}});
    const Value q = rotary(how, in[0], in[1], in[2]), k = rotary(how, in[0], in[1], in[2]);
    const Value p = apply("softmax", {apply("batch_matmul", {q, k}, {{"transpose_b", true}})});
    return apply("transpose", {apply("batch_matmul", {p, v})}, {{"perm", Sizes{0, 2, 1, 3}}});
  });
  run(forward, {numbers({2, 4, 3, 6}, 0), numbers({4, 6}, 1), numbers({4, 6}, 2)});
  EXPECT_THAT(ops_of(forward), Contains("rotary"));
  EXPECT_THAT(ops_of(forward), Not(Contains("transpose")));
}

// ---- Both, on drawn shapes --------------------------------------------------------------------------------

// The gradients of a sum of gradients.
std::vector<Tensor> second_derivatives(const std::function<Value(std::span<const Value>)>& of,
                                       const std::vector<Tensor>& inputs) {
  const auto twice = gradients(
      [&](std::span<const Value> in) {
        const Values first = (*gradients(of, inputs.size()))(in);
        Value sum = weighted(first[1]);
        for (std::size_t i = 2; i < first.size(); ++i) sum = plus(sum, weighted(first[i]));
        return sum;
      },
      inputs.size());
  return run(*twice, inputs);
}

class Drawn : public ::testing::TestWithParam<unsigned> {
 protected:
  std::int64_t size(std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random_);
  }
  bool coin() { return size(2) == 1; }
  Sizes sizes(std::size_t rank, std::int64_t most) {
    Sizes made(rank);
    for (std::int64_t& each : made) each = size(most);
    return made;
  }

  std::mt19937 random_{GetParam()};
};

TEST_P(Drawn, NormsHaveTheDerivativesOfTheirParts) {
  Sizes x = sizes(static_cast<std::size_t>(size(3)), 5), gamma = sizes(static_cast<std::size_t>(size(2)), 37);
  x.insert(x.end(), gamma.begin(), gamma.end());
  Norm how{.square = coin() ? "mul" : "square", .divides = coin(), .gamma_first = coin(), .axes = {}};
  for (std::size_t i = gamma.size(); i > 0; --i) how.axes.push_back(-static_cast<std::int64_t>(i));
  const auto of = [](const Norm& each) {
    return [each](std::span<const Value> in) { return norm(each, in[0], in[1]); };
  };
  Norm parts = how;
  parts.stays_apart = true;
  const std::vector<Tensor> inputs = {numbers(Shape(x), GetParam()), numbers(Shape(gamma), 1)};
  expect_near(run(*gradients(of(how), 2), inputs), run(*gradients(of(parts), 2), inputs), 1e-10);
  expect_near(second_derivatives(of(how), inputs), second_derivatives(of(parts), inputs), 1e-9);
}

TEST_P(Drawn, RotaryPositionsHaveTheDerivativesOfTheirParts) {
  Sizes x = sizes(3, 4), table;
  x.push_back(2 * size(19));
  for (std::size_t i = static_cast<std::size_t>(size(3)); i < 3; ++i) table.push_back(coin() ? 1 : x[i]);
  table.push_back(x.back());
  Rotary how{.x = Shape(x), .table = Shape(table), .splits = coin()};
  const auto of = [](const Rotary& each) {
    return [each](std::span<const Value> in) { return rotary(each, in[0], in[1], in[2]); };
  };
  Rotary parts = how;
  parts.stays_apart = true;
  const std::vector<Tensor> inputs = {numbers(how.x, GetParam()), numbers(how.table, 1),
                                      numbers(how.table, 2)};
  expect_near(run(*gradients(of(how), 3), inputs), run(*gradients(of(parts), 3), inputs), 1e-11);
  expect_near(second_derivatives(of(how), inputs), second_derivatives(of(parts), inputs), 1e-10);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Drawn, ::testing::Range(0U, 30U));

}  // namespace norms_test
}  // namespace
}  // namespace muster::graph
