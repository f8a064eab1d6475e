#include "muster/data/cifar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "digits.h"
#include "photographs.h"

#include "tests/unit/base/mentions.h"

namespace muster::data {
namespace {
namespace cifar_test {

using namespace muster::data::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const Dataset& dataset) {
  const auto status = dataset.status();
  return status ? "no error" : status.error().message;
}

std::vector<std::uint32_t> labels_of(const Dataset& dataset, std::size_t column = 1) {
  std::vector<std::uint32_t> labels;
  for (const Item& item : items_of(dataset)) labels.push_back(*item[column].data<std::uint32_t>());
  return labels;
}

TEST(Cifar10, YieldsImagesWithTheirChannelsLastAndLabels) {
  const auto items = items_of(photographs(3));
  ASSERT_EQ(items.size(), 3U);
  for (std::uint32_t row = 0; row < 3; ++row) {
    const Tensor& image = items[row][0];
    EXPECT_EQ(image.dtype(), DType::uint8);
    EXPECT_EQ(image.shape(), (Shape{32, 32, 3}));
    for (std::size_t i = 0; i < 1024; ++i)
      for (std::size_t c = 0; c < 3; ++c)
        ASSERT_EQ(image.data<std::uint8_t>()[3 * i + c], colour_of(row, c, i)) << row << " " << i << " " << c;
    EXPECT_EQ(items[row][1].dtype(), DType::uint32);
    EXPECT_EQ(*items[row][1].data<std::uint32_t>(), row % 10);
  }
}

TEST(Cifar10, ReadsTheFilesThatUsageNamesInTheOrderOfTheirNames) {
  MemoryFiles files;
  ASSERT_TRUE(files.write("/photographs/data_batch_1.bin", record_file(2, 0)));
  ASSERT_TRUE(files.write("/photographs/data_batch_2.bin", record_file(1, 2)));
  ASSERT_TRUE(files.write("/photographs/test_batch.bin", record_file(2, 7)));
  ASSERT_TRUE(files.write("/photographs/batches.meta.txt", {}));
  const auto labels = [&](const std::string& usage) {
    return labels_of(cifar10({.folder = "/photographs", .usage = usage, .shuffle = false}, files));
  };
  EXPECT_THAT(labels("train"), ElementsAre(0, 1, 2));
  EXPECT_THAT(labels("test"), ElementsAre(7, 8));
  EXPECT_THAT(labels("all"), ElementsAre(0, 1, 2, 7, 8));
  EXPECT_THAT(labels(""), labels("all"));
}

TEST(Cifar10, NamesFileAndOffsetOfARecordThatIsCutOff) {
  for (const std::size_t size : {1U, 3072U, 3074U, 2U * 3073U - 1U}) {
    MemoryFiles files;
    auto file = record_file(2);
    file.resize(size);
    ASSERT_TRUE(files.write("/photographs/data_batch_3.bin", file));
    const auto error = error_of(cifar10({.folder = "/photographs"}, files));
    EXPECT_THAT(error, HasSubstr("'/photographs/data_batch_3.bin'"));
    EXPECT_THAT(error, HasSubstr("the record at byte " + std::to_string(size / 3073 * 3073)));
  }
}

TEST(Cifar10, NamesFileAndOffsetOfALabelThatIsNone) {
  MemoryFiles files;
  auto file = record_file(3);
  file[2 * 3073] = std::byte{10};
  ASSERT_TRUE(files.write("/photographs/data_batch_1.bin", file));
  EXPECT_THAT(error_of(cifar10({.folder = "/photographs"}, files)),
              Mentions("byte 6146", "holds 10", "of 0", "to 9", "expected"));
}

TEST(Cifar10, NamesAFolderThatIsMissingOrHoldsNoRecords) {
  MemoryFiles files;
  EXPECT_THAT(error_of(cifar10({.folder = "/nowhere"}, files)), HasSubstr("'/nowhere'"));
  ASSERT_TRUE(files.write("/photographs/test_batch.bin", record_file(1)));
  EXPECT_THAT(error_of(cifar10({.folder = "/photographs", .usage = "train"}, files)),
              Mentions("'data_batch*.bin'", "expected"));
  ASSERT_TRUE(files.write("/photographs/data_batch_1.bin", {}));
  EXPECT_THAT(error_of(cifar10({.folder = "/photographs", .usage = "train"}, files)),
              HasSubstr("hold no records"));
  EXPECT_THAT(error_of(cifar10({.folder = "/photographs", .usage = "validation"}, files)),
              Mentions("usage", "'validation'", "'train', 'test'", "'all'"));
}

TEST(Cifar10, DealsShardsOfEqualLength) {
  const auto files = photographs_folder(10);
  const auto labels = [&](std::int64_t shard_id) {
    return labels_of(
        cifar10({.folder = "/photographs", .shuffle = false, .num_shards = 4, .shard_id = shard_id}, files));
  };
  EXPECT_THAT(labels(0), ElementsAre(0, 4, 8));
  EXPECT_THAT(labels(3), ElementsAre(3, 7, 1));
  EXPECT_THAT(error_of(cifar10({.folder = "/photographs", .num_shards = 4, .shard_id = 4}, files)),
              Mentions("shard_id", "is 4", "be 0", "to 3"));
}

TEST(Cifar100, YieldsBothLabels) {
  MemoryFiles files;
  ASSERT_TRUE(files.write("/photographs/train.bin", record_file(15, 0, 2)));
  ASSERT_TRUE(files.write("/photographs/test.bin", record_file(1, 3, 2)));
  const auto dataset = cifar100({.folder = "/photographs", .usage = "train", .shuffle = false}, files);
  EXPECT_EQ(dataset.size().value(), 15);
  EXPECT_EQ(dataset.columns()[1].name, "coarse_label");
  EXPECT_EQ(dataset.columns()[2].name, "fine_label");
  EXPECT_EQ(labels_of(dataset, 1)[14], 14U);
  EXPECT_EQ(labels_of(dataset, 2)[14], 4U);
  EXPECT_EQ(items_of(dataset)[1][0].data<std::uint8_t>()[5], colour_of(1, 2, 1));
  EXPECT_THAT(labels_of(cifar100({.folder = "/photographs", .usage = "test"}, files)), ElementsAre(3));
}

TEST(Cifar100, RefusesLabelsBeyondItsClasses) {
  MemoryFiles files;
  auto file = record_file(2, 0, 2);
  file[3074] = std::byte{20};
  ASSERT_TRUE(files.write("/photographs/train.bin", file));
  EXPECT_THAT(error_of(cifar100({.folder = "/photographs"}, files)),
              Mentions("byte 3074", "holds 20", "coarse_label", "of 0", "to 19"));
}

}  // namespace cifar_test
}  // namespace
}  // namespace muster::data
