// A pass that begins after some items gives the rest of the whole pass, bit by bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <string>

#include "digits.h"
#include "muster/data/data.h"
#include "photographs.h"

namespace muster::data {
namespace {
namespace skip_test {

using namespace muster::data::testing;

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.bytes(), b.bytes(), a.size_bytes()) == 0;
}

class Even final : public Operation {
 public:
  std::string name() const override { return "even"; }
  Result<std::vector<Tensor>> apply(std::span<const Tensor> values, Draw) const override {
    return std::vector{Tensor::scalar<bool>(*values[0].data<std::uint32_t>() % 2 == 0)};
  }
};

class Counting final : public Operation {
 public:
  explicit Counting(std::atomic<int>& calls) : calls_(calls) {}
  std::string name() const override { return "counting"; }
  Result<std::vector<Tensor>> apply(std::span<const Tensor> values, Draw) const override {
    ++calls_;
    return std::vector(values.begin(), values.end());
  }

 private:
  std::atomic<int>& calls_;
};

class Countdown final : public RowSequence {
 public:
  Result<std::optional<std::vector<Tensor>>> next() override {
    if (left_ == 0) return std::nullopt;
    return std::vector{Tensor::scalar(--left_)};
  }

 private:
  std::int32_t left_ = 23;
};

std::map<std::string, Dataset> datasets() {
  const Dataset pictures = photographs(50, true);
  const Dataset mapped = pictures.map({random_horizontal_flip(), resize({8, 8})}, {"image"});
  std::map<std::string, Dataset> made{
      {"source", pictures},
      {"batch", pictures.batch(8)},
      {"dropped remainder", pictures.batch(8, true)},
      {"map", mapped.batch(7)},
      {"map of batches", pictures.batch(6).map({rescale(0.5F, 0)}, {"image"})},
      {"shuffle", mapped.shuffle(9).batch(4)},
      {"shuffled batches", mapped.batch(3).shuffle(5)},
      {"repeat", mapped.batch(8).repeat(3)},
      {"batch of repeat", mapped.repeat(2).batch(8)},
      {"take and skip", mapped.skip(7).take(30).batch(4).skip(1)},
      {"filter", pictures.filter(std::make_shared<Even>(), {"label"}).batch(4)},
      {"columns", mapped.project({"label"}).rename({"label"}, {"class"}).batch(5)},
      {"zip", Dataset::zip({mapped.project({"image"}), pictures.project({"label"}).skip(3)}).batch(4)},
      {"concat", Dataset::concat({mapped, photographs(20).map({resize({8, 8})}, {"image"})}).batch(6)}};
  made.emplace("sequence",
               generated({"left"}, [](std::uint64_t) { return std::make_unique<Countdown>(); }).batch(4));
  return made;
}

TEST(Skip, GivesTheRestOfTheWholePass) {
  for (const auto& [name, dataset] : datasets()) {
    const std::vector<Item> whole = items_of(dataset, 5, 2);
    for (std::size_t skipped = 0; skipped <= whole.size() + 1; ++skipped) {
      auto pass = dataset.iterate({.seed = 5, .epoch = 2, .skip_items = skipped}).value();
      for (std::size_t i = skipped; i < whole.size(); ++i) {
        const auto item = pass.next().value();
        ASSERT_TRUE(item) << name << " after " << skipped << " lacks item " << i;
        for (std::size_t column = 0; column < item->size(); ++column)
          ASSERT_TRUE(same((*item)[column], whole[i][column])) << name << ", " << skipped << ", item " << i;
      }
      EXPECT_FALSE(pass.next().value()) << name << " after " << skipped << " has too many";
    }
  }
}

TEST(Skip, MakesNothingThatIsNotAskedFor) {
  std::atomic<int> calls = 0;
  const auto counted = std::make_shared<Counting>(calls);
  const Dataset dataset = photographs(64, true).map({counted}, {"image"}).batch(4);
  auto pass = dataset.iterate({.skip_items = 15}).value();
  ASSERT_TRUE(pass.next().value());
  EXPECT_FALSE(pass.next().value());
  EXPECT_EQ(calls, 4);
}

}  // namespace skip_test
}  // namespace
}  // namespace muster::data
