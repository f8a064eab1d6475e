// The wide loops over bfloat16 against the plain ones, bit by bit.
#include "muster/tensor/kernels/bfloat16_loops.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "muster/base/base.h"
#include "muster/tensor/kernels/vector_math.h"

namespace muster::kernels {
namespace {

// Any bits: numbers of all sizes, infinities, NaN.
std::vector<float> any_floats(std::size_t count, std::uint64_t seed) {
  const RandomStream random(seed, 1);
  std::vector<float> made(count);
  for (std::size_t i = 0; i < count; ++i)
    made[i] = std::bit_cast<float>(static_cast<std::uint32_t>(random.below(i, std::uint64_t{1} << 32)));
  return made;
}

std::vector<bfloat16> any_numbers(std::size_t count, std::uint64_t seed) {
  std::vector<bfloat16> made(count);
  plain_bfloat16_loops().round(any_floats(count, seed).data(), made.data(), static_cast<std::int64_t>(count));
  return made;
}

std::vector<int> bits(const std::vector<bfloat16>& values) {
  std::vector<int> made;
  for (const bfloat16 value : values) {
    // Which NaN a sum of two gives is the compiler's choice.
    const bool is_nan = (value.bits() & 0x7FFF) > 0x7F80;
    made.push_back(is_nan ? -1 : value.bits());
  }
  return made;
}

TEST(Bfloat16Loops, GiveTheBitsOfThePlainOnes) {
  for (const std::size_t count : {0U, 1U, 15U, 16U, 33U, 1000U}) {
    const std::uint64_t seed = 40 + count;
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto size = static_cast<std::int64_t>(count);
    const auto a = any_numbers(count, seed), b = any_numbers(count, seed + 1),
               y = any_numbers(count, seed + 2);
    const auto wide = any_floats(count, seed + 3);
    const auto with = [&](const Bfloat16Loops& loops) {
      std::vector<std::vector<int>> found;
      std::vector<bfloat16> out(count);
      const auto keep = [&] { found.push_back(bits(out)); };
      loops.round(wide.data(), out.data(), size);
      keep();
      loops.add(a.data(), b.data(), out.data(), size);
      keep();
      loops.relu(a.data(), out.data(), size);
      keep();
      loops.relu_grad(a.data(), y.data(), out.data(), size);
      keep();
      loops.add_relu(a.data(), b.data(), out.data(), size);
      keep();
      loops.add_relu_grad(a.data(), b.data(), y.data(), out.data(), size);
      keep();
      std::vector<float> widened(count);
      loops.widen(a.data(), widened.data(), size);
      for (std::size_t i = 0; i < count; ++i) out[i] = bfloat16(widened[i]);
      keep();
      return found;
    };
    EXPECT_EQ(with(bfloat16_loops()), with(plain_bfloat16_loops()));
  }
}

// Between layers, elements of 16 bits are computed as float32 and rounded once; more than one tile of them.
template <class T>
void between_layers_as_float32(DType dtype, Nonlinearity::Kind kind) {
  SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)));
  constexpr std::int64_t count = 70001;
  const RandomStream random(41, static_cast<std::uint64_t>(kind));
  std::vector<T> x(count), dy(count), found(count);
  std::vector<float> wide_x(count), wide_dy(count), expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    wide_x[i] = x[i] = T(static_cast<float>(3 * random.normal(4 * i)));
    wide_dy[i] = dy[i] = T(static_cast<float>(random.normal(4 * i + 2)));
  }
  const auto compare = [&](const char* what) {
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(found[i].bits(), T(expected[i]).bits()) << what << " of " << wide_x[i];
  };
  for (const int threads : {1, 3}) {
    if (has_vector_math(kind)) {
      vector_nonlinearity(vector_math().front(), {kind}, wide_x.data(), expected.data(), count, 1);
      nonlinearity({kind}, dtype, x.data(), found.data(), count, threads);
      compare("y");
    }
    if (has_vector_math_grad(kind)) {
      vector_nonlinearity_grad(vector_math().front(), {kind}, wide_dy.data(), wide_x.data(), expected.data(),
                               count, 1);
      nonlinearity_grad({kind}, dtype, dy.data(), x.data(), found.data(), count, threads);
      compare("dx");
    }
  }
}

TEST(Bfloat16Loops, ComputeBetweenLayersInFloat32AndRoundOnce) {
  using Kind = Nonlinearity::Kind;
  for (const Kind kind :
       {Kind::elu, Kind::sigmoid, Kind::tanh, Kind::gelu, Kind::gelu_tanh, Kind::silu, Kind::softplus}) {
    between_layers_as_float32<bfloat16>(DType::bfloat16, kind);
    between_layers_as_float32<float16>(DType::float16, kind);
  }
}

TEST(Bfloat16Loops, ReluKeepsNaNAndDropsWhatIsNegative) {
  const std::vector<bfloat16> x{bfloat16(-1.0F), bfloat16(2.0F), bfloat16::from_bits(0x7FC0), bfloat16(0.0F)};
  std::vector<bfloat16> y(x.size());
  bfloat16_loops().relu(x.data(), y.data(), 4);
  EXPECT_EQ(bits(y), (std::vector<int>{0, 0x4000, -1, 0}));
}

}  // namespace
}  // namespace muster::kernels
