#include "muster/data/vision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "digits.h"
#include "muster/data/chain.h"
#include "muster/data/data.h"
#include "opencv_golden.h"
#include "photographs.h"
#include "tests/unit/base/mentions.h"

namespace muster::data {
namespace {
namespace vision_test {

using namespace muster::data::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As record_opencv.py makes it.
Tensor pattern(Size size, std::int64_t channels) {
  Tensor made(DType::uint8, {size.height, size.width, channels});
  auto* value = made.data<std::uint8_t>();
  for (std::int64_t y = 0; y < size.height; ++y)
    for (std::int64_t x = 0; x < size.width; ++x)
      for (std::int64_t c = 0; c < channels; ++c)
        *value++ = static_cast<std::uint8_t>(y * 37 + x * 91 + c * 53 + y * x % 17 * 11);
  return made;
}

Tensor applied(const OperationPtr& operation, const Tensor& value, std::uint64_t row = 0) {
  return operation->apply(std::span(&value, 1), {.row = row, .operation = 5}).value().front();
}

std::string error_of(const OperationPtr& operation, const Tensor& value) {
  const auto result = operation->apply(std::span(&value, 1), {});
  return result ? "no error" : result.error().message;
}

std::vector<int> values_of(const Tensor& tensor) {
  return {tensor.data<std::uint8_t>(), tensor.data<std::uint8_t>() + tensor.elements()};
}

Tensor line(std::vector<std::uint8_t> values) {
  const auto width = static_cast<std::int64_t>(values.size());
  return Tensor::from<std::uint8_t>(std::span<const std::uint8_t>(values), {1, width});
}

TEST(Resize, IsWithinOneGreyLevelOfOpenCv) {
  for (const OpenCvCase& test : opencv_cases) {
    const Tensor made = applied(resize(test.to, test.interpolation), pattern(test.from, test.channels));
    ASSERT_EQ(made.shape(), (Shape{test.to.height, test.to.width, test.channels}));
    const int allowed = test.interpolation == Interpolation::nearest ? 0 : 1;
    for (std::size_t i = 0; i < test.values.size(); ++i)
      ASSERT_LE(std::abs(made.data<std::uint8_t>()[i] - test.values[i]), allowed)
          << test.from.height << "x" << test.from.width << " to " << test.to.height << "x" << test.to.width
          << ", interpolation " << static_cast<int>(test.interpolation) << ", value " << i;
  }
}

TEST(Resize, KeepsAnImageThatHasTheSizeAlready) {
  const Tensor image = pattern({9, 7}, 3);
  for (const auto interpolation :
       {Interpolation::nearest, Interpolation::linear, Interpolation::cubic, Interpolation::area})
    EXPECT_EQ(values_of(applied(resize({9, 7}, interpolation), image)), values_of(image));
}

TEST(Resize, OfFloatsIsNotRounded) {
  const Tensor image = Tensor::from<float>(std::vector<float>{0, 1}, {1, 2});
  const Tensor made = applied(resize({1, 4}), image);
  EXPECT_THAT(std::vector(made.data<float>(), made.data<float>() + 4), ElementsAre(0, 0.25f, 0.75f, 1));
}

TEST(Resize, MakesPlanesOfTheSameBytes) {
  for (const auto interpolation :
       {Interpolation::nearest, Interpolation::linear, Interpolation::cubic, Interpolation::area})
    for (const Size to : {Size{40, 67}, Size{5, 6}, Size{30, 6}}) {
      const Tensor image = pattern({17, 15}, 3);
      const auto operation = std::dynamic_pointer_cast<const Transform>(resize(to, interpolation));
      const ValueType type{DType::uint8, image.shape()};
      ASSERT_TRUE(operation->has_planes(type));
      Tensor planes(DType::uint8, {3, to.height, to.width});
      operation->run_planes(type, {}, image.bytes(), planes.bytes());
      EXPECT_EQ(values_of(planes), values_of(applied(hwc2chw(), applied(resize(to, interpolation), image))));
    }
}

TEST(Resize, OfTheShorterSideKeepsTheProportion) {
  EXPECT_EQ(applied(resize_shorter(6), pattern({4, 10}, 3)).shape(), (Shape{6, 15, 3}));
  EXPECT_EQ(applied(resize_shorter(6), pattern({10, 4}, 3)).shape(), (Shape{15, 6, 3}));
}

TEST(Resize, RefusesWhatItCannotTake) {
  EXPECT_THAT(error_of(resize({0, 5}), pattern({4, 4}, 1)), HasSubstr("a side of 0 pixels"));
  EXPECT_THAT(error_of(resize({5, 0}), pattern({4, 4}, 1)), HasSubstr("a side of -1 pixels"));
  EXPECT_THAT(error_of(resize({5, 5}), Tensor::zeros(DType::int32, {4, 4})),
              Mentions("uint8", "float32", "int32"));
  EXPECT_THAT(error_of(resize({5, 5}), Tensor::zeros(DType::uint8, {4})), HasSubstr("2 or 3 axes"));
}

TEST(Pad, DoesEachBorderAsItIsDefined) {
  const auto padded = [](Border mode) {
    return values_of(
        applied(pad({.left = 3, .right = 3}, {.mode = mode, .fill = {9, 9, 9}}), line({1, 2, 3})));
  };
  EXPECT_THAT(padded(Border::constant), ElementsAre(9, 9, 9, 1, 2, 3, 9, 9, 9));
  EXPECT_THAT(padded(Border::edge), ElementsAre(1, 1, 1, 1, 2, 3, 3, 3, 3));
  EXPECT_THAT(padded(Border::reflect), ElementsAre(2, 3, 2, 1, 2, 3, 2, 1, 2));
  EXPECT_THAT(padded(Border::symmetric), ElementsAre(3, 2, 1, 1, 2, 3, 3, 2, 1));
}

TEST(Pad, FillsEachChannelWithItsOwnColour) {
  const Tensor made = applied(pad({.top = 1}, {.fill = {7, 8, 9}}), pattern({1, 1}, 3));
  EXPECT_EQ(made.shape(), (Shape{2, 1, 3}));
  EXPECT_THAT(values_of(made), ElementsAre(7, 8, 9, 0, 53, 106));
}

TEST(CenterCrop, TakesTheMiddleAndPutsBlackAroundSmallImages) {
  EXPECT_THAT(values_of(applied(center_crop({1, 2}), line({1, 2, 3, 4}))), ElementsAre(2, 3));
  EXPECT_THAT(values_of(applied(center_crop({1, 4}), line({5, 6}))), ElementsAre(0, 5, 6, 0));
  EXPECT_THAT(values_of(applied(center_crop({1, 4}), line({5}))), ElementsAre(0, 0, 5, 0));
}

TEST(RandomCrop, TakesEveryPlaceAboutAsOften) {
  std::map<int, int> times;
  const auto crop = random_crop({.size = {1, 1}, .padding = {.left = 1, .right = 1}});
  for (std::uint64_t row = 0; row < 6000; ++row)
    ++times[values_of(applied(crop, line({1, 2, 3, 4}), row))[0]];
  EXPECT_EQ(times.size(), 5U);
  for (const int value : {1, 2, 3, 4}) EXPECT_NEAR(times[value], 1000, 150);  // five standard deviations
  EXPECT_NEAR(times[0], 2000, 190);
}

TEST(RandomCrop, NeedsAnImageLargeEnoughUnlessItMayPad) {
  EXPECT_THAT(error_of(random_crop({.size = {1, 5}}), line({1, 2, 3})),
              Mentions("1 x", "5 pixels", "image", "x 3"));
  const auto padding = random_crop({.size = {1, 5}, .pad_if_needed = true});
  std::set<std::vector<int>> seen;
  for (std::uint64_t row = 0; row < 100; ++row)
    seen.insert(values_of(applied(padding, line({1, 2, 3}), row)));
  EXPECT_EQ(seen, (std::set<std::vector<int>>{{0, 0, 1, 2, 3}, {0, 1, 2, 3, 0}, {1, 2, 3, 0, 0}}));
}

TEST(RandomFlip, TurnsAboutHalfOfTheImages) {
  int flipped = 0;
  for (std::uint64_t row = 0; row < 1000; ++row)
    flipped += values_of(applied(random_horizontal_flip(), line({1, 2}), row)) == std::vector{2, 1};
  EXPECT_NEAR(flipped, 500, 80);
  EXPECT_THAT(values_of(applied(random_horizontal_flip(1), pattern({1, 2}, 3))),
              ElementsAre(91, 144, 197, 0, 53, 106));
  const Tensor turned = applied(random_vertical_flip(1), pattern({2, 1}, 1));
  EXPECT_THAT(values_of(turned), ElementsAre(37, 0));
  EXPECT_THAT(values_of(applied(random_vertical_flip(0), pattern({2, 1}, 1))), ElementsAre(0, 37));
  EXPECT_THAT(error_of(random_horizontal_flip(1.5), line({1})), HasSubstr("1.5, it must be 0 to 1"));
}

TEST(RandomResizedCrop, TakesPartsOfTheAreaAndShapeAskedFor) {
  // In an image whose pixels say where they are, the corners of the result say what was cut.
  Tensor image(DType::float32, {64, 64, 2});
  for (std::int64_t i = 0; i < 64 * 64; ++i) {
    image.data<float>()[2 * i] = static_cast<float>(i / 64);
    image.data<float>()[2 * i + 1] = static_cast<float>(i % 64);
  }
  const auto crop = random_resized_crop({.size = {8, 8}, .interpolation = Interpolation::nearest});
  std::set<std::pair<float, float>> corners;
  for (std::uint64_t row = 0; row < 300; ++row) {
    const Tensor made = applied(crop, image, row);
    const float* first = made.data<float>();
    const float* last = first + 2 * 63;
    const float height = (last[0] - first[0]) / 7 * 8, width = (last[1] - first[1]) / 7 * 8;
    EXPECT_GT(height * width, 0.08f * 64 * 64 * 0.6f);
    EXPECT_LT(width / height, 4.0f / 3 * 1.35f);
    EXPECT_GT(width / height, 3.0f / 4 / 1.35f);
    corners.insert({first[0], first[1]});
  }
  EXPECT_GT(corners.size(), 100U);
  EXPECT_THAT(error_of(random_resized_crop({.size = {8, 8}, .scale = {0.5, 0.1}}), image),
              HasSubstr("scale is 0.5 to 0.1"));
}

TEST(ToTensor, ScalesAndMovesTheChannelsToTheFront) {
  const Tensor made = applied(to_tensor(), pattern({1, 2}, 3));
  EXPECT_EQ(made.shape(), (Shape{3, 1, 2}));
  EXPECT_THAT(std::vector(made.data<float>(), made.data<float>() + 6),
              ElementsAre(0.0f, 91 * (1 / 255.0f), 53 * (1 / 255.0f), 144 * (1 / 255.0f), 106 * (1 / 255.0f),
                          197 * (1 / 255.0f)));
}

TEST(OneHot, SetsThePlaceOfTheLabel) {
  const Tensor label = Tensor::scalar<std::uint32_t>(2);
  const Tensor made = applied(one_hot(4), label);
  EXPECT_EQ(made.dtype(), DType::uint32);
  EXPECT_THAT(std::vector(made.data<std::uint32_t>(), made.data<std::uint32_t>() + 4),
              ElementsAre(0, 0, 1, 0));
  const Tensor smooth = applied(one_hot(4, 0.2), label);
  EXPECT_THAT(std::vector(smooth.data<double>(), smooth.data<double>() + 4),
              ElementsAre(0.05, 0.05, 0.8 + 0.05, 0.05));
  EXPECT_THAT(error_of(one_hot(2), label), Mentions("label 2", "2 classes"));
  EXPECT_THAT(error_of(one_hot(2), Tensor::scalar<float>(1)), HasSubstr("integers, not float32"));
}

std::vector<OperationPtr> seed_chain() {
  return {random_crop({.size = {32, 32}, .padding = {4, 4, 4, 4}}),
          random_horizontal_flip(),
          resize({224, 224}),
          rescale(1.0f / 255.0f, 0.0f),
          normalize({.mean = {0.4465f, 0.4822f, 0.4914f}, .std = {0.2010f, 0.1994f, 0.2023f}}),
          hwc2chw()};
}

// The first promise of a map: the bits of its operations one after the other, however they are fused and
// whoever does the work.
TEST(SeedPipeline, HasTheBitsOfItsOperationsHoweverManyWorkersThereAre) {
  const auto operations = seed_chain();
  const auto plain = items_of(photographs(20), 7, 3);
  for (const int workers : {1, 2, 5}) {
    auto iterator = photographs(20)
                        .map(operations, {"image"})
                        .batch(8)
                        .iterate({.seed = 7, .epoch = 3, .workers = workers})
                        .value();
    for (std::size_t row = 0; auto batch = iterator.next().value();) {
      const Tensor& images = (*batch)[0];
      ASSERT_EQ(images.shape().rank(), 4U);
      for (std::int64_t i = 0; i < images.shape()[0]; ++i, ++row) {
        const std::uint64_t key[] = {7, 3, row};
        Tensor value = plain[row][0];
        for (std::size_t k = 0; k < operations.size(); ++k)
          value = operations[k]
                      ->apply({&value, 1}, {.row = hash_bytes(key, sizeof key), .operation = k})
                      .value()[0];
        ASSERT_EQ(value.size_bytes(), 3U * 224 * 224 * 4);
        ASSERT_EQ(
            std::memcmp(value.bytes(), images.bytes() + static_cast<std::size_t>(i) * value.size_bytes(),
                        value.size_bytes()),
            0)
            << "row " << row << ", " << workers << " workers";
      }
    }
  }
}

TEST(SeedPipeline, ChangesARowAlikeOnWhateverShardItLies) {
  const auto files = photographs_folder(12);
  const auto crop = random_crop({.size = {32, 32}, .padding = {4, 4, 4, 4}});
  std::map<std::uint32_t, std::vector<int>> whole, sharded;
  const auto gather = [&](const SourceOptions& options, auto& images) {
    for (const Item& item : items_of(cifar10(options, files).map({crop}, {"image"}), 5, 2))
      images[*item[1].data<std::uint32_t>()] = values_of(item[0]);
  };
  gather({.folder = "/photographs", .num_samples = 10}, whole);
  for (const std::int64_t shard_id : {0, 1, 2})
    gather({.folder = "/photographs", .num_shards = 3, .shard_id = shard_id}, sharded);
  int compared = 0;
  for (const auto& [label, image] : whole)
    if (label >= 2) {  // rows 0, 10 and 1, 11 share labels
      EXPECT_EQ(image, sharded[label]) << label;
      ++compared;
    }
  EXPECT_GE(compared, 6);
}

TEST(SeedPipeline, DrawsAnewInEveryEpochAndForEveryOperation) {
  const auto crop = random_crop({.size = {32, 32}, .padding = {4, 4, 4, 4}});
  const auto image = [&](std::uint64_t seed, std::uint64_t epoch) {
    return values_of(items_of(photographs(1).map({crop}, {"image"}), seed, epoch)[0][0]);
  };
  std::set<std::vector<int>> seen;
  for (std::uint64_t i = 0; i < 10; ++i) {
    seen.insert(image(1, i));
    seen.insert(image(i, 100));
  }
  EXPECT_GT(seen.size(), 10U);
  const auto flips =
      items_of(photographs(200).map({random_horizontal_flip(), random_horizontal_flip()}, {"image"}));
  const auto plain = items_of(photographs(200));
  int changed = 0;  // were both flips the same, none would be
  for (std::size_t row = 0; row < 200; ++row) changed += values_of(flips[row][0]) != values_of(plain[row][0]);
  EXPECT_NEAR(changed, 100, 36);
}

}  // namespace vision_test
}  // namespace
}  // namespace muster::data
