// Gradients of convolution weights travel in one order, whatever the kernels of a rank prefer.
#include "muster/graph/ops/weight_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "muster/graph/graph.h"
#include "tests/unit/base/mirror_group.h"

namespace muster::graph {
namespace {
namespace weight_order_test {

std::vector<std::vector<float>> travelled(const MirrorGroup& pair) {
  std::vector<std::vector<float>> made;
  for (const MirrorGroup::Call& call : pair.calls) made.push_back(call.floats());
  return made;
}

Tensor counted(Shape shape) {
  Tensor made(DType::float32, std::move(shape));
  for (std::int64_t i = 0; i < made.elements(); ++i) made.data<float>()[i] = static_cast<float>(i);
  return made;
}

std::vector<float> elements(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

const std::vector<Shape> shapes{{32, 48, 3, 2}, {16, 3, 5, 5}, {7}, {16, 16, 1, 1}};
const Attributes ordered{{"weight_order", true}};

std::vector<Value> weights() {
  std::vector<Value> made;
  for (const Shape& shape : shapes) made.emplace_back(counted(shape));
  return made;
}

// Through a plan: kernels and reorders around the call, where the library is installed.
Result<std::vector<Tensor>> reduced_in_a_plan(const std::vector<Value>& values, const RunContext& context) {
  Function function("reduce", [](std::span<const Value> in) { return apply_all("all_reduce", in, ordered); });
  std::vector<Tensor> tensors;
  for (const Value& value : values) tensors.push_back(value.tensor());
  return function.call(tensors, "", context);
}

TEST(WeightOrder, HasBlocksOfSixteenInBySixteenOutChannels) {
  const TensorType type{DType::float32, {32, 48, 3, 2}};
  const Tensor plain = counted(type.shape);
  Tensor travelling(DType::float32, type.shape);
  to_weight_order(type, plain.bytes(), travelling.bytes());
  const auto index = [](std::int64_t o, std::int64_t i, std::int64_t h, std::int64_t w) {
    return ((o * 48 + i) * 3 + h) * 2 + w;
  };
  const float* const at = travelling.data<float>();
  EXPECT_EQ(at[1], index(1, 0, 0, 0)) << "out channels follow each other";
  EXPECT_EQ(at[16], index(0, 1, 0, 0)) << "then in channels";
  EXPECT_EQ(at[256], index(0, 0, 0, 1)) << "then the window";
  EXPECT_EQ(at[256 * 6], index(0, 16, 0, 0)) << "then blocks of in channels";
  EXPECT_EQ(at[256 * 6 * 3], index(16, 0, 0, 0)) << "then blocks of out channels";
  Tensor back(DType::float32, type.shape);
  from_weight_order(type, travelling.bytes(), back.bytes());
  EXPECT_EQ(elements(back), elements(plain));
}

TEST(WeightOrder, IsTheSameWhoeverReorders) {
  MirrorGroup eager;
  const Values by_the_kernel = apply_all("all_reduce", weights(), ordered, {.communicator = &eager});
  MirrorGroup compiled;
  const auto by_the_plan = reduced_in_a_plan(weights(), {.communicator = &compiled});
  ASSERT_TRUE(by_the_plan) << by_the_plan.error().message;
  EXPECT_EQ(travelled(eager), travelled(compiled));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::vector<float> doubled = elements(counted(shapes[i]));
    for (float& value : doubled) value *= 2;
    EXPECT_EQ(elements(by_the_kernel[i].tensor()), doubled) << "by the kernel, input " << i;
    EXPECT_EQ(elements((*by_the_plan)[i]), doubled) << "by the plan, input " << i;
  }
}

TEST(WeightOrder, IsOnlyOfWhatIsAskedFor) {
  MirrorGroup pair;
  (void)apply_all("all_reduce", weights(), {}, {.communicator = &pair});
  std::vector<float> expected;
  for (const Shape& shape : shapes)
    for (const float value : elements(counted(shape))) expected.push_back(value);
  EXPECT_EQ(pair.calls.at(0).floats(), expected);
}

TEST(WeightOrder, ChangesNothingInAGroupOfOne) {
  const auto outputs = reduced_in_a_plan(weights(), {});
  ASSERT_TRUE(outputs) << outputs.error().message;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    EXPECT_EQ(elements((*outputs)[i]), elements(counted(shapes[i])));
}

}  // namespace weight_order_test
}  // namespace
}  // namespace muster::graph
