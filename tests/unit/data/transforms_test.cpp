#include "muster/data/transforms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "muster/data/chain.h"
#include "muster/data/formula.h"
#include "muster/data/look_up.h"

namespace muster::data {
namespace {
namespace transforms_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
Tensor tensor(std::vector<T> values, Shape shape) {
  return Tensor::from<T>(std::span<const T>(values), std::move(shape));
}

Tensor applied(const OperationPtr& operation, const Tensor& value) {
  return operation->apply(std::span(&value, 1), {}).value().front();
}

std::string error_of(const OperationPtr& operation, const Tensor& value) {
  const auto result = operation->apply(std::span(&value, 1), {});
  return result ? "no error" : result.error().message;
}

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  return {tensor.data<T>(), tensor.data<T>() + tensor.elements()};
}

TEST(Rescale, MultipliesThenAddsInFloat32) {
  const auto out = applied(rescale(1.0f / 255.0f, -0.25f), tensor<std::uint8_t>({0, 51, 255}, {3}));
  EXPECT_EQ(out.dtype(), DType::float32);
  EXPECT_THAT(values_of<float>(out), ElementsAre(-0.25f, 51 * (1.0f / 255.0f) - 0.25f, 1.0f - 0.25f));
}

TEST(Rescale, RefusesWhatIsNotFinite) {
  EXPECT_THAT(error_of(rescale(INFINITY, 0), tensor<float>({1}, {1})), HasSubstr("finite"));
}

TEST(Normalize, TakesMeanAndDeviationOfEachChannelWhereverTheyAre) {
  const auto last =
      applied(normalize({.mean = {1, 2}, .std = {2, 4}}), tensor<float>({3, 4, 5, 6}, {1, 2, 2}));
  EXPECT_THAT(values_of<float>(last), ElementsAre(1.0f, 0.5f, 2.0f, 1.0f));
  const auto first = applied(normalize({.mean = {1, 2}, .std = {2, 4}, .is_hwc = false}),
                             tensor<float>({3, 5, 4, 6}, {2, 1, 2}));
  EXPECT_THAT(values_of<float>(first), ElementsAre(1.0f, 2.0f, 0.5f, 1.0f));
  const auto plane = applied(normalize({.mean = {1}, .std = {2}}), tensor<float>({3, 5}, {1, 2}));
  EXPECT_THAT(values_of<float>(plane), ElementsAre(1.0f, 2.0f));
}

TEST(Normalize, RefusesNumbersThatDoNotFit) {
  const auto image = tensor<float>({1, 2, 3}, {1, 1, 3});
  EXPECT_THAT(error_of(normalize({.mean = {1, 2}, .std = {1, 1}}), image), HasSubstr("2 means"));
  EXPECT_THAT(error_of(normalize({.mean = {1, 2}, .std = {1}}), image),
              HasSubstr("2 means and 1 deviations"));
  EXPECT_THAT(error_of(normalize({.mean = {1}, .std = {0}}), image), HasSubstr("above 0"));
  EXPECT_THAT(error_of(normalize({}), image), HasSubstr("0 means"));
  EXPECT_THAT(error_of(normalize({.mean = {1}, .std = {1}}), tensor<float>({1}, {1})),
              HasSubstr("2 or 3 axes"));
}

TEST(Hwc2Chw, MovesTheChannelsToTheFront) {
  const auto out = applied(hwc2chw(), tensor<std::int32_t>({1, 2, 3, 4, 5, 6}, {1, 3, 2}));
  EXPECT_EQ(out.shape(), (Shape{2, 1, 3}));
  EXPECT_THAT(values_of<std::int32_t>(out), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(error_of(hwc2chw(), tensor<float>({1}, {1})), HasSubstr("(1,)"));
}

TEST(TypeCast, ConvertsAndStopsAtTheBounds) {
  EXPECT_THAT(values_of<std::int32_t>(applied(type_cast(DType::int32), tensor<std::uint32_t>({0, 9}, {2}))),
              ElementsAre(0, 9));
  EXPECT_THAT(values_of<std::uint8_t>(
                  applied(type_cast(DType::uint8), tensor<float>({-1, 1.9f, 300, NAN, INFINITY}, {5}))),
              ElementsAre(255, 1, 44, 0, 0));
  EXPECT_THAT(
      values_of<std::int64_t>(applied(type_cast(DType::int64), tensor<float>({1e30f, -1e30f}, {2}))),
      ElementsAre(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::min()));
  EXPECT_THAT(values_of<double>(applied(type_cast(DType::float64), tensor<float>({0.5f}, {1}))),
              ElementsAre(0.5));
  const auto flags = applied(type_cast(DType::bool_), tensor<std::int32_t>({0, 2}, {2}));
  EXPECT_THAT(std::vector<int>(flags.data<bool>(), flags.data<bool>() + 2), ElementsAre(0, 1));
}

TEST(TypeCast, TakesValuesOfEveryDtype) {
  for (const DType from : all_dtypes)
    for (const DType to : all_dtypes) {
      const auto one = applied(type_cast(from), tensor<std::int32_t>({1, 0}, {2}));
      const auto back = applied(type_cast(DType::int32), applied(type_cast(to), one));
      EXPECT_THAT(values_of<std::int32_t>(back), ElementsAre(1, 0))
          << to_string(from) << " " << to_string(to);
    }
}

TEST(LookUp, TakesTheEntryOfEachByteWhateverTheCount) {
  std::vector<std::uint32_t> table(256);
  for (std::uint32_t i = 0; i < 256; ++i) table[i] = 0x01020304U * (i + 1);
  for (const std::size_t count : {0U, 1U, 63U, 64U, 65U, 256U, 1000U}) {
    std::vector<std::uint8_t> in(count);
    for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    std::vector<std::uint32_t> out(count + 1, 42);
    look_up(table.data(), in.data(), count, out.data());
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], table[in[i]]) << i << " of " << count;
    EXPECT_EQ(out[count], 42U) << "wrote beyond the end";
  }
}

