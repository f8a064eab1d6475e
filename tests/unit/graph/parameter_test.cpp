// Parameters that a plan keeps in another order, by a format and primitives made here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "muster/graph/execution/parameter_formats.h"
#include "muster/graph/graph.h"

namespace muster::graph {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t seed = 1;

// Four floats, turned by some places.
class Turned final : public Format {
 public:
  explicit Turned(std::size_t places) : places_(places) {}
  std::size_t size_bytes() const override { return 4 * sizeof(float); }
  std::string name() const override { return "turned"; }
  bool equals(const Format& other) const override {
    return static_cast<const Turned&>(other).places_ == places_;
  }

 private:
  std::size_t places_;
};

class Turn final : public Primitive {
 public:
  Turn(std::size_t places, int& runs) : places_(places), runs_(runs) {}
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte*, int) const override {
    std::array<float, 4> x{}, y{};
    std::memcpy(x.data(), inputs[0], sizeof x);
    for (std::size_t i = 0; i < x.size(); ++i) y[(i + places_) % y.size()] = x[i];
    std::memcpy(outputs[0], y.data(), sizeof y);
    ++runs_;
    return true;
  }

 private:
  std::size_t places_;
  int& runs_;
};

class ParameterInAFormat : public ::testing::Test {
 protected:
  ParameterFormatPtr turned(std::size_t places) {
    return std::make_shared<const ParameterFormat>(ParameterFormat{
        std::make_shared<const Turned>(places), std::make_shared<const Turn>(places, to_format),
        std::make_shared<const Turn>(4 - places, to_plain)});
  }
  std::span<float> lying(const ParameterFormatPtr& format, bool to_write) {
    return {reinterpret_cast<float*>(parameter.in_format(format, seed, to_write)), 4};
  }

  int to_format = 0;
  int to_plain = 0;
  Parameter parameter{"p", Tensor::from(std::span<const float>(std::array{1.F, 2.F, 3.F, 4.F}), {4})};
};

TEST_F(ParameterInAFormat, IsBroughtThereOnceHoweverOftenItIsRead) {
  const ParameterFormatPtr format = turned(1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(lying(format, false), ElementsAre(4, 1, 2, 3));
    EXPECT_THAT(parameter.storage().span<float>(), ElementsAre(1, 2, 3, 4));
  }
  EXPECT_EQ(to_format, 1);
  EXPECT_EQ(to_plain, 0);
}

TEST_F(ParameterInAFormat, IsReadInRowMajorOrderAfterItWasWritten) {
  const ParameterFormatPtr format = turned(1);
  lying(format, true)[0] = -4;
  EXPECT_THAT(parameter.storage().span<float>(), ElementsAre(1, 2, 3, -4));
  EXPECT_THAT(parameter.materialize(seed).span<float>(), ElementsAre(1, 2, 3, -4));
  EXPECT_THAT(lying(format, true), ElementsAre(-4, 1, 2, 3));
  EXPECT_EQ(to_format, 1) << "what was read is still true in the format";
  EXPECT_EQ(to_plain, 1);
}

TEST_F(ParameterInAFormat, ATensorThatWasReadBeforeKeepsWhatItHeld) {
  const Tensor before = parameter.storage();
  lying(turned(1), true)[0] = -4;
  EXPECT_THAT(parameter.storage().span<float>(), ElementsAre(1, 2, 3, -4));
  EXPECT_THAT(before.span<float>(), ElementsAre(1, 2, 3, 4));
}

TEST_F(ParameterInAFormat, IsFoundThereAfterItWasSetOrWrittenOtherwise) {
  const ParameterFormatPtr format = turned(1);
  lying(format, true)[0] = -4;
  ASSERT_TRUE(parameter.set(Tensor::from(std::span<const float>(std::array{5.F, 6.F, 7.F, 8.F}), {4})));
  EXPECT_THAT(parameter.storage().span<float>(), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(lying(format, true), ElementsAre(8, 5, 6, 7));
  parameter.writable(seed).data<float>()[0] = 0;
  EXPECT_THAT(lying(format, false), ElementsAre(8, 0, 6, 7));
}

TEST_F(ParameterInAFormat, IsCopiedOutInRowMajorOrderAndStaysWhereItIs) {
  const ParameterFormatPtr format = turned(1);
  std::array<float, 4> copy{};
  const auto copied = [&] {
    parameter.copy_to(reinterpret_cast<std::byte*>(copy.data()), seed, 2);
    return copy;
  };
  EXPECT_THAT(copied(), ElementsAre(1, 2, 3, 4));
  const std::span<float> there = lying(format, true);
  there[0] = -4;
  EXPECT_THAT(copied(), ElementsAre(1, 2, 3, -4));
  there[0] = 5;
  EXPECT_THAT(copied(), ElementsAre(1, 2, 3, 5)) << "the order of before is not kept";
}

TEST_F(ParameterInAFormat, MayBeWantedInOneAfterAnother) {
  lying(turned(1), true)[0] = -4;
  EXPECT_THAT(lying(turned(2), true), ElementsAre(3, -4, 1, 2));
  EXPECT_THAT(lying(turned(1), false), ElementsAre(-4, 1, 2, 3));
  EXPECT_THAT(parameter.storage().span<float>(), ElementsAre(1, 2, 3, -4));
}

TEST_F(ParameterInAFormat, IsMadeThereFromItsInitializer) {
  const Initializer counting = [](const Tensor& out, const RandomStream&) {
    for (int i = 0; i < 4; ++i) out.data<float>()[i] = static_cast<float>(i);
  };
  Parameter fresh("fresh", TensorType{DType::float32, {4}}, counting);
  const auto* there = reinterpret_cast<const float*>(fresh.in_format(turned(3), seed, true));
  EXPECT_THAT(std::span(there, 4), ElementsAre(1, 2, 3, 0));
  EXPECT_TRUE(fresh.materialized());
}

Tensor matrix(const std::vector<float>& elements) { return Tensor::from<float>(elements, Shape{3, 2}); }

TEST(ParameterOnServers, IsARowOfZerosThatTakesTheWholeTableAndIsNotWritten) {
  Parameter table("table", matrix({1, 2, 3, 4, 5, 6}));
  table.mark_table();
  table.leave_to_servers();
  EXPECT_EQ(table.shape(), (Shape{1, 2}));
  EXPECT_THAT(table.materialize(seed).span<float>(), ElementsAre(0, 0));
  EXPECT_EQ(table.served_rows()->shape, (Shape{3, 2}));
  EXPECT_THAT(table.served_rows()->values.span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  ASSERT_TRUE(table.set(matrix({6, 5, 4, 3, 2, 1})));
  EXPECT_THAT(table.served_rows()->values.span<float>(), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_THAT(table.materialize(seed).span<float>(), ElementsAre(0, 0));
  EXPECT_FALSE(table.set(Tensor::zeros(DType::float32, {2, 2})));
  EXPECT_THROW(table.writable(seed), Exception);
}

}  // namespace
}  // namespace muster::graph
