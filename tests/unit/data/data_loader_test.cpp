#include "muster/data/data_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/data/data.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::data {
namespace {
namespace data_loader_test {

Dataset numbers(std::vector<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return slices({"number"}, {Tensor::from<float>(values, {count})}, {.shuffle = false});
}

TEST(DataLoader, GivesEachBatchOfOnePassInOrder) {
  std::vector<float> seen;
  for (const Item& batch : numbers({1, 2, 3, 4, 5}).batch(2).loader({}))
    seen.insert(seen.end(), batch[0].span<float>().begin(), batch[0].span<float>().end());
  EXPECT_THAT(seen, ::testing::ElementsAre(1, 2, 3, 4, 5));
}

TEST(DataLoader, IsEmptyWhereTheDatasetIs) {
  for (const Item& item : numbers({1, 2}).skip(2).loader({})) FAIL() << item.size();
}

class BrokenAtTwo : public RowSource {
 public:
  std::int64_t rows() const override { return 3; }
  Result<std::vector<Tensor>> row(std::int64_t index) const override {
    if (index == 2) return fail(Code::io, "the third row cannot be read");
    return std::vector{Tensor::scalar(1.0F)};
  }
};

TEST(DataLoader, ThrowsTheErrorOfTheDescription) {
  EXPECT_THAT(ERROR_OF(numbers({1}).batch(0).loader({}).end()), ::testing::HasSubstr("batch"));
}

TEST(DataLoader, ThrowsTheErrorOfARowWhenItsTurnComes) {
  DataLoader loader = generated({"number"}, std::make_shared<BrokenAtTwo>(), {.shuffle = false}).loader({});
  auto item = loader.begin();
  ++item;
  EXPECT_THAT(ERROR_OF(++item), Mentions("third", "read"));
}

}  // namespace data_loader_test
}  // namespace
}  // namespace muster::data