TEST(Formula, GivesATableOrDoesNotToTheLastBit) {
  const Formula formula{.scale = 1.0f / 255.0f, .shift = 0.1f, .mean = 0.1307f, .deviation = 0.3081f};
  std::vector<float> table(256);
  for (std::size_t i = 0; i < table.size(); ++i) {
    float value = static_cast<float>(i) * formula.scale;
    value += formula.shift;
    value -= formula.mean;
    table[i] = value / formula.deviation;
  }
  EXPECT_TRUE(gives(formula, table));
  table[255] = std::nextafter(table[255], 100.0f);
  EXPECT_FALSE(gives(formula, table));
  table.pop_back();
  EXPECT_FALSE(gives(formula, table));
}

TEST(Formula, ComputesAsManyAsItIsGiven) {
  for (const std::size_t count : {0U, 1U, 7U, 8U, 100U}) {
    const std::vector<std::uint8_t> in(count, 3);
    std::vector<float> out(count + 1, 42);
    compute({.scale = 2, .shift = 1, .mean = 4, .deviation = 2}, in.data(), count, out.data());
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(out, 1.5f)), count);
    EXPECT_EQ(out[count], 42) << "wrote beyond the end";
  }
}

// The one promise of a chain: it computes the bits of its operations applied one after the other.
class ChainBits : public ::testing::TestWithParam<int> {};

std::vector<OperationPtr> chain_of(int which, std::size_t channels) {
  std::vector<float> mean, deviation;
  for (std::size_t c = 0; c < channels; ++c) {
    mean.push_back(0.1307f + 0.1f * static_cast<float>(c));
    deviation.push_back(0.3081f - 0.05f * static_cast<float>(c));
  }
  const auto scaled = rescale(1.0f / 255.0f, 0.0f);
  const auto last = normalize({.mean = mean, .std = deviation});
  const auto first = normalize({.mean = mean, .std = deviation, .is_hwc = false});
  switch (which) {
    case 0:
      return {scaled, last, hwc2chw()};
    case 1:
      return {scaled, hwc2chw(), first};
    case 2:
      return {hwc2chw(), scaled, first};
    case 3:
      return {scaled, rescale(255.0f, 0.5f), type_cast(DType::uint8)};
    case 4:
      return {last, type_cast(DType::float64)};
    case 5:
      return {hwc2chw(), hwc2chw(), type_cast(DType::int32)};
    case 6:
      return {last, scaled};
    case 7:
      return {scaled, last, last, hwc2chw()};
    case 8:
      return {scaled, type_cast(DType::int8), last};
    case 9:
      return {to_tensor(), first};
    default:
      return {hwc2chw(), normalize({.mean = {0.5f}, .std = {2.0f}}), type_cast(DType::float32)};
  }
}

TEST_P(ChainBits, AreThoseOfItsOperationsOneAfterTheOther) {
  for (const std::int64_t channels : {1, 2, 3, 4, 5}) {
    constexpr std::size_t rows = 3;
    const Shape image{17, 16, channels};
    Tensor rows_in(DType::uint8, {rows, 17, 16, channels});
    for (std::size_t i = 0; i < rows_in.size_bytes(); ++i)
      rows_in.bytes()[i] = static_cast<std::byte>(i / static_cast<std::size_t>(channels) + i % 7);
    const auto operations = chain_of(GetParam(), static_cast<std::size_t>(channels));
    std::vector<TransformPtr> transforms;
    for (const auto& operation : operations)
      transforms.push_back(std::dynamic_pointer_cast<const Transform>(operation));
    auto chain = Chain::compile(transforms, {DType::uint8, image}).value();
    Tensor out(chain.output().dtype, {static_cast<std::int64_t>(rows), chain.output().shape.elements()});
    Chain::Scratch scratch;
    chain.run({.rows = {.count = rows}}, rows_in.bytes(), out.bytes(), scratch);

    const std::size_t row_bytes = rows_in.size_bytes() / rows;
    const std::size_t out_bytes = out.size_bytes() / rows;
    for (std::size_t row = 0; row < rows; ++row) {
      Tensor value(DType::uint8, image, rows_in.buffer(), row * row_bytes);
      for (const auto& operation : operations) value = applied(operation, value);
      EXPECT_EQ(value.shape(), chain.output().shape);
      ASSERT_EQ(value.size_bytes(), out_bytes);
      EXPECT_EQ(std::memcmp(value.bytes(), out.bytes() + row * out_bytes, out_bytes), 0)
          << "chain " << GetParam() << ", " << channels << " channels, row " << row;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chains, ChainBits, ::testing::Range(0, 11));

}  // namespace transforms_test
}  // namespace
}  // namespace muster::data
