#include "muster/data/synthetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "digits.h"
#include "muster/data/data.h"
#include "tests/unit/base/mentions.h"

namespace muster::data {
namespace {

using namespace muster::data::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> write(MemoryFiles& files, std::uint64_t seed = 0) {
  return write_synthetic_cifar10({.folder = "/made", .records = 20, .seed = seed}, files).value();
}

TEST(SyntheticCifar10, IsReadAsCifar10) {
  MemoryFiles files;
  EXPECT_THAT(write(files),
              ElementsAre("data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                          "data_batch_5.bin", "test_batch.bin", "batches.meta.txt", "SYNTHETIC.txt"));
  EXPECT_EQ(files.read("/made/data_batch_1.bin").value().size(), 20U * 3073U);
  EXPECT_EQ(cifar10({.folder = "/made", .usage = "train"}, files).size().value(), 100);
  EXPECT_EQ(cifar10({.folder = "/made", .usage = "test"}, files).size().value(), 20);
}

TEST(SyntheticCifar10, SaysThatItIsSynthetic) {
  MemoryFiles files;
  write(files);
  const auto bytes = files.read("/made/SYNTHETIC.txt").value();
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_THAT(text, Mentions("synthetic", "photographs", "CIFAR-10"));
  EXPECT_THAT(text, HasSubstr("--records 20 --seed 0"));
}

TEST(SyntheticCifar10, IsTheSameForTheSameSeedAndNoTwoFilesAreAlike) {
  MemoryFiles first, second, other;
  write(first);
  write(second);
  write(other, 1);
  const auto bytes = [](const MemoryFiles& files, const char* name) {
    return files.read(std::string("/made/") + name).value();
  };
  EXPECT_EQ(bytes(first, "data_batch_1.bin"), bytes(second, "data_batch_1.bin"));
  EXPECT_NE(bytes(first, "data_batch_1.bin"), bytes(other, "data_batch_1.bin"));
  EXPECT_NE(bytes(first, "data_batch_1.bin"), bytes(first, "test_batch.bin"));
}

TEST(SyntheticCifar10, ReplacesItsOwnFilesAndNoOthers) {
  MemoryFiles files;
  write(files);
  write(files, 1);
  const std::vector<std::byte> real(3073, std::byte{7});
  ASSERT_TRUE(files.write("/made/data_batch_4.bin", real));
  const auto refused = write_synthetic_cifar10({.folder = "/made", .records = 20}, files);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::refused);
  EXPECT_THAT(refused.error().message, HasSubstr("'/made/data_batch_4.bin'"));
  EXPECT_EQ(files.read("/made/data_batch_4.bin").value(), real);
}

// The nearest class mean over the red, green and blue of a picture already tells most classes apart.
TEST(SyntheticCifar10, CanBeLearned) {
  MemoryFiles files;
  ASSERT_TRUE(write_synthetic_cifar10({.folder = "/made", .records = 100, .seed = 3}, files));
  const auto colours = [](const Tensor& image) {
    std::array<double, 3> sums{};
    for (std::size_t i = 0; i < 3072; ++i) sums[i % 3] += image.data<std::uint8_t>()[i] / 1024.0;
    const double brightness = (sums[0] + sums[1] + sums[2]) / 3;
    for (double& sum : sums) sum -= brightness;
    return sums;
  };
  std::array<std::array<double, 3>, 10> means{};
  std::array<int, 10> counts{};
  for (const Item& item : items_of(cifar10({.folder = "/made", .usage = "train"}, files))) {
    const auto label = *item[1].data<std::uint32_t>();
    const auto sums = colours(item[0]);
    for (std::size_t c = 0; c < 3; ++c) means[label][c] += sums[c];
    ++counts[label];
  }
  int right = 0;
  for (const Item& item : items_of(cifar10({.folder = "/made", .usage = "test"}, files))) {
    const auto sums = colours(item[0]);
    std::size_t nearest = 0;
    double least = 1e9;
    for (std::size_t label = 0; label < 10; ++label) {
      double distance = 0;
      for (std::size_t c = 0; c < 3; ++c) distance += std::pow(sums[c] - means[label][c] / counts[label], 2);
      if (distance < least) least = distance, nearest = label;
    }
    right += nearest == *item[1].data<std::uint32_t>();
  }
  EXPECT_GE(right, 90);
}

TEST(SyntheticCifar10, NamesANumberOfRecordsThatCannotBe) {
  MemoryFiles files;
  EXPECT_THAT(write_synthetic_cifar10({.folder = "/made", .records = 0}, files).error().message,
              Mentions("records", "is 0", "be 1", "1000000"));
}

SyntheticClickOptions few_clicks(std::uint64_t seed = 0) {
  return {.folder = "/made", .samples = 400, .fields = 4, .vocabulary = 10, .numbers = 2, .seed = seed};
}

TEST(SyntheticClicks, AreArraysOfNumPyThatTheSameSeedMakesAgain) {
  MemoryFiles first, second, other;
  const SyntheticClicks clicks = write_synthetic_clicks(few_clicks(), first).value();
  EXPECT_THAT(clicks.names,
              ElementsAre("train_ids.npy", "train_numbers.npy", "train_labels.npy", "test_ids.npy",
                          "test_numbers.npy", "test_labels.npy", "auc_limit.txt"));
  ASSERT_TRUE(write_synthetic_clicks(few_clicks(), second));
  ASSERT_TRUE(write_synthetic_clicks(few_clicks(1), other));
  const auto bytes = [](const MemoryFiles& files, const std::string& name) {
    return files.read("/made/" + name).value();
  };
  for (const std::string& name : clicks.names) {
    EXPECT_EQ(bytes(first, name), bytes(second, name));
    EXPECT_NE(bytes(first, name), bytes(other, name));
  }
  const auto ids = bytes(first, "train_ids.npy");
  const std::string header(reinterpret_cast<const char*>(ids.data()), 128);
  EXPECT_THAT(header, HasSubstr("'descr': '<i4', 'fortran_order': False, 'shape': (400, 4), }"));
  EXPECT_EQ(ids.size(), 128 + 400 * 4 * sizeof(std::int32_t));
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(bytes(first, "test_labels.npy").data()), 128),
              HasSubstr("'descr': '<f4', 'fortran_order': False, 'shape': (100,), }"));
}

TEST(SyntheticClicks, HaveALimitBetweenGuessingAndKnowing) {
  MemoryFiles files;
  const double limit = write_synthetic_clicks({.folder = "/made", .samples = 8000}, files).value().auc_limit;
  EXPECT_GT(limit, 0.8);
  EXPECT_LT(limit, 0.95);
}

TEST(SyntheticClicks, ReplaceNothingAndNameWhatCannotBe) {
  MemoryFiles files;
  ASSERT_TRUE(files.write("/made/test_ids.npy", {}));
  EXPECT_THAT(write_synthetic_clicks(few_clicks(), files).error().message, HasSubstr("/made/test_ids.npy"));
  SyntheticClickOptions wrong = few_clicks();
  wrong.vocabulary = 0;
  EXPECT_THAT(write_synthetic_clicks(wrong, files).error().message, Mentions("vocabulary", "not 0"));
}

}  // namespace
}  // namespace muster::data
