#include "muster/train/snapshot_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>

#include "muster/checkpoint/checkpoint.h"

namespace muster::train {
namespace {

using graph::TensorType;

const std::array three_floats{TensorType{DType::float32, Shape{3}}};

TEST(SnapshotMemory, TensorsAreWhatWasAskedFor) {
  SnapshotMemory memory;
  const std::array types{TensorType{DType::uint8, Shape{5}}, TensorType{DType::float32, Shape{2, 3}},
                         TensorType{DType::int64, Shape{}}, TensorType{DType::float32, Shape{0, 7}}};
  const std::vector<Tensor> made = memory.tensors(types);
  ASSERT_EQ(made.size(), types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    EXPECT_EQ(made[i].dtype(), types[i].dtype);
    EXPECT_EQ(made[i].shape(), types[i].shape);
  }
}

TEST(SnapshotMemory, TensorsLieAsInTheFileOfAPoint) {
  SnapshotMemory memory;
  const std::array types{TensorType{DType::uint8, Shape{5}}, TensorType{DType::float32, Shape{2, 3}},
                         TensorType{DType::int64, Shape{2}}, TensorType{DType::float32, Shape{1}}};
  const std::vector<Tensor> made = memory.tensors(types);
  std::vector<checkpoint::Entry> entries;
  for (std::size_t i = 0; i < made.size(); ++i) entries.push_back({std::to_string(i), made[i]});
  const auto header = checkpoint::safetensors::plan(entries);
  ASSERT_TRUE(header);
  const std::byte* const first = made[2].bytes();
  for (const auto& place : header->places) {
    const std::byte* const here = made[static_cast<std::size_t>(std::stoi(place.name))].bytes();
    EXPECT_EQ(here - first, static_cast<std::ptrdiff_t>(place.begin - header->bytes.size())) << place.name;
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 4096, header->bytes.size() % 4096);
}

TEST(SnapshotMemory, MakesTheNextTensorsWhereTheLastOnesWere) {
  SnapshotMemory memory;
  std::optional<std::vector<Tensor>> first = memory.tensors(three_floats);
  const std::byte* const place = first->front().bytes();
  first.reset();
  EXPECT_EQ(memory.tensors(three_floats).front().bytes(), place);
}

TEST(SnapshotMemory, LeavesTensorsThatAreHeldAlone) {
  SnapshotMemory memory;
  const std::array two{TensorType{DType::float32, Shape{3}}, TensorType{DType::float32, Shape{3}}};
  std::optional<Tensor> held = memory.tensors(two).back();  // one of them is enough
  const std::byte* const place = held->bytes() - 12;
  const std::vector<Tensor> next = memory.tensors(two);
  EXPECT_NE(next.front().bytes(), place);
  held.reset();
  EXPECT_EQ(memory.tensors(two).front().bytes(), place);
}

TEST(SnapshotMemory, ForgetsWhatIsTooSmallForATraining) {
  SnapshotMemory memory;
  const std::array large{TensorType{DType::float32, Shape{3 << 20}}};
  (void)memory.tensors(three_floats);
  const std::byte* const place = memory.tensors(large).front().bytes();
  EXPECT_EQ(memory.tensors(three_floats).front().bytes(), place) << "what is large enough serves the small";
}

TEST(SnapshotMemory, TensorsOutliveIt) {
  std::optional<SnapshotMemory> memory(std::in_place);
  const Tensor made = memory->tensors(three_floats).front();
  *made.data<float>() = 2;
  memory.reset();
  EXPECT_EQ(made.span<float>()[0], 2);
}

}  // namespace
}  // namespace muster::train
