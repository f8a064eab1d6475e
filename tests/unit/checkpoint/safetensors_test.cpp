#include "muster/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iostream>

#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {

using testing::MemoryStorage;

// The length of the header, and the header.
std::string with_length(const std::string& header) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(header.size() >> 8 * i));
  return bytes + header;
}

Result<std::vector<Entry>> load_all(const std::string& path, const Storage& disk) {
  MUSTER_TRY(const auto file, disk.open(path));
  MUSTER_TRY(const safetensors::Header header, safetensors::read_header(*file, path));
  std::vector<Entry> entries;
  for (const safetensors::Place& place : header.places) {
    MUSTER_TRY(Tensor tensor, safetensors::read_tensor(*file, place));
    entries.push_back({place.name, std::move(tensor)});
  }
  return entries;
}

std::string reading(const std::string& file) {
  MemoryStorage disk;
  MUSTER_CHECK(disk.write("/f/x", std::as_bytes(std::span(file))), "the file was not written");
  const auto loaded = load_all("/f/x", disk);
  if (loaded) return "read";
  EXPECT_TRUE(loaded.error().code == Code::corrupt || loaded.error().code == Code::not_provided);
  return loaded.error().message;
}

// The example of docs/formats/recovery-point.md.
TEST(Safetensors, WritesTheBytesOfItsDescription) {
  MemoryStorage disk;
  const std::array entries{Entry{"b", Tensor::from<float>(std::array{1.0F, -2.0F}, {2})}};
  ASSERT_TRUE(safetensors::save("/f/x", entries, disk));
  const auto bytes = disk.read("/f/x").value();
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string header = R"({"b":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}})";
  EXPECT_EQ(text, with_length(header + std::string(4088 - header.size(), ' ')) +
                      std::string("\x00\x00\x80\x3F\x00\x00\x00\xC0", 8));
}

TEST(Safetensors, GivesBackEveryDtype) {
  MemoryStorage disk;
  std::vector<Entry> entries;
  for (const DType dtype : all_dtypes) {
    Tensor tensor = Tensor::zeros(dtype, {3, 5});
    for (std::size_t i = 0; i < tensor.size_bytes(); ++i) tensor.bytes()[i] = static_cast<std::byte>(i % 2);
    entries.push_back({std::string(to_string(dtype)) + " \"quoted\" \xC3\xA9", tensor});
  }
  entries.push_back({"scalar", Tensor::scalar(3.0)});
  entries.push_back({"nothing", Tensor(DType::int64, {0, 7})});
  ASSERT_TRUE(safetensors::save("/f/x", entries, disk));
  auto loaded = load_all("/f/x", disk);
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(loaded->size(), entries.size());
  for (const Entry& entry : entries) {
    const auto found =
        std::find_if(loaded->begin(), loaded->end(), [&](const Entry& e) { return e.name == entry.name; });
    ASSERT_NE(found, loaded->end()) << entry.name;
    EXPECT_EQ(found->value.dtype(), entry.value.dtype());
    EXPECT_EQ(found->value.shape(), entry.value.shape());
    EXPECT_EQ(std::memcmp(found->value.bytes(), entry.value.bytes(), entry.value.size_bytes()), 0)
        << entry.name;
  }
}

TEST(Safetensors, LaysEveryTensorWhereItsElementsAreAligned) {
  const std::array entries{
      Entry{"mask", Tensor::zeros(DType::bool_, {3})}, Entry{"half", Tensor::zeros(DType::bfloat16, {3})},
      Entry{"wide", Tensor::zeros(DType::float64, {3})}, Entry{"weight", Tensor::zeros(DType::float32, {3})}};
  const auto planned = safetensors::plan(entries).value();
  for (const auto& place : planned.places) EXPECT_EQ(place.begin % size_bytes(place.dtype), 0u) << place.name;
  EXPECT_EQ(planned.places.front().begin % 4096, 0u);
}

TEST(Safetensors, ReadsTheTextsAndSpacesOfOtherWriters) {
  EXPECT_EQ(reading(with_length(R"({ "__metadata__" : {"format": "pt"}, "a": {"shape": [], "dtype": "F32",)"
                                R"( "data_offsets": [0, 4]} }   )") +
                    "1234"),
            "read");
}

