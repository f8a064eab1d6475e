#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "muster/data/data.h"
#include "tests/unit/base/mentions.h"

namespace muster::data {
namespace {
namespace random_erasing_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t height = 24, width = 32;

struct Rectangle {
  std::int64_t top = height, left = width, bottom = 0, right = 0;  // the ends are outside
  std::int64_t rows() const { return bottom - top; }
  std::int64_t columns() const { return right - left; }
};

OperationPtr erasing(Settings settings) { return make_operation("RandomErasing", settings).value(); }

Tensor image_of(std::uint8_t value) {
  Tensor image(DType::uint8, {3, height, width});
  std::fill_n(image.data<std::uint8_t>(), image.elements(), value);
  return image;
}

Tensor applied(const OperationPtr& operation, const Tensor& image, std::uint64_t row) {
  return operation->apply({&image, 1}, {.row = row, .operation = 5}).value().front();
}

std::string error_of(const OperationPtr& operation, const Tensor& image) {
  const auto result = operation->apply({&image, 1}, {});
  return result ? "no error" : result.error().message;
}

// Where channel `c` has not the value `left`; nothing where it has it everywhere. All in it must be `erased`.
std::optional<Rectangle> erased_in(const Tensor& image, std::int64_t c, std::uint8_t left,
                                   std::uint8_t erased) {
  const auto* values = image.data<std::uint8_t>() + c * height * width;
  Rectangle found;
  std::int64_t count = 0;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      if (values[y * width + x] == left) continue;
      EXPECT_EQ(values[y * width + x], erased);
      ++count;
      found = {std::min(found.top, y), std::min(found.left, x), std::max(found.bottom, y + 1),
               std::max(found.right, x + 1)};
    }
  if (count == 0) return std::nullopt;
  EXPECT_EQ(count, found.rows() * found.columns()) << "what was erased is no rectangle";
  return found;
}

TEST(RandomErasing, ErasesARectangleOfTheAreaAndShapeAskedFor) {
  const auto operation = erasing({{"prob", 1.0}, {"scale", Numbers{0.1, 0.2}}, {"ratio", Numbers{0.5, 2.0}}});
  const Tensor image = image_of(9);
  Rectangle all;
  for (std::uint64_t row = 0; row < 300; ++row) {
    const auto found = erased_in(applied(operation, image, row), 0, 9, 0);
    ASSERT_TRUE(found);
    const auto area = static_cast<double>(found->rows() * found->columns()) / (height * width);
    EXPECT_GT(area, 0.08);
    EXPECT_LT(area, 0.23);
    const auto ratio = static_cast<double>(found->columns()) / static_cast<double>(found->rows());
    EXPECT_GT(ratio, 0.4);
    EXPECT_LT(ratio, 2.4);
    all = {std::min(all.top, found->top), std::min(all.left, found->left),
           std::max(all.bottom, found->bottom), std::max(all.right, found->right)};
  }
  EXPECT_EQ(all.top, 0);
  EXPECT_EQ(all.left, 0);
  EXPECT_EQ(all.bottom, height);
  EXPECT_EQ(all.right, width);
}

TEST(RandomErasing, LeavesAsManyImagesWholeAsTheProbabilitySays) {
  const auto operation = erasing({{"prob", 0.25}});
  const Tensor image = image_of(9);
  int erased = 0;
  for (std::uint64_t row = 0; row < 1000; ++row)
    erased += erased_in(applied(operation, image, row), 1, 9, 0).has_value() ? 1 : 0;
  EXPECT_NEAR(erased, 250, 50);
}

TEST(RandomErasing, GivesEachChannelItsValueInTheSameRectangle) {
  const auto operation = erasing({{"prob", 1.0}, {"value", WholeNumbers{1, 2, 3}}});
  const Tensor made = applied(operation, image_of(9), 4);
  const auto first = erased_in(made, 0, 9, 1), last = erased_in(made, 2, 9, 3);
  ASSERT_TRUE(first && last && erased_in(made, 1, 9, 2));
  EXPECT_EQ(first->top, last->top);
  EXPECT_EQ(first->right, last->right);
}

TEST(RandomErasing, LeavesAnImageWholeWhereNoRectangleFits) {
  const auto operation = erasing({{"prob", 1.0}, {"scale", Numbers{1.0, 1.0}}, {"ratio", Numbers{1.0, 1.0}}});
  EXPECT_FALSE(erased_in(applied(operation, image_of(9), 0), 0, 9, 0));
}

TEST(RandomErasing, SaysWhatItCannotTake) {
  EXPECT_THAT(make_operation("RandomErasing", {{"prob", 1.5}}).error().message,
              AllOf(HasSubstr("prob"), HasSubstr("1.5"), HasSubstr("from 0 to 1")));
  EXPECT_THAT(make_operation("RandomErasing", {{"value", WholeNumbers{1, 2}}}).error().message,
              AllOf(HasSubstr("value"), HasSubstr("(1, 2)"), HasSubstr("three channels")));
  EXPECT_THAT(error_of(erasing({}), Tensor(DType::uint8, {4, 4})), HasSubstr("takes an image (C, H, W)"));
  EXPECT_THAT(error_of(erasing({{"value", WholeNumbers{1, 2, 3}}}), Tensor(DType::uint8, {1, 4, 4})),
              Mentions("3 values", "image", "(1, 4, 4)", "1 channels"));
  EXPECT_THAT(error_of(erasing({{"scale", Numbers{0.5, 0.1}}}), image_of(0)), HasSubstr("it must rise"));
}

}  // namespace random_erasing_test
}  // namespace
}  // namespace muster::data
