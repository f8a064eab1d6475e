#include "muster/checkpoint/conversion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "muster/checkpoint/safetensors.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/memory_storage.h"

namespace muster::checkpoint {
namespace {

using testing::MemoryStorage;
using Cuts = MeshLayout::Cuts;

std::string message_of(const auto& result) { return result ? "no error" : result.error().message; }

Entry counted(std::string name, DType dtype, const Shape& shape) {
  Entry made{std::move(name), Tensor(dtype, shape)};
  std::mt19937 random(static_cast<unsigned>(made.name.size()));
  for (std::size_t i = 0; i < made.value.size_bytes(); ++i)
    made.value.bytes()[i] = static_cast<std::byte>(random());
  return made;
}

std::vector<Entry> a_net() {
  std::vector<Entry> made;
  made.push_back(counted("fc1.weight", DType::float32, {8, 6}));
  made.push_back(counted("fc2.weight", DType::bfloat16, {4, 12, 3}));
  made.push_back(counted("fc1.bias", DType::float64, {8}));
  made.push_back(counted("step", DType::int64, {}));
  made.push_back(counted("none", DType::float32, {0, 4}));
  made.push_back(counted("moments.fc1.weight", DType::float32, {8, 6}));
  return made;
}

void expect_alike(std::vector<Entry> found, std::vector<Entry> wanted) {
  std::ranges::sort(found, {}, &Entry::name);
  std::ranges::sort(wanted, {}, &Entry::name);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, wanted[i].name);
    ASSERT_EQ(found[i].value.dtype(), wanted[i].value.dtype());
    ASSERT_EQ(found[i].value.shape(), wanted[i].value.shape());
    EXPECT_EQ(std::memcmp(found[i].value.bytes(), wanted[i].value.bytes(), wanted[i].value.size_bytes()), 0)
        << found[i].name;
  }
}

std::vector<std::string> names(const std::string& folder, std::uint32_t ranks, std::string_view suffix) {
  std::vector<std::string> made;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    made.push_back(fmt::format("{}/rank_{}{}", folder, rank, suffix));
  return made;
}

// A layout over up to eight ranks that fits a_net().
MeshLayout drawn(std::mt19937& random) {
  const auto below = [&random](std::size_t count) { return random() % count; };
  constexpr std::uint32_t sizes[][2] = {{1, 2}, {2, 1}, {2, 2}, {2, 4}, {4, 2}, {4, 1}};
  const auto& size = sizes[below(std::size(sizes))];
  MeshLayout made{.axes = {{"data", size[0]}, {"model", size[1]}}};
  const std::vector<std::string> each[] = {{}, {"data"}, {"model"}};
  const auto cuts = [&](std::int64_t first, std::int64_t second) -> Cuts {
    const auto a = below(3), b = below(3);
    Cuts drawn{each[a], a == b ? each[0] : each[b]};
    if (first % made.parts(drawn, 0) != 0) drawn[0].clear();
    if (second % made.parts(drawn, 1) != 0) drawn[1].clear();
    return drawn;
  };
  made.rules.push_back({"fc1.weight", cuts(8, 6)});
  Cuts last = cuts(4, 12);
  last.emplace_back();
  made.rules.push_back({"fc2.*", std::move(last)});
  if (below(2) == 0) made.rules.push_back({"fc1.bias", {{"data", "model"}}});
  return made;
}

TEST(Conversion, GivesTheSameBitsOfAnyLayoutInAnyOtherAndInOneFile) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    MemoryStorage storage;
    ASSERT_TRUE(save("f/net.ckpt", a_net(), storage));
    std::vector<std::string> files{"f/net.ckpt"};
    for (int step = 0; step < 3; ++step) {
      const MeshLayout to = drawn(random);
      const auto next = names(fmt::format("step_{}", step), to.world_size(), ".safetensors");
      const auto done = convert({.sources = files, .destinations = next, .to = to}, storage);
      ASSERT_TRUE(done) << "seed " << seed << ": " << done.error().message;
      files = next;
    }
    ASSERT_TRUE(
        convert({.sources = files, .destinations = {"f/whole.ckpt", "f/whole.safetensors"}}, storage));
    expect_alike(load("f/whole.ckpt", storage).value(), a_net());
    expect_alike(load("f/whole.safetensors", storage).value(), a_net());
    expect_alike(load_joined(files, {}, storage).value(), a_net());
  }
}