TEST(Safetensors, RefusesWhatCannotBe) {
  const auto tensor = [](const std::string& name, const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return '"' + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + '}';
  };
  const auto file = [](const std::string& inside, std::size_t data_bytes) {
    return with_length('{' + inside + '}') + std::string(data_bytes, 'x');
  };
  EXPECT_THAT(reading("1234567"), Mentions("'/f/x'", "7 bytes", "safetensors"));
  EXPECT_THAT(reading(std::string(8, '\xFF') + "{}"),
              Mentions("'/f/x'", "header", "18446744073709551615", "has 10", "8388608"));
  EXPECT_THAT(reading(with_length(" {}")), Mentions("'/f/x'", "begin", "'{'"));
  EXPECT_THAT(reading(with_length("{\"a\"")), Mentions("header", "'/f/x'", "JSON", "line 1", "column 5"));
  EXPECT_THAT(
      reading(file(tensor("a", "F32", "[2]", "[0,8]") + ',' + tensor("b", "F32", "[2]", "[4,12]"), 12)),
      Mentions("'/f/x'", "'b'", "byte 4", "at 8", "overlap"));
  EXPECT_THAT(
      reading(file(tensor("a", "F32", "[2]", "[0,8]") + ',' + tensor("b", "F32", "[2]", "[12,20]"), 20)),
      Mentions("'/f/x'", "'b'", "byte 12", "at 8", "hole"));
  EXPECT_THAT(reading(file(tensor("a", "F32", "[2]", "[0,8]"), 9)),
              Mentions("'/f/x'", "tensors", "8 bytes", "file 9"));
  EXPECT_THAT(reading(file(tensor("a", "F32", "[2]", "[0,8]"), 7)),
              Mentions("'/f/x'", "'a'", "bytes 0", "to 8", "file", "has 7"));
  EXPECT_THAT(reading(file(tensor("a", "F32", "[2]", "[8,0]"), 8)),
              Mentions("'/f/x'", "'a'", "bytes 8", "to 0", "file", "has 8"));
  EXPECT_THAT(reading(file(tensor("a", "F32", "[3]", "[0,8]"), 8)),
              Mentions("'/f/x'", "'a'", "(3,)", "8 bytes", "elements", "not 12"));
  EXPECT_THAT(reading(file(tensor("a", "F32", "[9223372036854775808]", "[0,8]"), 8)),
              Mentions("'/f/x'", "'a'", "sizes"));
  EXPECT_THAT(reading(file(tensor("a", "F32", "[4611686018427387904,4,2]", "[0,8]"), 8)),
              Mentions("'/f/x'", "'a'", "elements"));
  EXPECT_THAT(reading(file(tensor("a", "F32", "[0,4611686018427387904,4]", "[0,0]"), 0)),
              Mentions("'/f/x'", "'a'", "elements"));
  EXPECT_THAT(reading(file(tensor("a", "F32", "[-1]", "[0,8]"), 8)), Mentions("'/f/x'", "'a'", "sizes"));
  EXPECT_THAT(reading(file(tensor("a", "F8_E5M2", "[8]", "[0,8]"), 8)),
              Mentions("'/f/x'", "'a'", "F8_E5M2", "writing"));
  EXPECT_THAT(reading(file(tensor("a", "cos\\nsystem", "[4]", "[0,8]"), 8)),
              Mentions("'/f/x'", "'a'", "dtype"));
  EXPECT_THAT(
      reading(file(tensor("a", "F32", "[2]", "[0,8]") + ',' + tensor("a", "F32", "[2]", "[8,16]"), 16)),
      Mentions("header", "'/f/x'", "'a'"));
  EXPECT_THAT(reading(file("\"a\":{}", 0)), Mentions("'/f/x'", "'a'", "described", "data_offsets"));
  EXPECT_THAT(reading(file("\"__metadata__\":{\"a\":1}", 0)), Mentions("'/f/x'", "metadata"));
}

TEST(Safetensors, TakesANameForANameWhateverItIs) {
  MemoryStorage disk;
  const std::array entries{Entry{"../../etc/passwd", Tensor::scalar(1.0F)}};
  ASSERT_TRUE(safetensors::save("/f/x", entries, disk));
  EXPECT_EQ(load_all("/f/x", disk).value().front().name, "../../etc/passwd");
  EXPECT_EQ(disk.paths(), std::vector<std::string>{"/f/x"}) << "no name ever becomes a path";
}

TEST(Safetensors, SurvivesBytesOfAllKinds) {
  const std::uint64_t seed = entropy();
  std::cout << "seed " << seed << "\n";
  const RandomStream random(seed, 0);
  MemoryStorage disk;
  ASSERT_TRUE(safetensors::save("/f/x", testing::point(testing::step(0, 1), 1).tensors, disk));
  const auto good = disk.read("/f/x").value();
  std::uint64_t drawn = 0;
  for (int round = 0; round < 20000; ++round) {
    auto& file = disk.content("/f/x");
    file = good;
    for (int changes = 0; changes < 3; ++changes) {
      const std::uint64_t place = random.below(drawn++, file.size());
      file[place] = static_cast<std::byte>(random.below(drawn++, 256));
    }
    const auto loaded = load_all("/f/x", disk);
    if (!loaded) {
      EXPECT_TRUE(loaded.error().code == Code::corrupt || loaded.error().code == Code::not_provided);
    }
  }
}

}  // namespace
}  // namespace muster::checkpoint
