#include "muster/data/mnist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "digits.h"

#include "tests/unit/base/mentions.h"

namespace muster::data {
namespace {
namespace mnist_test {

using namespace muster::data::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const Dataset& dataset) {
  const auto status = dataset.status();
  return status ? "no error" : status.error().message;
}

TEST(Mnist, YieldsImagesAndLabelsOfTheFilesInTheirOrderWithoutShuffle) {
  const auto files = digits_folder(3);
  const auto dataset = mnist({.folder = "/digits", .shuffle = false}, files);
  const auto items = items_of(dataset);
  ASSERT_EQ(items.size(), 3U);
  for (std::uint32_t row = 0; row < 3; ++row) {
    const auto& [image, label] = std::pair(items[row][0], items[row][1]);
    EXPECT_EQ(image.dtype(), DType::uint8);
    EXPECT_EQ(image.shape(), (Shape{28, 28, 1}));
    for (std::size_t pixel = 0; pixel < 784; ++pixel)
      ASSERT_EQ(image.data<std::uint8_t>()[pixel], pixel_of(row, pixel)) << row << " " << pixel;
    EXPECT_EQ(label.dtype(), DType::uint32);
    EXPECT_EQ(label.shape(), Shape{});
    EXPECT_EQ(*label.data<std::uint32_t>(), row % 10);
  }
}

TEST(Mnist, SaysItsColumnsAndSize) {
  const auto files = digits_folder(7);
  const auto dataset = mnist({.folder = "/digits", .num_shards = 3, .shard_id = 1}, files);
  EXPECT_EQ(dataset.size().value(), 3);
  ASSERT_EQ(dataset.columns().size(), 2U);
  EXPECT_EQ(dataset.columns()[0].name, "image");
  EXPECT_EQ(dataset.columns()[0].shape, (Shape{28, 28, 1}));
  EXPECT_EQ(dataset.columns()[1].name, "label");
  EXPECT_EQ(dataset.columns()[1].dtype, DType::uint32);
}

TEST(Mnist, ReadsTheFilesThatUsageNames) {
  auto files = digits_folder(3);
  ASSERT_TRUE(files.write("/digits/t10k-images-idx3-ubyte", image_file(2, 3)));
  ASSERT_TRUE(files.write("/digits/t10k-labels-idx1-ubyte", label_file(2, 3)));
  const auto rows = [&](const std::string& usage) {
    return rows_of(items_of(mnist({.folder = "/digits", .usage = usage, .shuffle = false}, files)));
  };
  EXPECT_THAT(rows("train"), ElementsAre(0, 1, 2));
  EXPECT_THAT(rows("test"), ElementsAre(3, 4));
  EXPECT_THAT(rows("all"), ElementsAre(3, 4, 0, 1, 2));  // by name: t10k before train
  EXPECT_THAT(rows(""), rows("all"));
}

TEST(Mnist, TakesAtMostNumSamplesRowsOfTheShard) {
  const auto files = digits_folder(10);
  const auto dataset =
      mnist({.folder = "/digits", .shuffle = false, .num_samples = 2, .num_shards = 3, .shard_id = 1}, files);
  EXPECT_EQ(dataset.size().value(), 2);
  EXPECT_THAT(rows_of(items_of(dataset)), ElementsAre(1, 4));
}

TEST(Mnist, ShufflesUnlessToldNotTo) {
  const auto files = digits_folder(100);
  const auto rows = rows_of(items_of(mnist({.folder = "/digits"}, files)));
  EXPECT_FALSE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_EQ(rows, rows_of(items_of(mnist({.folder = "/digits", .shuffle = true}, files))));
}

TEST(Mnist, NamesAFolderThatIsMissingOrHoldsNoImages) {
  MemoryFiles files;
  EXPECT_THAT(error_of(mnist({.folder = "/nowhere"}, files)), HasSubstr("'/nowhere'"));
  ASSERT_TRUE(files.write("/digits/readme", {}));
  EXPECT_THAT(error_of(mnist({.folder = "/digits", .usage = "test"}, files)),
              HasSubstr("t10k-images-idx3-ubyte"));
}

TEST(Mnist, NamesTheLabelFileThatIsMissing) {
  MemoryFiles files;
  ASSERT_TRUE(files.write("/digits/train-images-idx3-ubyte", image_file(1)));
  const auto dataset = mnist({.folder = "/digits"}, files);
  ASSERT_FALSE(dataset.status());
  EXPECT_EQ(dataset.status().error().code, Code::not_found);
  EXPECT_THAT(error_of(dataset), HasSubstr("'/digits/train-labels-idx1-ubyte'"));
}

TEST(Mnist, NamesFileAndOffsetOfEveryTruncation) {
  for (const std::size_t size : {0U, 3U, 15U, 16U, 16U + 784U, 16U + 2U * 784U - 1U}) {
    auto files = digits_folder(2);
    auto images = image_file(2);
    images.resize(size);
    ASSERT_TRUE(files.write("/digits/train-images-idx3-ubyte", images));
    const auto error = error_of(mnist({.folder = "/digits"}, files));
    EXPECT_THAT(error, Mentions("'/digits/train-images-idx3-ubyte'", "truncated"));
    EXPECT_THAT(error, HasSubstr(std::to_string(size)));
  }
}

TEST(Mnist, RefusesAFileThatIsLongerThanItsHeaderSays) {
  auto files = digits_folder(2);
  auto labels = label_file(2);
  labels.push_back(std::byte{1});
  ASSERT_TRUE(files.write("/digits/train-labels-idx1-ubyte", labels));
  EXPECT_THAT(error_of(mnist({.folder = "/digits"}, files)), Mentions("byte 10", "file", "byte 11"));
}

TEST(Mnist, RefusesALabelFileUnderTheNameOfAnImageFile) {
  auto files = digits_folder(20);
  ASSERT_TRUE(files.write("/digits/train-images-idx3-ubyte", label_file(20)));
  EXPECT_THAT(error_of(mnist({.folder = "/digits"}, files)),
              Mentions("byte 0", "0x00000801", "0x00000803", "expected"));
}

TEST(Mnist, RefusesImagesOfAnotherSize) {
  auto files = digits_folder(2);
  auto images = image_file(2);
  images[11] = std::byte{14};  // 14 x 28
  images.resize(16 + 2 * 14 * 28);
  ASSERT_TRUE(files.write("/digits/train-images-idx3-ubyte", images));
  EXPECT_THAT(error_of(mnist({.folder = "/digits"}, files)), HasSubstr("byte 8 says 14 pixels where 28"));
}

TEST(Mnist, RefusesSizesWhoseProductOverflows) {
  auto files = digits_folder(2);
  auto images = image_file(2);
  for (std::size_t i = 4; i < 16; ++i) images[i] = std::byte{0xff};
  ASSERT_TRUE(files.write("/digits/train-images-idx3-ubyte", images));
  EXPECT_THAT(error_of(mnist({.folder = "/digits"}, files)), HasSubstr("truncated"));
}

TEST(Mnist, RefusesALabelThatIsNoDigitAndSaysWhere) {
  auto files = digits_folder(20);
  auto labels = label_file(20);
  labels[8 + 13] = std::byte{10};
  ASSERT_TRUE(files.write("/digits/train-labels-idx1-ubyte", labels));
  EXPECT_THAT(error_of(mnist({.folder = "/digits"}, files)), HasSubstr("byte 21 holds 10 where 0 to 9"));
}

TEST(Mnist, RefusesFilesWithDifferentCounts) {
  auto files = digits_folder(20);
  ASSERT_TRUE(files.write("/digits/train-labels-idx1-ubyte", label_file(19)));
  EXPECT_THAT(error_of(mnist({.folder = "/digits"}, files)), HasSubstr("20 images and 19 labels"));
}

TEST(Mnist, RefusesFilesWithoutDigits) {
  const auto files = digits_folder(0);
  EXPECT_THAT(error_of(mnist({.folder = "/digits"}, files)), HasSubstr("hold no digits"));
}

TEST(Mnist, NamesArgumentsOutOfRange) {
  const auto files = digits_folder(2);
  const auto error = [&](const MnistOptions& options) { return error_of(mnist(options, files)); };
  EXPECT_THAT(error({.folder = "/digits", .num_shards = 4, .shard_id = 4}),
              Mentions("shard_id", "is 4", "be 0", "to 3"));
  EXPECT_THAT(error({.folder = "/digits", .num_shards = 4, .shard_id = -1}), HasSubstr("shard_id is -1"));
  EXPECT_THAT(error({.folder = "/digits", .num_shards = 0, .shard_id = 0}), HasSubstr("num_shards is 0"));
  EXPECT_THAT(error({.folder = "/digits", .num_shards = 4}), HasSubstr("missing"));
  EXPECT_THAT(error({.folder = "/digits", .usage = "validation"}), HasSubstr("usage is 'validation'"));
  EXPECT_THAT(error({.folder = "/digits", .num_samples = 0}), HasSubstr("num_samples is 0"));
}

}  // namespace mnist_test
}  // namespace
}  // namespace muster::data