const MeshLayout two_by_two{.axes = {{"data", 2}, {"model", 2}}, .rules = {{"fc1.weight", {{"model"}, {}}}}};

TEST(Conversion, CutsAParameterAndTheStateOfItsOptimizerAlike) {
  MemoryStorage storage;
  ASSERT_TRUE(save("f/net.ckpt", a_net(), storage));
  const auto files = names("to", 4, ".safetensors");
  const auto done = convert({.sources = {"f/net.ckpt"}, .destinations = files, .to = two_by_two}, storage);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->cut, 2);
  for (const Entry& entry : load(files[1], storage).value()) {
    if (!entry.name.ends_with("fc1.weight")) continue;
    EXPECT_EQ(entry.value.shape(), (Shape{4, 6}));
    const std::vector<Entry> net = a_net();
    const Tensor whole = std::ranges::find(net, entry.name, &Entry::name)->value;
    EXPECT_EQ(std::memcmp(entry.value.bytes(), whole.bytes() + 4 * 6 * 4, entry.value.size_bytes()), 0);
  }
}

TEST(Conversion, JoinsPiecesThatDoNotSayTheirLayoutByOneThatIsGiven) {
  MemoryStorage storage;
  ASSERT_TRUE(save("f/net.ckpt", a_net(), storage));
  const auto files = names("to", 4, ".ckpt");
  ASSERT_TRUE(convert({.sources = {"f/net.ckpt"}, .destinations = files, .to = two_by_two}, storage));
  ASSERT_TRUE(convert({.sources = files, .destinations = {"f/whole.ckpt"}}, storage));
  expect_alike(load("f/whole.ckpt", storage).value(), a_net());
  for (const std::string& file : files)  // as other programs write them
    ASSERT_TRUE(save(file, load(file, storage).value(), storage));
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(convert({.sources = files, .destinations = {"f/whole.ckpt"}}, storage));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Mentions("'fc1.weight'", "differ", "--from"));
  MeshLayout from = two_by_two;
  from.rules.push_back({"moments.fc1.weight", {{"model"}, {}}});
  ASSERT_TRUE(convert({.sources = files, .from = from, .destinations = {"f/whole.ckpt"}}, storage));
  expect_alike(load("f/whole.ckpt", storage).value(), a_net());
  EXPECT_THAT(
      message_of(convert({.sources = {files[0]}, .from = from, .destinations = {"f/a.ckpt"}}, storage)),
      Mentions("4 ranks, and there are 1 files"));
}

TEST(Conversion, NamesShapesAndWhatWouldDoWhereALayoutDoesNotFit) {
  MemoryStorage storage;
  ASSERT_TRUE(save("f/net.ckpt", a_net(), storage));
  const auto refusal = [&](std::vector<MeshLayout::Axis> axes, std::string pattern, Cuts cuts) {
    MeshLayout to{.axes = std::move(axes), .rules = {{std::move(pattern), std::move(cuts)}}};
    const auto files = names("to", to.world_size(), ".safetensors");
    return convert({.sources = {"f/net.ckpt"}, .destinations = files, .to = std::move(to)}, storage);
  };
  EXPECT_THAT(message_of(refusal({{"model", 4}}, "fc1.weight", {{}, {"model"}})),
              Mentions("'fc1.weight' is (8, 6): dimension 1 of 6 cannot be cut into 4 equal parts by model"));
  EXPECT_THAT(message_of(refusal({{"model", 4}}, "fc1.weight", {{}, {"model"}})),
              Mentions("1, 2, 3, 6 parts would do"));
  EXPECT_THAT(message_of(refusal({{"model", 2}}, "fc1.weight", {{"model"}})),
              Mentions("is (8, 6), and its layout"));
  EXPECT_THAT(message_of(refusal({{"model", 2}}, "fc1.weight", {{"modle"}, {}})), Mentions("it has model=2"));
  EXPECT_THAT(message_of(refusal({{"model", 2}}, "fc1.weight", {{"model"}, {"model"}})), Mentions("twice"));
  EXPECT_THAT(message_of(refusal({{"model", 2}}, "fc3.*", {{"model"}, {}})),
              Mentions("no tensor is named 'fc3.*'"));
  EXPECT_TRUE(storage.list("to").value_or(std::vector<std::string>{}).empty());
}

