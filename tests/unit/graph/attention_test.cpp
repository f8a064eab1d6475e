// Attention as one op beside the ops that it stands for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/graph/plan.h"
#include "muster/tensor/kernels.h"

namespace muster::graph {
namespace {
namespace attention_test {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Tensor numbers(const Shape& shape, double phase) {
  Tensor made(DType::float64, shape);
  for (std::int64_t i = 0; i < made.elements(); ++i)
    made.data<double>()[i] = std::sin(phase + 1.7 * static_cast<double>(i));
  return made;
}

Value number(double value) { return Tensor::from<double>(std::vector{value}, {}); }

// How attention is written: q, k and v, and what else is an input.
struct Written {
  std::string scale = "mul";  // or div, or none
  bool transposes_keys = false;
  bool has_mask = false;
  std::string filling = {};  // by select: "where true" or "where false" of the mask's signs
  double fill = -1e9;
  bool drops = false;
  bool stays_apart = false;  // the weights have another user
};

const Attributes dropout_draw{{"keep_prob", 0.6}, {"stream", std::int64_t{4}}, {"part", std::int64_t{1}}};

Value attention(const Written& how, std::span<const Value> in) {
  Value s =
      how.transposes_keys
          ? apply("batch_matmul",
                  {in[0], apply("transpose", {in[1]}, {{"perm", std::vector<std::int64_t>{0, 1, 3, 2}}})})
          : apply("batch_matmul", {in[0], in[1]}, {{"transpose_b", true}});
  if (how.scale == "mul") s = apply("mul", {s, number(0.4)});
  if (how.scale == "div") s = apply("div", {s, number(2.5)});
  const Value hides = apply("greater", {in[3], number(0.2)});
  if (how.filling == "where true") s = apply("select", {hides, number(how.fill), s});
  if (how.filling == "where false") s = apply("select", {hides, s, number(how.fill)});
  if (how.has_mask) s = apply("add", {s, in[3]});
  Value p = apply("softmax", {s});
  const Value weights = p;
  if (how.drops) p = apply("dropout", {p}, dropout_draw);
  const Value y = apply("batch_matmul", {p, in[2]});
  if (!how.stays_apart) return y;
  return apply("add", {y, apply("mul", {apply("reduce_sum", {weights}), number(0)})});
}

const std::vector<Tensor> inputs = {numbers({2, 2, 4, 3}, 0), numbers({2, 2, 5, 3}, 1),
                                    numbers({2, 2, 5, 2}, 2), numbers({4, 5}, 3)};

Value weighted(const Value& y) { return apply("reduce_sum", {apply("mul", {y, numbers(y.shape(), 0.3)})}); }

std::shared_ptr<Function> gradients(const Written& how) {
  return value_and_grad("attention",
                        [how](std::span<const Value> in) -> Values { return weighted(attention(how, in)); },
                        {.positions = {0, 1, 2}});
}

std::vector<Tensor> run(Function& function, const RunContext& context = {.seed = 11, .step = 7}) {
  const auto made = function.call(inputs, {}, context);
  MUSTER_CHECK(made.has_value(), made.error().message);
  return *made;
}

std::vector<std::string> ops_of(const Function& function) {
  std::vector<std::string> names;
  for (const PlanStep& step : function.explain().steps) names.emplace_back(step.op);
  return names;
}

class WrittenAttention : public ::testing::TestWithParam<Written> {};

TEST_P(WrittenAttention, BecomesOneOpWithTheSameValueAndGradients) {
  Written apart = GetParam();
  apart.stays_apart = true;
  const auto fused = gradients(GetParam()), several = gradients(apart);
  const RunContext context{.seed = 11, .step = 7, .first_sample = 3, .sample_stride = 2};
  const std::vector<Tensor> found = run(*fused, context), expected = run(*several, context);
  EXPECT_THAT(ops_of(*fused), Not(Contains("softmax")));
  EXPECT_THAT(ops_of(*fused), Contains("scaled_dot_product_attention_grad"));
  EXPECT_THAT(ops_of(*several), Contains("softmax"));
  for (std::size_t i = 0; i < found.size(); ++i)
    for (std::int64_t j = 0; j < found[i].elements(); ++j)
      EXPECT_NEAR(found[i].data<double>()[j], expected[i].data<double>()[j], 1e-12) << "result " << i;
}

TEST_P(WrittenAttention, BecomesOneOpWithoutGradients) {
  Function forward("forward", [how = GetParam()](std::span<const Value> in) -> Values {
    return weighted(attention(how, in));
  });
  const Tensor found = run(forward)[0];
  EXPECT_THAT(ops_of(forward), Contains("scaled_dot_product_attention"));
  EXPECT_NEAR(*found.data<double>(), *run(*gradients(GetParam()))[0].data<double>(), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, WrittenAttention,
    ::testing::Values(Written{}, Written{.scale = "none"}, Written{.scale = "div"},
                      Written{.transposes_keys = true}, Written{.has_mask = true}, Written{.drops = true},
                      Written{.filling = "where true"}, Written{.filling = "where false", .drops = true},
                      Written{.filling = "where true", .fill = -0.3, .drops = true},
                      Written{.filling = "where false", .fill = -std::numeric_limits<double>::infinity()},
                      Written{.transposes_keys = true, .has_mask = true, .drops = true}));

// The gradient of the gradient, where a row is hidden whole: its keys count alike, and no product matters.
TEST(Attention, HasTheSecondDerivativesOfItsPartsWhereAMaskFills) {
  const auto twice = [](bool stays_apart) {
    return value_and_grad(
        "twice",
        [=](std::span<const Value> in) -> Values {
          const auto once = gradients({.filling = "where true", .fill = -0.3, .stays_apart = stays_apart});
          const Values first = (*once)(in);
          return apply("add", {weighted(first[1]), apply("add", {weighted(first[2]), weighted(first[3])})});
        },
        {.positions = {0, 1, 2}});
  };
  std::vector<Tensor> given = inputs;
  given[3] = numbers({4, 5}, 3);
  std::fill_n(given[3].data<double>() + 5, 5, 1.0);
  const auto found = twice(false)->call(given, {}, {}), expected = twice(true)->call(given, {}, {});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_TRUE(expected) << expected.error().message;
  for (std::size_t i = 0; i < found->size(); ++i)
    for (std::int64_t j = 0; j < (*found)[i].elements(); ++j)
      EXPECT_NEAR((*found)[i].data<double>()[j], (*expected)[i].data<double>()[j], 1e-12) << "result " << i;
}

TEST(Attention, GivesWhatItsPartsGiveWhereAMaskFillsAWholeRow) {
  std::vector<Tensor> given = inputs;
  given[3] = numbers({4, 5}, 3);
  std::fill_n(given[3].data<double>() + 5, 5, 1.0);
  for (const double fill : {-std::numeric_limits<double>::infinity(), -1e9, -0.3}) {
    const Written fused{.filling = "where true", .fill = fill};
    Written apart = fused;
    apart.stays_apart = true;
    const auto found = gradients(fused)->call(given, {}, {}),
               expected = gradients(apart)->call(given, {}, {});
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_TRUE(expected) << expected.error().message;
    for (std::size_t i = 1; i < found->size(); ++i)  // the sum of weights that holds it apart is no number
      for (std::int64_t j = 0; j < (*found)[i].elements(); ++j) {
        const double one = (*found)[i].data<double>()[j], other = (*expected)[i].data<double>()[j];
        EXPECT_EQ(std::isnan(one), std::isnan(other)) << "result " << i << ", element " << j;
        if (std::isnan(one)) continue;
        EXPECT_NEAR(one, other, 1e-12) << "result " << i << ", element " << j;
      }
  }
}

Value exchanged(const Value& x) {
  return apply("transpose", {x}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
}

// As models write it: heads are made of a projection (samples, rows, heads, depth), and merged again.
TEST_P(WrittenAttention, ReadsAndWritesRowsOfProjectionsWhereHeadsAreExchangedAround) {
  Written apart = GetParam();
  apart.stays_apart = true;
  const auto of = [](const Written& how) {
    return value_and_grad(
        "attention",
        [how](std::span<const Value> in) -> Values {
          const Value heads[] = {exchanged(in[0]), exchanged(in[1]), exchanged(in[2]), in[3]};
          return weighted(exchanged(attention(how, heads)));
        },
        {.positions = {0, 1, 2}});
  };
  // 4 rows of 2 heads, and 5 rows of keys.
  const std::vector<Tensor> given = {numbers({2, 4, 2, 3}, 0), numbers({2, 5, 2, 3}, 1),
                                     numbers({2, 5, 2, 2}, 2), numbers({4, 5}, 3)};
  const RunContext context{.seed = 11, .step = 7, .first_sample = 3, .sample_stride = 2};
  const auto fused = of(GetParam()), several = of(apart);
  const auto found = fused->call(given, {}, context), expected = several->call(given, {}, context);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_TRUE(expected) << expected.error().message;
  EXPECT_THAT(ops_of(*fused), Contains("scaled_dot_product_attention_grad"));
  EXPECT_THAT(ops_of(*fused), Not(Contains("transpose")));
  for (std::size_t i = 0; i < found->size(); ++i)
    for (std::int64_t j = 0; j < (*found)[i].elements(); ++j)
      EXPECT_NEAR((*found)[i].data<double>()[j], (*expected)[i].data<double>()[j], 1e-12) << "result " << i;
}

// ---- As scripts write it otherwise ------------------------------------------------------------------------

// Products of q (and k and v) of these axes before rows and depth, and what softmax is taken of.
struct Otherwise {
  std::string name;
  Shape before;
  std::vector<Shape> masks;
  std::function<Value(const Value& products, std::span<const Value> masks)> scores;
  bool drops = false;
  bool shares_keys = false;  // one head of keys for all heads
};

Value last_two_turned(const Value& x) {
  std::vector<std::int64_t> perm(x.shape().rank());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 2], perm.back());
  return apply("transpose", {x}, {{"perm", perm}});
}

Value times_number(const Value& x, double factor) { return apply("mul", {x, number(factor)}); }
Value hidden(const Value& x, const Value& mask, double fill) {
  return apply("select", {apply("greater", {mask, number(0.2)}), number(fill), x});
}

std::vector<Otherwise> other_ways() {
  const auto scale = [](const Value& s, std::span<const Value>) { return times_number(s, 0.4); };
  const auto fills = [](const Value& s, std::span<const Value> m) {
    return hidden(times_number(s, 0.4), m[0], -1e9);
  };
  const auto adds = [](const Value& s, std::span<const Value> m) {
    return apply("add", {times_number(s, 0.4), m[0]});
  };
  return {
      {"two axes", {}, {}, scale},
      {"two axes with a mask that fills", {}, {{4, 5}}, fills},
      {"one head of many samples", {3}, {}, scale},
      {"one head with dropout", {3}, {}, scale, true},
      {"one head with one mask for all", {3}, {{4, 5}}, fills, true},
      {"one head with a mask for each sample", {3}, {{3, 4, 5}}, adds},
      {"one head with a mask of keys", {3}, {{3, 1, 5}}, fills},
      {"five axes", {2, 3, 2}, {}, scale, true},
      {"five axes with a mask for each head", {2, 3, 2}, {{3, 2, 4, 5}}, adds},
      {"five axes with a mask for each sample", {2, 3, 2}, {{2, 1, 1, 4, 5}}, adds, true},
      {"a head of keys for all", {2, 3}, {}, scale, true, true},
      {"two masks",
       {2, 3},
       {{3, 4, 5}, {2, 1, 1, 5}},
       [](const Value& s, std::span<const Value> m) {
         return apply("add", {apply("add", {m[0], times_number(s, 0.4)}), m[1]});
       }},
      {"a mask that is subtracted",
       {2, 3},
       {{2, 1, 1, 5}},
       [](const Value& s, std::span<const Value> m) {
         return apply("sub", {times_number(s, 0.4), m[0]});
       }},
      {"a mask before the scale",
       {2, 3},
       {{3, 4, 5}},
       [](const Value& s, std::span<const Value> m) {
         return times_number(apply("add", {s, m[0]}), 0.4);
       }},
      {"a mask on each side of the division",
       {3},
       {{4, 5}, {3, 1, 5}},
       [](const Value& s, std::span<const Value> m) {
         const Value inner = apply("sub", {s, m[0]});
         return apply("add", {apply("div", {inner, number(2.5)}), m[1]});
       }},
      {"filling before the scale",
       {2, 3},
       {{4, 5}},
       [](const Value& s, std::span<const Value> m) { return times_number(hidden(s, m[0], -0.7), 0.4); }},
  };
}

std::shared_ptr<Function> gradients(const Otherwise& how, bool stays_apart) {
  return value_and_grad("attention",
                        [how, stays_apart](std::span<const Value> in) -> Values {
                          const char* op = how.before.rank() == 0 ? "matmul" : "batch_matmul";
                          const Value p =
                              apply("softmax",
                                    {how.scores(apply(op, {in[0], last_two_turned(in[1])}), in.subspan(3))});
                          const Value dropped = how.drops ? apply("dropout", {p}, dropout_draw) : p;
                          const Value y = weighted(apply(op, {dropped, in[2]}));
                          if (!stays_apart) return y;
                          return apply("add", {y, apply("mul", {apply("reduce_sum", {p}), number(0)})});
                        },
                        {.positions = {0, 1, 2}});
}

// 4 queries and 5 keys of depth 3, and the masks.
std::vector<Tensor> inputs_of(const Otherwise& how) {
  const auto numbers_of = [&](std::int64_t rows, std::int64_t depth, bool is_shared, double phase) {
    std::vector<std::int64_t> sizes(how.before.begin(), how.before.end());
    if (is_shared) sizes.back() = 1;
    sizes.insert(sizes.end(), {rows, depth});
    return numbers(Shape(sizes), phase);
  };
  std::vector<Tensor> made = {numbers_of(4, 3, false, 0), numbers_of(5, 3, how.shares_keys, 1),
                              numbers_of(5, 2, how.shares_keys, 2)};
  for (const Shape& mask : how.masks) made.push_back(numbers(mask, static_cast<double>(made.size())));
  return made;
}

TEST(Attention, BecomesOneOpHoweverManyAxesItHasAndWhereverItsMasksStand) {
  const RunContext context{.seed = 11, .step = 7, .first_sample = 3, .sample_stride = 2};
  for (const Otherwise& how : other_ways()) {
    const std::vector<Tensor> given = inputs_of(how);
    const auto fused = gradients(how, false), several = gradients(how, true);
    const auto found = fused->call(given, {}, context), expected = several->call(given, {}, context);
    ASSERT_TRUE(found) << how.name << ": " << found.error().message;
    ASSERT_TRUE(expected) << how.name << ": " << expected.error().message;
    EXPECT_THAT(ops_of(*fused), Contains("scaled_dot_product_attention_grad")) << how.name;
    EXPECT_THAT(ops_of(*fused), Not(Contains("softmax"))) << how.name;
    EXPECT_THAT(ops_of(*several), Contains("softmax")) << how.name;
    for (std::size_t i = 0; i < found->size(); ++i)
      for (std::int64_t j = 0; j < (*found)[i].elements(); ++j)
        EXPECT_NEAR((*found)[i].data<double>()[j], (*expected)[i].data<double>()[j], 1e-12)
            << how.name << ", result " << i;
  }
}

// What the one op cannot say: two masks of which one fills, and draws of each row.
TEST(Attention, StaysInPartsWhereOneOpWouldGiveSomethingElse) {
  const auto fills_then_adds = [](const Value& s, std::span<const Value> m) {
    return apply("add", {hidden(s, m[0], -0.3), m[0]});
  };
  const auto adds_then_fills = [](const Value& s, std::span<const Value> m) {
    return hidden(apply("add", {s, m[0]}), m[0], -0.3);
  };
  const auto scale = [](const Value& s, std::span<const Value>) { return times_number(s, 0.4); };
  const auto larger = [](const Value& s, std::span<const Value> m) { return apply("add", {s, m[0]}); };
  const std::vector<Otherwise> ways = {{"fills, then adds", {3}, {{4, 5}}, fills_then_adds},
                                       {"adds, then fills", {3}, {{4, 5}}, adds_then_fills},
                                       {"two axes with dropout", {}, {}, scale, true},
                                       {"a mask of some heads alone", {2, 3, 2}, {{2, 3, 1, 4, 5}}, larger}};
  for (const Otherwise& how : ways) {
    const std::vector<Tensor> given = inputs_of(how);
    const auto function = gradients(how, false);
    ASSERT_TRUE(function->call(given, {}, {})) << how.name;
    EXPECT_THAT(ops_of(*function), Contains("softmax")) << how.name;
  }
}

// Keys that one transpose makes heads of and turns: (samples, heads, depth, keys).
Value attention_by_one_transpose(std::span<const Value> in, bool looks_at_scores) {
  const Value turned = apply("transpose", {in[1]}, {{"perm", std::vector<std::int64_t>{0, 2, 3, 1}}});
  const Value s = apply("mul", {apply("batch_matmul", {exchanged(in[0]), turned}), number(0.4)});
  const Value y = weighted(exchanged(apply("batch_matmul", {apply("softmax", {s}), exchanged(in[2])})));
  if (!looks_at_scores) return y;
  return apply("add", {y, apply("mul", {apply("reduce_sum", {s}), number(0)})});
}

TEST(Attention, BecomesOneOpWhereOneTransposeTurnsTheKeys) {
  const std::vector<Tensor> given = {numbers({2, 4, 2, 3}, 0), numbers({2, 5, 2, 3}, 1),
                                     numbers({2, 5, 2, 2}, 2)};
  const auto of = [](bool looks_at_scores) {
    return value_and_grad(
        "attention",
        [=](std::span<const Value> in) -> Values { return attention_by_one_transpose(in, looks_at_scores); },
        {.positions = {0, 1, 2}});
  };
  const auto fused = of(false), several = of(true);
  const auto found = fused->call(given, {}, {}), expected = several->call(given, {}, {});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_TRUE(expected) << expected.error().message;
  EXPECT_THAT(ops_of(*fused), Contains("scaled_dot_product_attention_grad"));
  EXPECT_THAT(ops_of(*fused), Not(Contains("transpose")));
  EXPECT_THAT(ops_of(*several), Contains("softmax"));
  for (std::size_t i = 0; i < found->size(); ++i)
    for (std::int64_t j = 0; j < (*found)[i].elements(); ++j)
      EXPECT_NEAR((*found)[i].data<double>()[j], (*expected)[i].data<double>()[j], 1e-12) << "result " << i;
}

TEST(Attention, KeepsHeadsFirstWhereTheyAreLookedAt) {
  const auto function =
      value_and_grad("attention",
                     [](std::span<const Value> in) -> Values {
                       const Value heads[] = {exchanged(in[0]), exchanged(in[1]), exchanged(in[2]), in[3]};
                       const Value y = attention({}, heads);
                       return apply("add", {weighted(exchanged(y)), apply("reduce_sum", {y})});
                     },
                     {.positions = {0}});
  const std::vector<Tensor> given = {numbers({2, 4, 2, 3}, 0), numbers({2, 5, 2, 3}, 1),
                                     numbers({2, 5, 2, 2}, 2), numbers({4, 5}, 3)};
  ASSERT_TRUE(function->call(given, {}, {}));
  EXPECT_THAT(ops_of(*function), Contains("transpose"));
  EXPECT_THAT(ops_of(*function), Contains("scaled_dot_product_attention_grad"));
}

TEST(Attention, GivesWhatSoftmaxGivesWhereAnAddedMaskHidesEverything) {
  std::vector<Tensor> given = inputs;
  given[3] = numbers({4, 5}, 3);
  std::fill_n(given[3].data<double>() + 5, 5, -std::numeric_limits<double>::infinity());
  Function forward("forward",
                   [](std::span<const Value> in) -> Values { return attention({.has_mask = true}, in); });
  const auto made = forward.call(given, {}, {});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(ops_of(forward), Not(Contains("softmax")));
  const Tensor& one = (*made)[0];
  for (std::int64_t row = 0; row < 16; ++row)
    for (std::int64_t c = 0; c < 2; ++c)
      EXPECT_EQ(std::isnan(one.data<double>()[row * 2 + c]), row % 4 == 1) << "row " << row;
}

TEST(Attention, BecomesOneOpWhereItsWeightsWereLookedAtInVain) {
  const auto function = value_and_grad(
      "attention",
      [](std::span<const Value> in) -> Values {
        const Value p = apply("softmax", {apply("batch_matmul", {in[0], in[1]}, {{"transpose_b", true}})});
        apply("reduce_mean", {p});
        return weighted(apply("batch_matmul", {p, in[2]}));
      },
      {.positions = {0}});
  run(*function);
  EXPECT_THAT(ops_of(*function), Not(Contains("softmax")));
}

TEST(Attention, BecomesOneOpInMixedPrecision) {
  const auto function = value_and_grad(
      "attention",
      [](std::span<const Value> in) -> Values {
        std::vector<Value> single;
        for (const Value& each : in) single.push_back(apply("cast", {each}, {{"dtype", DType::float32}}));
        const PrecisionScope scope({.rule = Precision::Rule::automatic});
        const Value products = apply("batch_matmul", {single[0], single[1]}, {{"transpose_b", true}});
        const Tensor scale = Tensor::from<float>(std::vector{0.4F}, {}).cast(products.dtype());
        const Value s = apply("mul", {products, Value(scale)});
        return apply("reduce_sum", {apply("batch_matmul", {apply("softmax", {s}), single[2]})});
      },
      {.positions = {0, 1, 2}});
  run(*function);
  EXPECT_THAT(ops_of(*function), Contains("scaled_dot_product_attention_grad"));
  EXPECT_THAT(ops_of(*function), Not(Contains("softmax")));
}

TEST(Attention, OfBfloat16IsComputedInItWithAMaskAndAScaleInFloat32) {
  if (kernels::bfloat16_attention_kernels().empty() || this_processor().slow_bfloat16)
    GTEST_SKIP() << "the processor has no AVX512_BF16, or a slow one";
  const auto function = value_and_grad(
      "attention",
      [](std::span<const Value> in) -> Values {
        std::vector<Value> inputs;
        for (std::size_t i = 0; i < 3; ++i)
          inputs.push_back(apply("cast", {in[i]}, {{"dtype", DType::bfloat16}}));
        const std::int64_t queries = in[0].shape()[2], keys = in[1].shape()[2];
        inputs.push_back(Value(Tensor(DType::float32, Shape{queries, keys})));
        inputs.push_back(Value(Tensor::from<float>(std::vector{0.4F}, {})));
        const Value y = apply("scaled_dot_product_attention", inputs, {{"scale_input", std::string("mul")}});
        return apply("reduce_sum", {apply("cast", {y}, {{"dtype", DType::float32}})});
      },
      {.positions = {0, 1, 2}});
  run(*function);
  const std::string steps = function->plan()->to_string();
  EXPECT_THAT(steps, HasSubstr("scaled_dot_product_attention [fast_bfloat16]"));
  EXPECT_THAT(steps, HasSubstr("scaled_dot_product_attention_grad [fast_bfloat16]"));
}

TEST(Attention, StaysInPartsWhereTheMaskIsLearned) {
  const auto function = value_and_grad(
      "attention",
      [](std::span<const Value> in) -> Values { return weighted(attention({.has_mask = true}, in)); },
      {.positions = {3}});
  run(*function);
  EXPECT_THAT(ops_of(*function), Contains("softmax"));
}

TEST(Attention, StaysInPartsWhereTheScaleIsAnInput) {
  const auto function = value_and_grad(
      "attention",
      [](std::span<const Value> in) -> Values {
        const Value scale = apply("reduce_sum", {in[3]});
        const Value s = apply("batch_matmul", {in[0], in[1]}, {{"transpose_b", true}});
        return weighted(apply("batch_matmul", {apply("softmax", {apply("mul", {s, scale})}), in[2]}));
      },
      {.positions = {0}});
  run(*function);
  EXPECT_THAT(ops_of(*function), Contains("softmax"));
}

TEST(Attention, StaysInPartsWhereAGradientForTheWeightsIsWanted) {
  const auto function = value_and_grad(
      "outer",
      [](std::span<const Value> in) -> Values {
        const auto inner = value_and_grad("inner",
                                          [&](std::span<const Value> weights) -> Values {
                                            return weighted(apply("batch_matmul", {weights[0], in[2]}));
                                          },
                                          {.positions = {0}});
        const Value s = apply("batch_matmul", {in[0], in[1]}, {{"transpose_b", true}});
        const Value p[] = {apply("softmax", {s})};
        return weighted((*inner)(p)[1]);
      },
      {.positions = {2}});
  const std::vector<Tensor> made = run(*function);
  EXPECT_NE(made[1].data<double>()[0], 0);
}

TEST(Attention, DropsOthersInAnotherStep) {
  const auto function = gradients({.drops = true});
  EXPECT_NE(*run(*function, {.seed = 11, .step = 7})[0].data<double>(),
            *run(*function, {.seed = 11, .step = 8})[0].data<double>());
}

}  // namespace attention_test
}  // namespace
}  // namespace muster::graph
