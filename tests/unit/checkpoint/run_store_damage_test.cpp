// Points that a disk, a person or an enemy has changed.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iostream>

#include "muster/checkpoint/manifest.h"
#include "muster/checkpoint/run_store.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {
namespace run_store_damage_test {

using testing::MemoryStorage;
using testing::open_store;
using testing::point;
using testing::step;

const std::string folder = testing::run_folder + "/call_0.step_1";
const std::string manifest_path = folder + "/manifest.json";
const std::string tensors_path = folder + "/tensors.safetensors";
const std::string sections_path = folder + "/sections.bin";

class DamagedPoint : public ::testing::Test {
 protected:
  DamagedPoint() : store_(open_store(disk_)) {
    MUSTER_CHECK(store_.save(point(step(0, 1), 1)), "the point to damage was not saved");
  }
  // What loading says; empty when it finds nothing wrong.
  std::string problem() const {
    const auto loaded = store_.load(step(0, 1));
    return loaded ? "" : loaded.error().message;
  }

  MemoryStorage disk_;
  RunStore store_;
};

TEST_F(DamagedPoint, IsFoundWhateverBitOfItIsWrong) {
  ASSERT_EQ(problem(), "");
  for (const std::string& path : {manifest_path, tensors_path, sections_path}) {
    auto& bytes = disk_.content(path);
    ASSERT_FALSE(bytes.empty());
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        bytes[at] ^= std::byte{1} << bit;
        ASSERT_NE(problem(), "") << path << ", byte " << at << ", bit " << bit;
        bytes[at] ^= std::byte{1} << bit;
      }
    }
  }
  EXPECT_EQ(problem(), "");
}

TEST_F(DamagedPoint, IsFoundWhateverIsCutOffOrAdded) {
  for (const std::string& path : {manifest_path, tensors_path, sections_path}) {
    auto& bytes = disk_.content(path);
    const auto whole = bytes;
    for (std::size_t size = 0; size < whole.size(); ++size) {
      bytes.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      ASSERT_NE(problem(), "") << path << " of " << size;
      bytes.resize(whole.size());  // the right length, and zeros
      ASSERT_NE(problem(), "") << path << " with zeros from " << size;
    }
    bytes = whole;
    bytes.push_back(std::byte{'\n'});
    ASSERT_NE(problem(), "") << path;
    bytes = whole;
  }
}

TEST_F(DamagedPoint, IsFoundWhereverAGreatTensorIsWrong) {
  const std::uint64_t seed = entropy();
  std::cout << "seed " << seed << "\n";
  const RandomStream random(seed, 0);
  Point great{.id = step(0, 1), .tensors = {{"weight", Tensor::zeros(DType::float32, {1 << 18})}}};
  ASSERT_TRUE(store_.save(great));
  auto& bytes = disk_.content(tensors_path);
  for (std::uint64_t i = 0; i < 300; ++i) {
    std::byte& damaged = bytes[random.below(2 * i, bytes.size())];
    const auto change = static_cast<std::byte>(1 + random.below(2 * i + 1, 255));
    damaged ^= change;
    ASSERT_NE(problem(), "");
    damaged ^= change;
  }
  EXPECT_EQ(problem(), "");
}

TEST_F(DamagedPoint, IsNamedWithItsFileAndTensor) {
  auto& bytes = disk_.content(tensors_path);
  bytes.back() ^= std::byte{1};
  EXPECT_EQ(problem(), "'" + tensors_path + "' is damaged: the bytes of tensor 'mask' do not fit their hash");
  bytes.back() ^= std::byte{1};
  disk_.content(sections_path).back() ^= std::byte{1};
  EXPECT_EQ(problem(),
            "'" + sections_path + "' is damaged: the bytes of section 'training' do not fit their hash");
  disk_.content(manifest_path)[40] ^= std::byte{1};
  EXPECT_EQ(problem(), "'" + manifest_path + "' is damaged: its bytes do not fit their hash");
}

TEST_F(DamagedPoint, IsFoundWhenFilesOfAnotherPointLieInIt) {
  ASSERT_TRUE(store_.save(point(step(0, 2), 2)));
  disk_.content(tensors_path) = disk_.content(testing::run_folder + "/call_0.step_2/tensors.safetensors");
  EXPECT_NE(problem().find("do not fit their hash"), std::string::npos) << problem();
  disk_.content(manifest_path) = disk_.content(testing::run_folder + "/call_0.step_2/manifest.json");
  disk_.content(sections_path) = disk_.content(testing::run_folder + "/call_0.step_2/sections.bin");
  EXPECT_EQ(problem(), "'" + folder + "' is step 2 of call 0 of worker 1 of 4 in job 0123456789abcdef");
}

