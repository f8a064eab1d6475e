#include "muster/checkpoint/state_file.h"

#include <gtest/gtest.h>

#include <array>

#include "muster/checkpoint/store.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {

using testing::MemoryStorage;

Tensor numbers(float first) { return Tensor::from<float>(std::array{first, -2.0F}, {2}); }

Point a_point() {
  return {.id = testing::step(0, 12),
          .tensors = {{"w", numbers(1)}, {"callback 0/losses", numbers(3)}},
          .state = {{"training", R"({"steps":12})"}, {"empty", ""}},
          .own = "callback 0 keeps a state of each worker's own"};
}

std::string reading(const Storage& disk, const std::string& path) {
  const auto loaded = load_state(path, disk);
  return loaded ? "read" : loaded.error().message;
}

TEST(StateFile, GivesBackThePointAndWhoseItIs) {
  MemoryStorage disk;
  ASSERT_TRUE(save_state("/f/run.rank_1.state", a_point(), {.world_size = 4, .rank = 1}, {}, disk));
  const SavedState saved = load_state("/f/run.rank_1.state", disk).value();
  EXPECT_EQ(saved.point.id, testing::step(0, 12));
  EXPECT_EQ(state_head("/f/run.rank_1.state", disk)->id, testing::step(0, 12));
  EXPECT_EQ(saved.owner.world_size, 4U);
  EXPECT_EQ(saved.owner.rank, 1U);
  EXPECT_EQ(saved.point.state, a_point().state);
  EXPECT_EQ(saved.point.own, a_point().own);
  ASSERT_EQ(saved.point.tensors.size(), 2U);
  EXPECT_EQ(saved.point.tensors[1].name, "callback 0/losses");
  EXPECT_EQ(saved.point.tensors[1].value.span<float>()[0], 3);
}

TEST(StateFile, TakesWhatTheCheckpointBesideItHasAndNothingElse) {
  MemoryStorage disk;
  ASSERT_TRUE(save_state("/f/net-1_2.state", a_point(), {}, {.names = {"w"}}, disk));
  EXPECT_THAT(reading(disk, "/f/net-1_2.state"), Mentions("net-1_2.state", "needs", "net-1_2.ckpt"));
  ASSERT_TRUE(save("/f/net-1_2.ckpt", std::array{Entry{"w", numbers(1)}}, disk));
  EXPECT_EQ(reading(disk, "/f/net-1_2.state"), "read");
  ASSERT_TRUE(save("/f/net-1_2.ckpt", std::array{Entry{"w", numbers(9)}}, disk));
  EXPECT_THAT(reading(disk, "/f/net-1_2.state"), Mentions("net-1_2.ckpt", "'w'", "other values"));
}

TEST(StateFile, SaysWhichFormatTheCheckpointBesideItHas) {
  MemoryStorage disk;
  const TensorsBeside beside{.names = {"w"}, .ending = ".safetensors"};
  ASSERT_TRUE(save_state("/f/net-1_2.state", a_point(), {}, beside, disk));
  ASSERT_TRUE(save("/f/net-1_2.ckpt", std::array{Entry{"w", numbers(9)}}, disk)) << "of an earlier training";
  EXPECT_THAT(reading(disk, "/f/net-1_2.state"), Mentions("needs", "net-1_2.safetensors"));
  ASSERT_TRUE(save("/f/net-1_2.safetensors", std::array{Entry{"w", numbers(1)}}, disk));
  EXPECT_EQ(reading(disk, "/f/net-1_2.state"), "read");
}

TEST(StateFile, RefusesEveryChangedByteAndEveryMissingOne) {
  MemoryStorage disk;
  ASSERT_TRUE(save_state("/f/a.state", a_point(), {}, {}, disk));
  const std::vector<std::byte> whole = disk.read("/f/a.state").value();
  // Behind the text of the header there are spaces up to the first element: any space may be there.
  std::size_t text_end = whole.size() - 16;
  while (whole[text_end - 1] == std::byte{' '}) --text_end;
  for (std::size_t i = 0; i < whole.size(); i += i < text_end ? 1 : whole.size() - 16 - i > 16 ? 97 : 1) {
    std::vector<std::byte> changed = whole;
    changed[i] ^= std::byte{1};
    ASSERT_TRUE(disk.write("/f/b.state", changed));
    EXPECT_NE(reading(disk, "/f/b.state"), "read") << "byte " << i;
    ASSERT_TRUE(disk.write("/f/b.state", std::span(whole).first(i)));
    EXPECT_NE(reading(disk, "/f/b.state"), "read") << "cut at " << i;
  }
}

TEST(StateFile, HasANameForEachWorker) {
  EXPECT_EQ(state_path("c/net-1_2.ckpt", {}), "c/net-1_2.state");
  EXPECT_EQ(state_path("c/net-1_2.safetensors", {}), "c/net-1_2.state");
  EXPECT_EQ(state_path("run", {.world_size = 2, .rank = 1}), "run.rank_1.state");
  EXPECT_EQ(state_path("run.rank_0.state", {.world_size = 2, .rank = 1}), "run.rank_1.state");
  EXPECT_EQ(previous_state_path("run.state", {.world_size = 2, .rank = 1}), "run.previous.rank_1.state");
  EXPECT_EQ(checkpoint_of_state("c/net-1_2.rank_11.state"), "c/net-1_2.ckpt");
  EXPECT_EQ(checkpoint_of_state("c/a.rank_x.state"), "c/a.rank_x.ckpt");
  EXPECT_EQ(checkpoint_of_state("c/a.state", ".safetensors"), "c/a.safetensors");
}

TEST(CheckpointName, OrdersTheFilesOfTrainings) {
  EXPECT_EQ(checkpoint_name("net-2_10.ckpt", "net"), (CheckpointName{0, 2, 10}));
  EXPECT_EQ(checkpoint_name("net_3-1_5.ckpt", "net"), (CheckpointName{3, 1, 5}));
  EXPECT_EQ(checkpoint_name("net_3-1_5.safetensors", "net"), (CheckpointName{3, 1, 5}));
  EXPECT_LT(checkpoint_name("net-2_10.ckpt", "net"), checkpoint_name("net_1-1_5.ckpt", "net"));
  for (const char* other : {"net-1_2.state", "net-1.ckpt", "net-a_2.ckpt", "net-1_2x.ckpt", "nets-1_2.ckpt"})
    EXPECT_FALSE(checkpoint_name(other, "net")) << other;
}

}  // namespace
}  // namespace muster::checkpoint
