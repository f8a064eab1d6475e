// The wide loops over two operands against the definition, bit by bit.
#include "muster/tensor/kernels/pair_loops.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/base/base.h"

namespace muster::kernels {
namespace {

constexpr Binary kinds[] = {Binary::add, Binary::sub,     Binary::mul,
                            Binary::div, Binary::maximum, Binary::minimum};

// Any bits: numbers of all sizes, infinities, NaN.
template <class T>
std::vector<T> any_bits(std::int64_t count, std::uint64_t seed) {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;
  const RandomStream random(seed, 1);
  std::vector<T> made(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < made.size(); ++i) {
    const auto bits = static_cast<Bits>(random.below(i, std::uint64_t{1} << (8 * sizeof(T))));
    made[i] = std::bit_cast<T>(bits);
  }
  return made;
}

// Which NaN comes of two is the compiler's choice.
template <class T>
std::vector<std::uint32_t> bits_of(const std::vector<T>& values) {
  std::vector<std::uint32_t> made;
  for (const T value : values) {
    const float number = value;
    made.push_back(number != number ? 0x7FC00000U : std::bit_cast<std::uint32_t>(number));
  }
  return made;
}

template <class T>
void expect_the_bits_of_the_definition(DType dtype, Isa isa) {
  for (const Binary kind : kinds)
    for (const std::int64_t count : {1, 7, 16, 33, 1000})
      for (const auto& [a_stride, b_stride] : {std::pair{1, 1}, {1, 0}, {0, 1}, {0, 0}}) {
        SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + ", " + std::to_string(count) +
                     " elements, strides " + std::to_string(a_stride) + " " + std::to_string(b_stride));
        const PairLoop loop = pair_loop(kind, dtype, isa);
        ASSERT_NE(loop, nullptr);
        const std::vector<T> a = any_bits<T>(a_stride == 0 ? 1 : count, 11),
                             b = any_bits<T>(b_stride == 0 ? 1 : count, 12);
        std::vector<T> found(static_cast<std::size_t>(count)), wanted(found.size());
        loop(a.data(), a_stride, b.data(), b_stride, found.data(), count);
        const Shape out{count};
        binary_reference(kind, dtype,
                         {Shape{a_stride == 0 ? 1 : count}, Shape{b_stride == 0 ? 1 : count}, out},
                         {a.data(), b.data(), wanted.data()});
        EXPECT_EQ(bits_of(found), bits_of(wanted));
      }
}

TEST(PairLoops, GiveTheBitsOfTheDefinition) {
  for (const Isa isa : {Isa::avx2, Isa::avx512}) {
    if (isa > processor_isa()) continue;
    SCOPED_TRACE(to_string(isa));
    expect_the_bits_of_the_definition<float>(DType::float32, isa);
    expect_the_bits_of_the_definition<bfloat16>(DType::bfloat16, isa);
  }
}

TEST(PairLoops, AreNotThereForWhatTheyDoNotKnow) {
  EXPECT_EQ(pair_loop(Binary::pow, DType::float32), nullptr);
  EXPECT_EQ(pair_loop(Binary::add, DType::float64), nullptr);
  EXPECT_EQ(pair_loop(Binary::add, DType::bfloat16, Isa::none), nullptr);
}

}  // namespace
}  // namespace muster::kernels