// ---- Manifests of an enemy, with a right hash -------------------------------------------------------------

std::string sealed(const std::string& rest) { return "{\"hash\": \"" + hex(hash_text(rest)) + rest; }

std::string manifest_with(const std::string& from, const std::string& to) {
  Manifest manifest{.job = testing::job, .world_size = 4, .rank = 1, .id = step(0, 1), .header_bytes = 64};
  manifest.tensors.push_back({.name = "weight", .dtype = DType::float32, .shape = {2, 3}, .hash = 1});
  manifest.sections.push_back({.name = "training", .size_bytes = 7, .hash = 2});
  std::string rest = encode_manifest(manifest).value().substr(26);
  const auto at = rest.find(from);
  MUSTER_CHECK(at != std::string::npos, "the manifest has another form");
  return sealed(rest.replace(at, from.size(), to));
}

TEST(Manifest, IsReadAsItWasWritten) {
  const auto read = decode_manifest(manifest_with("", ""), "m");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->id, step(0, 1));
  EXPECT_EQ(read->tensors_bytes(), 64u + 24u);
  EXPECT_EQ(read->sections_bytes(), 7u);
}

TEST(Manifest, RefusesWhatCannotBe) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    const auto read = decode_manifest(manifest_with(from, to), "m");
    return read ? "taken" : read.error().message;
  };
  EXPECT_THAT(refusal("[2,3]", "[9223372036854775808,3]"), Mentions("'m'", "'shape'", "missing"));
  EXPECT_THAT(refusal("[2,3]", "[4294967296,4294967296]"), Mentions("'m'", "'shape'", "missing"));
  EXPECT_THAT(refusal("[2,3]", "[-2,3]"), Mentions("'m'", "'shape'", "missing"));
  EXPECT_THAT(refusal("[2,3]", "[0,4611686018427387904,2]"), Mentions("'m'", "'shape'", "missing"));
  EXPECT_THAT(refusal("[2,3]", "2"), Mentions("'m'", "'shape'", "missing"));
  EXPECT_THAT(
      refusal("\"size\":7",
              "\"size\":18446744073709551615}, {\"name\":\"b\",\"hash\":\"0000000000000000\",\"size\":7"),
      Mentions("'m'", "sections"));
  EXPECT_THAT(refusal("\"float32\"", "\"pickle\""), Mentions("'m'", "'dtype'", "missing"));
  EXPECT_THAT(refusal("\"job\": \"0123", "\"job\": \"../3"), Mentions("'m'", "'job'", "missing"));
  EXPECT_THAT(refusal("\"world\": 4", "\"world\": -4"), Mentions("'m'", "'world'", "missing"));
  EXPECT_THAT(refusal("\"world\": 4, ", ""), Mentions("'m'", "'world'", "missing"));
  EXPECT_THAT(refusal("\"version\": 1", "\"version\": 2"),
              Mentions("'m'", "version 2", "reads", "version 1"));
  EXPECT_THAT(refusal("\"sections\": [", "\"tensors\": ["), Mentions("'m'", "'tensors'", "twice"));
  EXPECT_THAT(refusal("}]}", "}"), Mentions("'m'", "JSON", "line 10", "column 1"));
}

TEST(Manifest, SurvivesBytesOfAllKinds) {
  const std::uint64_t seed = entropy();
  std::cout << "seed " << seed << "\n";
  const RandomStream random(seed, 0);
  const std::string good = manifest_with("", "").substr(26);
  std::uint64_t drawn = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string rest = good;
    for (int changes = 0; changes < 3; ++changes) {
      const std::uint64_t place = random.below(drawn++, rest.size());
      rest[place] = static_cast<char>(random.below(drawn++, 256));
    }
    const auto read = decode_manifest(sealed(rest), "m");
    if (!read) {
      EXPECT_TRUE(read.error().code == Code::corrupt || read.error().code == Code::not_provided);
    }
  }
}

}  // namespace run_store_damage_test
}  // namespace
}  // namespace muster::checkpoint