TEST(Conversion, RefusesPiecesOfWhichSomeAreMissingOrOfAnotherLayout) {
  MemoryStorage storage;
  ASSERT_TRUE(save("f/net.ckpt", a_net(), storage));
  const auto files = names("to", 4, ".safetensors");
  ASSERT_TRUE(convert({.sources = {"f/net.ckpt"}, .destinations = files, .to = two_by_two}, storage));
  EXPECT_THAT(message_of(load_joined({files[0], files[2]}, {}, storage)),
              Mentions("of its 48 elements the files have 24"));
  const MeshLayout columns{.axes = {{"model", 2}}, .rules = {{"fc1.weight", {{}, {"model"}}}}};
  const auto others = names("other", 2, ".safetensors");
  ASSERT_TRUE(convert({.sources = {"f/net.ckpt"}, .destinations = others, .to = columns}, storage));
  EXPECT_THAT(message_of(load_joined({files[0], others[1]}, {}, storage)), Mentions("files of one layout"));
}

// The file of one of two ranks, as a training writes it.
void save_piece(const std::string& path, std::uint32_t rank, const std::string& training, std::int64_t step,
                MemoryStorage& storage) {
  const LayoutManifest manifest{.layout = {.axes = {{"model", 2}}, .rules = {{"weight", {{"model"}, {}}}}},
                                .rank = rank,
                                .shapes = {{"weight", {8, 6}}},
                                .training = training,
                                .steps = {{"weight", step}}};
  const std::vector<Entry> entries{counted("weight", DType::float32, {4, 6})};
  ASSERT_TRUE(save(path, entries, storage, encode_layout(manifest).value()));
}

TEST(Conversion, RefusesPiecesOfSeveralStepsAndNamesTheFilesOfEach) {
  for (const char* ending : {"ckpt", "safetensors"}) {
    MemoryStorage storage;
    const std::vector<std::string> files{fmt::format("to/rank_0.{}", ending),
                                         fmt::format("to/rank_1.{}", ending)};
    save_piece(files[0], 0, "01ab", 100, storage);
    save_piece(files[1], 1, "01ab", 100, storage);
    EXPECT_TRUE(load_joined(files, {}, storage));
    save_piece(files[1], 1, "01ab", 200, storage);
    EXPECT_THAT(
        message_of(load_joined(files, {}, storage)),
        Mentions("'weight' are of several saves", fmt::format("step 100 of training 01ab in '{}'", files[0]),
                 fmt::format("step 200 of training 01ab in '{}'", files[1]), "folder of its own"));
    save_piece(files[1], 1, "23cd", 100, storage);
    EXPECT_THAT(message_of(convert({.sources = files, .destinations = {"whole.ckpt"}}, storage)),
                Mentions("step 100 of training 01ab in", "step 100 of training 23cd in"));
  }
}

TEST(Conversion, SaysInPiecesOfPiecesWhichSaveTheyAreOf) {
  MemoryStorage storage;
  const std::vector<std::string> files{"from/rank_0.ckpt", "from/rank_1.ckpt"};
  for (std::uint32_t rank = 0; rank < 2; ++rank) save_piece(files[rank], rank, "01ab", 100, storage);
  MeshLayout to{.axes = {{"model", 4}}, .rules = {{"weight", {{"model"}, {}}}}};
  const auto made = names("to", 4, ".safetensors");
  ASSERT_TRUE(convert({.sources = files, .destinations = made, .to = to}, storage));
  for (std::uint32_t rank = 0; rank < 2; ++rank) save_piece(files[rank], rank, "01ab", 200, storage);
  ASSERT_TRUE(
      convert({.sources = files, .destinations = names("next", 4, ".safetensors"), .to = to}, storage));
  EXPECT_THAT(
      message_of(load_joined({made[0], made[1], made[2], "next/rank_3.safetensors"}, {}, storage)),
      Mentions("step 100 of training 01ab in 'to/rank_0", "step 200 of training 01ab in 'next/rank_3"));
}

