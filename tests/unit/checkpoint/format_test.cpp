#include "muster/checkpoint/format.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <initializer_list>
#include <iostream>

#include "tests/unit/base/mentions.h"

namespace muster::checkpoint {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> made;
  for (const int value : values) made.push_back(static_cast<std::byte>(value));
  return made;
}

Entry floats(std::string name, std::vector<float> values, Shape shape) {
  return {std::move(name), Tensor::from<float>(std::span<const float>(values), std::move(shape))};
}

void expect_equal(const std::vector<Entry>& found, const std::vector<Entry>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, wanted[i].name);
    EXPECT_EQ(found[i].value.dtype(), wanted[i].value.dtype());
    ASSERT_EQ(found[i].value.shape(), wanted[i].value.shape());
    EXPECT_EQ(std::memcmp(found[i].value.bytes(), wanted[i].value.bytes(), wanted[i].value.size_bytes()), 0);
  }
}

// The example of docs/formats/checkpoint.md.
TEST(CheckpointFormat, WritesTheBytesOfItsDescription) {
  const std::array entries{floats("b", {1.0F, -2.0F}, {2})};
  EXPECT_EQ(encode(entries), bytes({0x0A, 0x1A,                                       // value, 26 bytes
                                    0x0A, 0x01, 'b',                                  // its name
                                    0x12, 0x15,                                       // its tensor, 21 bytes
                                    0x08, 0x02,                                       // dims: 2
                                    0x12, 0x07, 'F', 'l', 'o',  'a',  't', '3', '2',  // type
                                    0x1A, 0x08, 0,   0,   0x80, 0x3F, 0,   0,   0,   0xC0}));  // elements
}

TEST(CheckpointFormat, GivesBackWhatWasWritten) {
  const std::vector<Entry> entries{
      floats("fc.weight", {1, 2, 3, 4, 5, 6}, {2, 3}),
      floats("learning_rate", {0.1F}, {}),
      {"global_step", Tensor::from<std::int32_t>(std::array<std::int32_t, 1>{7}, {1})},
      {"mask", Tensor::from<bool>(std::array<bool, 3>{true, false, true}, {3})},
      {"nothing", Tensor(DType::float32, {0, 4})},
      {"none", Tensor(DType::float32, {0})}};
  const auto found = decode(encode(entries), "file");
  ASSERT_TRUE(found) << found.error().message;
  expect_equal(*found, entries);
}

TEST(CheckpointFormat, SplitsLongEntriesAndJoinsThem) {
  const std::vector<Entry> entries{floats("long", {1, 2, 3, 4, 5}, {5}), floats("short", {6}, {1})};
  const auto file = encode(entries, 8);
  EXPECT_GT(file.size(), encode(entries).size());
  const auto found = decode(file, "file");
  ASSERT_TRUE(found) << found.error().message;
  expect_equal(*found, entries);
}

TEST(CheckpointFormat, ReadsEveryTruncatedFileAsCorruptOrShorter) {
  const std::vector<Entry> entries{floats("a", {1, 2}, {2}), floats("b", {3}, {1})};
  const auto file = encode(entries);
  for (std::size_t size = 0; size < file.size(); ++size) {
    const auto found = decode(std::span(file).first(size), "file");
    if (found)
      EXPECT_LT(found->size(), entries.size()) << size;
    else
      EXPECT_EQ(found.error().code, Code::corrupt) << size;
  }
}

TEST(CheckpointFormat, NamesTheFileAndTheByteOfWhatIsWrong) {
  const auto found = decode(bytes({0x0A, 0x05, 0x0A}), "x.ckpt");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, Mentions("'x.ckpt'", "byte 1", "5 bytes", "announced"));
  const auto other = decode(bytes({0x08, 0x05}), "x.ckpt");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, Mentions("'x.ckpt'", "byte 0", "entry"));
}

TEST(CheckpointFormat, RefusesSizesThatDoNotFitTheElements) {
  auto file = encode(std::array{floats("b", {1.0F, -2.0F}, {2})});
  file[8] = std::byte{3};  // dims
  const auto found = decode(file, "x.ckpt");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message,
              Mentions("checkpoint", "'x.ckpt'", "byte 7", "'b' (3,)", "8 bytes", "not 12"));
}

TEST(CheckpointFormat, RefusesSizesWhoseProductIsNoNumber) {
  constexpr std::int64_t great = std::int64_t{1} << 62;
  for (const Shape& shape :
       {Shape{0, great, great}, Shape{great, 0, great}, Shape{great, great, 0}, Shape{0, great, 2}}) {
    // An empty tensor is written with another shape of as many axes, since none like this can be made.
    auto file = encode(std::array{floats("b", {}, {0})});
    std::vector<std::byte> dims;
    for (const std::int64_t size : shape) {
      dims.push_back(std::byte{0x08});
      auto rest = static_cast<std::uint64_t>(size);
      for (; rest >= 0x80; rest >>= 7) dims.push_back(static_cast<std::byte>(rest | 0x80));
      dims.push_back(static_cast<std::byte>(rest));
    }
    file.erase(file.begin() + 7, file.begin() + 9);
    file.insert(file.begin() + 7, dims.begin(), dims.end());
    for (const std::size_t length : {1, 6})
      file[length] = static_cast<std::byte>(std::to_integer<std::size_t>(file[length]) + dims.size() - 2);
    const auto found = decode(file, "x.ckpt");
    ASSERT_FALSE(found) << to_string(shape);
    EXPECT_EQ(found.error().message,
              "checkpoint 'x.ckpt', byte 7: 'b' " + to_string(shape) + " has more elements than can be");
  }
}

TEST(CheckpointFormat, SurvivesBytesOfAllKinds) {
  const std::uint64_t seed = entropy();
  std::cout << "seed " << seed << "\n";
  const auto good = encode(std::array{floats("weight", {1, 2, 3, 4}, {2, 2}), floats("bias", {5}, {1})});
  const RandomStream random(seed, 0);
  std::uint64_t drawn = 0;
  for (int round = 0; round < 20000; ++round) {
    auto file = good;
    for (int changes = 0; changes < 3; ++changes) {
      const std::uint64_t place = random.below(drawn++, file.size());
      file[place] = static_cast<std::byte>(random.below(drawn++, 256));
    }
    const auto found = decode(file, "file");
    if (!found) {
      EXPECT_TRUE(found.error().code == Code::corrupt || found.error().code == Code::not_provided);
    }
  }
}

}  // namespace
}  // namespace muster::checkpoint
