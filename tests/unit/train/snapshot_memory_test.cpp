#include "muster/train/snapshot_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

namespace muster::train {
namespace {

Tensor numbers(float first) {
  const std::array values{first, first + 1, first + 2};
  return Tensor::from<float>(values, {3});
}

TEST(SnapshotMemory, CopiesAreEqualAndTheirOwn) {
  SnapshotMemory memory;
  const Tensor original = numbers(1);
  const Tensor copy = memory.copy(original);
  *original.data<float>() = 7;
  EXPECT_EQ(copy.shape(), original.shape());
  EXPECT_EQ(copy.span<float>()[0], 1);
  EXPECT_EQ(copy.span<float>()[2], 3);
}

TEST(SnapshotMemory, MakesTheNextCopyWhereTheLastOneWas) {
  SnapshotMemory memory;
  std::optional<Tensor> first = memory.copy(numbers(1));
  const std::byte* const place = first->bytes();
  first.reset();
  EXPECT_EQ(memory.copy(numbers(5)).bytes(), place);
}

TEST(SnapshotMemory, LeavesACopyThatIsHeldAlone) {
  SnapshotMemory memory;
  const Tensor held = memory.copy(numbers(1));
  const Tensor next = memory.copy(numbers(5));
  EXPECT_NE(held.bytes(), next.bytes());
  EXPECT_EQ(held.span<float>()[0], 1);
}

TEST(SnapshotMemory, CopiesOutliveIt) {
  std::optional<SnapshotMemory> memory(std::in_place);
  const Tensor copy = memory->copy(numbers(1));
  memory.reset();
  EXPECT_EQ(copy.span<float>()[1], 2);
}

}  // namespace
}  // namespace muster::train