TEST(Conversion, LeavesNoHalfFileWhereTheDiskIsFull) {
  for (std::size_t at = 1; at < 12; ++at) {
    MemoryStorage storage;
    ASSERT_TRUE(save("f/net.ckpt", a_net(), storage));
    storage.set_fault({.at = storage.operations() + at, .kind = testing::Fault::Kind::forever});
    const auto done = convert({.sources = {"f/net.ckpt"}, .destinations = {"f/whole.safetensors"}}, storage);
    if (done) break;
    storage.set_fault({});
    for (const std::string& path : storage.paths())
      if (path.ends_with("f/whole.safetensors")) expect_alike(load(path, storage).value(), a_net());
  }
}

TEST(Conversion, ReadsTheManifestThatItHasWritten) {
  LayoutManifest manifest{.layout = two_by_two, .rank = 3, .shapes = {{"fc1.weight", {8, 6}}}};
  const auto read = decode_layout(encode_layout(manifest).value(), "file");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->rank, 3U);
  EXPECT_EQ(to_string(read->layout), "data=2, model=2");
  EXPECT_EQ(read->shapes.at("fc1.weight"), (Shape{8, 6}));
  EXPECT_EQ(save_text(*read, "fc1.weight"), "");
  manifest.training = "01ab";
  manifest.steps = {{"fc1.weight", 7}};
  EXPECT_EQ(save_text(decode_layout(encode_layout(manifest).value(), "file").value(), "fc1.weight"),
            "step 7 of training 01ab");
  for (const char* text :
       {"{}", "[1]", R"({"mesh":[["a",0]],"rank":0,"tensors":{}})",
        R"({"mesh":[["a",2]],"rank":2,"tensors":{}})",
        R"({"mesh":[["a",2]],"rank":0,"tensors":{},"training":3})",
        R"({"mesh":[["a",2]],"rank":0,"tensors":{"x":{"shape":[2],"cuts":[["a"]],"step":-1}}})",
        R"({"mesh":[["a",2]],"rank":0,"tensors":{"x":{"shape":[3],"cuts":[["a"]]}}})",
        R"({"mesh":[["a",2]],"rank":0,"tensors":{"x":{"shape":[4],"cuts":[["b"]]}}})"})
    EXPECT_EQ(decode_layout(text, "file").error().code, Code::corrupt) << text;
}

TEST(Conversion, FindsTheFilesOfRanksAndSaysWhatItFindsInstead) {
  MemoryStorage storage;
  for (const char* path :
       {"a/rank_0/net-1_9.ckpt", "a/rank_0/net-1_10.ckpt", "a/rank_1/net-1_10.ckpt", "b/rank_0.safetensors",
        "b/rank_2.safetensors", "c/x.ckpt", "c/y.ckpt", "d/z.ckpt"})
    ASSERT_TRUE(save(path, a_net(), storage));
  EXPECT_EQ(files_of_checkpoint("a", storage).value(),
            (std::vector<std::string>{"a/rank_0/net-1_10.ckpt", "a/rank_1/net-1_10.ckpt"}));
  EXPECT_THAT(message_of(files_of_checkpoint("b", storage)), Mentions("none of rank 1"));
  EXPECT_THAT(message_of(files_of_checkpoint("c", storage)), Mentions("2 files of tensors"));
  EXPECT_EQ(files_of_checkpoint("d/", storage).value(), std::vector<std::string>{"d/z.ckpt"});
}

}  // namespace
}  // namespace muster::checkpoint
