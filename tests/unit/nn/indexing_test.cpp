#include "muster/nn/indexing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "muster/nn/nn.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::nn {
namespace {

using graph::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor counted(const Shape& shape) {
  Tensor made(DType::float32, shape);
  std::iota(made.span<float>().begin(), made.span<float>().end(), 0.0F);
  return made;
}

Tensor integers(std::vector<std::int64_t> values) {
  return Tensor::from<std::int64_t>(values, {static_cast<std::int64_t>(values.size())});
}

Value at(const Value& x, const std::vector<Index>& indices) { return index(x, indices); }

std::vector<float> elements(const Value& value) {
  return {value.tensor().span<float>().begin(), value.tensor().span<float>().end()};
}

TEST(Indexing, WholeNumbersAndSlicesOfConcreteTensorsAreViewsWhereTheyCan) {
  const Tensor x = counted({3, 4});
  EXPECT_EQ(at(x, {std::int64_t{1}}).tensor().buffer(), x.buffer());
  EXPECT_THAT(elements(at(x, {std::int64_t{-1}, Slice{1, 3}})), ElementsAre(9, 10));
  EXPECT_EQ(at(x, {Slice{1, {}}}).tensor().buffer(), x.buffer());
  EXPECT_NE(at(x, {Slice{}, std::int64_t{1}}).tensor().buffer(), x.buffer());
  EXPECT_THAT(elements(at(x, {Slice{}, std::int64_t{1}})), ElementsAre(1, 5, 9));
  EXPECT_THAT(elements(at(x, {Slice{{}, {}, -2}, std::int64_t{0}})), ElementsAre(8, 0));
  EXPECT_EQ(at(x, {NewAxis{}, Ellipsis{}, NewAxis{}}).shape(), (Shape{1, 3, 4, 1}));
  EXPECT_EQ(at(x, {Slice{5, 2}}).shape(), (Shape{0, 4}));
}

TEST(Indexing, IntegerTensorsTakeThePlaceOfTheirAxes) {
  const Tensor x = counted({3, 4});
  EXPECT_THAT(elements(at(x, {integers({2, 0}), std::int64_t{1}})), ElementsAre(9, 1));
  EXPECT_THAT(elements(at(x, {integers({2, 0}), integers({-1, 1})})), ElementsAre(11, 1));
  EXPECT_EQ(at(counted({2, 3, 4}), {integers({0}), Slice{}, integers({0, 1})}).shape(), (Shape{2, 3}));
  const std::vector<Index> apart{Slice{}, integers({0}), Slice{}, integers({0, 1})};
  EXPECT_EQ(at(counted({6, 3, 4, 5}), apart).shape(), (Shape{2, 6, 4}));
  EXPECT_EQ(at(counted({2, 3, 4}), {Slice{}, integers({0, 1, 2}), integers({0})}).shape(), (Shape{2, 3}));
}

TEST(Indexing, MasksStandForThePlacesWhereTheyAreTrue) {
  const bool row[] = {true, false, true};
  const Tensor mask = Tensor::from<bool>(row, {3});
  EXPECT_THAT(elements(at(counted({3}), {mask})), ElementsAre(0, 2));
  EXPECT_THAT(elements(at(counted({3, 2}), {mask, std::int64_t{1}})), ElementsAre(1, 5));
  const Tensor all = counted({2, 2});
  const bool diagonal[] = {true, false, false, true};
  EXPECT_THAT(elements(at(all, {Tensor::from<bool>(diagonal, {2, 2})})), ElementsAre(0, 3));
}

TEST(Indexing, ErrorsNameTheAxisTheIndexAndTheSize) {
  const Tensor x = counted({3, 4});
  EXPECT_THAT(ERROR_OF(at(x, {Slice{}, std::int64_t{4}})),
              Mentions("index 4", "range", "axis 1", "(3, 4)", "has 4"));
  EXPECT_THAT(ERROR_OF(at(x, {Slice{}, integers({0, -5})})),
              Mentions("-5", "number 1", "range", "axis 1", "has 4"));
  EXPECT_THAT(ERROR_OF(at(x, {std::int64_t{0}, integers({9})})),
              Mentions("index 9", "number 0", "range", "axis 1", "has 4"));
  EXPECT_THAT(ERROR_OF(at(x, {Slice{}, Slice{}, Slice{}})), Mentions("3 indices", "tensor", "2 axes"));
  EXPECT_THAT(ERROR_OF(at(x, {Ellipsis{}, Ellipsis{}})), HasSubstr("one ellipsis"));
  EXPECT_THAT(ERROR_OF(at(x, {Slice{{}, {}, 0}})), Mentions("slice", "axis 0"));
  EXPECT_THAT(ERROR_OF(at(x, {Value(counted({2}))})), Mentions("integers", "float32"));
  EXPECT_THAT(ERROR_OF(at(x, {integers({0, 1}), integers({0, 1, 2})})),
              HasSubstr("(2,) and (3,) do not fit"));
  const bool four[] = {true, true, true, true};
  EXPECT_THAT(ERROR_OF(at(x, {Tensor::from<bool>(four, {4})})),
              Mentions("mask", "(4,)", "axis 0", "(3, 4)", "has 3"));
}

TEST(Indexing, WorksInAGraphWithGradient) {
  const auto function =
      graph::value_and_grad("f",
                            [](std::span<const Value> inputs) -> Values {
                              const Value part = at(inputs[0], {Slice{{}, {}, -1}, inputs[1]});
                              return ops::reduce_sum(ops::mul(part, part));
                            },
                            {.parameters = {}, .positions = {0}});
  const std::vector<Tensor> inputs{counted({2, 3}), integers({1, 1})};
  const auto result = function->call(inputs, {}, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(elements((*result)[1]), ElementsAre(0, 4, 0, 0, 16, 0));
}

// Views of concrete tensors would hide from a tape.
TEST(Indexing, WorksOpByOpWithGradient) {
  const auto function = graph::value_and_grad("f",
                                              [](std::span<const Value> inputs) -> Values {
                                                const Value row = at(inputs[0], {std::int64_t{1}});
                                                return ops::reduce_sum(ops::mul(row, row));
                                              },
                                              {.parameters = {}, .positions = {0}});
  const std::vector<Value> inputs{counted({2, 2})};
  graph::set_eager(true);
  const Values result = (*function)(inputs);
  graph::set_eager(false);
  ASSERT_EQ(result.size(), 2u);
  EXPECT_THAT(elements(result[1]), ElementsAre(0, 0, 4, 6));
}

TEST(Indexing, AMaskThatIsComputedInTheGraphIsAnErrorThatShowsTheWayOut) {
  graph::Function function("f", [](std::span<const Value> inputs) -> graph::Values {
    return at(inputs[0], {ops::equal(inputs[0], inputs[0])});
  });
  const std::vector<Tensor> inputs{counted({2})};
  const auto failed = function.call(inputs, {}, {});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("use ops.select"));
}

}  // namespace
}  // namespace muster::nn
