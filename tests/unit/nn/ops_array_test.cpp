#include "muster/nn/ops_array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "muster/nn/nn.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::nn::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 0, 1, 2, ... in `shape`.
Tensor counted(const Shape& shape) {
  Tensor made(DType::float32, shape);
  for (std::int64_t i = 0; i < made.elements(); ++i) made.data<float>()[i] = static_cast<float>(i);
  return made;
}

std::vector<float> elements(const Value& value) {
  const Tensor tensor = value.tensor();
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

TEST(ArrayOps, MakeTensorsOfAnyDtype) {
  EXPECT_THAT(elements(full({2}, 0.5)), ElementsAre(0.5, 0.5));
  EXPECT_EQ(ones({2, 3}, DType::int32).type(), (graph::TensorType{DType::int32, {2, 3}}));
  EXPECT_EQ(zeros_like(counted({2}), DType::int64).dtype(), DType::int64);
  EXPECT_THAT(elements(arange({0, 1, 0.25}, DType::float32)), ElementsAre(0, 0.25, 0.5, 0.75));
  EXPECT_EQ(arange({5, 0, -2}).shape(), Shape{3});
  EXPECT_EQ(arange({5, 0, 2}).shape(), Shape{0});
  EXPECT_THAT(ERROR_OF(arange({0, 1, 0})), HasSubstr("in steps of 0"));
}

TEST(ArrayOps, AddAndTakeAwayAxesOfSizeOne) {
  EXPECT_EQ(squeeze(counted({1, 2, 1})).shape(), Shape{2});
  EXPECT_EQ(squeeze(counted({1, 2, 1}), Sizes{-1}).shape(), (Shape{1, 2}));
  EXPECT_THAT(ERROR_OF(squeeze(counted({1, 2}), Sizes{1})), HasSubstr("axis 1 of (1, 2) has 2 elements"));
  EXPECT_THAT(ERROR_OF(squeeze(counted({1}), Sizes{1})), HasSubstr("(1,) has no axis 1"));
  EXPECT_EQ(expand_dims(counted({2}), -1).shape(), (Shape{2, 1}));
  EXPECT_THAT(ERROR_OF(expand_dims(counted({2}), 2)), Mentions("place", "axis 2"));
  EXPECT_EQ(flatten(counted({2, 3, 4}), 1, -1).shape(), (Shape{2, 12}));
  EXPECT_EQ(flatten(counted({}), 0, -1).shape(), Shape{1});
  EXPECT_THAT(ERROR_OF(flatten(counted({2, 3}), 1, 0)), HasSubstr("lies behind"));
}

TEST(ArrayOps, MoveElements) {
  EXPECT_THAT(elements(transpose(counted({2, 2}))), ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(transpose(counted({2, 3, 4}), Sizes{-1, 0, 1}).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(swapaxes(counted({2, 3, 4}), 0, -1).shape(), (Shape{4, 3, 2}));
  EXPECT_THAT(elements(flip(counted({2, 2}), {1})), ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(elements(broadcast_to(counted({2, 1}), {2, 2, -1})), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(ERROR_OF(broadcast_to(counted({2}), {-1, 2})), HasSubstr("negative size"));
  EXPECT_THAT(elements(tile(counted({2}), {2, 2})), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(elements(tile(counted({2, 1}), {2})), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(elements(slice(counted({2, 3}), {0, 1}, {-1, 1})), ElementsAre(1, 4));
}

TEST(ArrayOps, PadWithAValueOrWithTheElementsThemselves) {
  const Tensor x = counted({3});
  EXPECT_THAT(elements(pad(x, {{1, 2}}, PadMode::constant, 9)), ElementsAre(9, 0, 1, 2, 9, 9));
  EXPECT_THAT(elements(pad(x, {{-1, 1}})), ElementsAre(1, 2, 0));
  EXPECT_THAT(elements(pad(x, {{2, 1}}, PadMode::reflect)), ElementsAre(2, 1, 0, 1, 2, 1));
  EXPECT_THAT(elements(pad(x, {{2, 1}}, PadMode::symmetric)), ElementsAre(1, 0, 0, 1, 2, 2));
  EXPECT_THAT(elements(pad(x, {{2, 1}}, PadMode::replicate)), ElementsAre(0, 0, 0, 1, 2, 2));
  EXPECT_THAT(elements(pad(x, {{2, 1}}, PadMode::circular)), ElementsAre(1, 2, 0, 1, 2, 0));
  EXPECT_THAT(ERROR_OF(pad(x, {{3, 0}}, PadMode::reflect)), Mentions("padded", "by 3", "and 0"));
  EXPECT_THAT(ERROR_OF(pad(x, {{1, 1}, {1, 1}})), HasSubstr("paddings for 2 were given"));
}

TEST(ArrayOps, JoinAndCut) {
  const std::vector<Value> both{counted({2}), counted({2})};
  EXPECT_THAT(elements(stack(both, -1)), ElementsAre(0, 0, 1, 1));
  const std::vector<Value> uneven{counted({2}), counted({3})};
  EXPECT_THAT(ERROR_OF(stack(uneven)), HasSubstr("(2,) and (3,) differ in shape"));
  EXPECT_THAT(ERROR_OF(concat({})), HasSubstr("no tensors"));
  const Values parts = split_by(counted({5}), 2);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_THAT(elements(parts[2]), ElementsAre(4));
  const Values rows = unstack(counted({2, 2}), 1);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(elements(rows[1]), ElementsAre(1, 3));
  EXPECT_THAT(ERROR_OF(split_by(counted({5}), 0)[0]), HasSubstr("parts of 0 elements"));
}

TEST(ArrayOps, FindTheGreatestAlongAnyAxis) {
  const Topk found = topk(counted({3, 2}), 2, {.axis = 0});
  EXPECT_THAT(elements(found.values), ElementsAre(4, 5, 2, 3));
  EXPECT_EQ(found.indices.shape(), (Shape{2, 2}));
  EXPECT_THAT(ERROR_OF(topk(counted({2}), 1, {.axis = 1}).values), HasSubstr("(2,) has no axis 1"));
}

TEST(ArrayOps, MultiplyTensorsOfAnyRank) {
  EXPECT_THAT(elements(matmul(counted({3}), counted({3}))), ElementsAre(5));
  EXPECT_EQ(matmul(counted({3}), counted({3})).shape(), Shape{});
  EXPECT_EQ(matmul(counted({2, 3}), counted({3})).shape(), Shape{2});
  EXPECT_EQ(matmul(counted({3}), counted({4, 3, 2})).shape(), (Shape{4, 2}));
  EXPECT_EQ(matmul(counted({5, 2, 3}), counted({3, 4})).shape(), (Shape{5, 2, 4}));
  EXPECT_EQ(matmul(counted({5, 1, 2, 3}), counted({6, 4, 3}), false, true).shape(), (Shape{5, 6, 2, 4}));
  EXPECT_EQ(matmul(counted({0, 2, 3}), counted({3, 4})).shape(), (Shape{0, 2, 4}));
}

// Products of many sizes, by all kernels that may be chosen, against the sum written out.
TEST(ArrayOps, BatchMatmulIsTheSumOfProducts) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 make(seed);
  const auto size = [&](int limit) { return std::int64_t{1} + static_cast<std::int64_t>(make() % limit); };
  for (int round = 0; round < 40; ++round) {
    const std::int64_t batch = size(4), m = size(40), n = size(40), k = size(40);
    const bool shared = make() % 2 == 0;
    const Tensor a = counted({batch, m, k});
    const Tensor b = counted({shared ? 1 : batch, n, k});
    for (const Tensor& tensor : {a, b})
      for (float& element : tensor.span<float>()) element = static_cast<float>(make() % 7) - 3;
    const Tensor c = batch_matmul(a, b, false, true).tensor();
    ASSERT_EQ(c.shape(), (Shape{batch, m, n}));
    for (std::int64_t i = 0; i < c.elements(); ++i) {
      const std::int64_t row = i / n, column = i % n + (shared ? 0 : i / (m * n) * n);
      float sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += a.data<float>()[row * k + p] * b.data<float>()[column * k + p];
      ASSERT_EQ(c.data<float>()[i], sum) << "element " << i << " of " << to_string(c.shape());
    }
  }
}

// The gradients of all parts reach the tensor that was cut.
TEST(ArrayOps, GradientsPassThroughCutsJoinsAndPadding) {
  const auto function =
      graph::value_and_grad("f",
                            [](std::span<const Value> inputs) -> Values {
                              const Values parts = unstack(inputs[0], 0);
                              const std::vector<Value> turned{parts[1], parts[0]};
                              const Value padded = pad(stack(turned), {{0, 0}, {1, 0}}, PadMode::reflect);
                              const Value tiled = tile(padded, {1, 2});
                              return reduce_sum(mul(tiled, Value(counted({2, 6}))));
                            },
                            {.parameters = {}, .positions = {0}});
  const std::vector<Tensor> inputs{counted({2, 2})};
  const auto result = function->call(inputs, {}, {});
  ASSERT_TRUE(result) << result.error().message;
  // Weights (0 .. 11) of row 1 of x are those of row 0 of the result: elements 1 and 4, and 0, 2, 3, 5.
  EXPECT_THAT(elements((*result)[1]), ElementsAre(7 + 10, 6 + 8 + 9 + 11, 1 + 4, 0 + 2 + 3 + 5));
}

}  // namespace
}  // namespace muster::nn::ops
