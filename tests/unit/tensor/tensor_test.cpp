#include "muster/tensor/tensor.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster {
namespace {

TEST(Tensor, CopiesShareTheBufferAndClonesDoNot) {
  const std::array<float, 4> values{1, 2, 3, 4};
  const Tensor tensor = Tensor::from<float>(values, {2, 2});
  const Tensor copy = tensor;
  const Tensor clone = tensor.clone();
  tensor.data<float>()[0] = 9;
  EXPECT_EQ(copy.data<float>()[0], 9);
  EXPECT_EQ(clone.data<float>()[0], 1);
}

TEST(Tensor, ReshapesWithoutCopying) {
  const Tensor tensor = Tensor::zeros(DType::int32, {2, 3});
  const Tensor flat = tensor.reshaped({6});
  EXPECT_EQ(flat.bytes(), tensor.bytes());
  EXPECT_EQ(flat.shape(), (Shape{6}));
}

TEST(Tensor, LetsGoOfBorrowedMemoryWithItsLastUser) {
  bool released = false;
  std::array<float, 2> memory{1, 2};
  {
    Tensor tensor(
        DType::float32, {2},
        Buffer::borrow(reinterpret_cast<std::byte*>(memory.data()), sizeof memory, [&] { released = true; }));
    const Tensor second = tensor;
    tensor = Tensor();
    EXPECT_FALSE(released);
    EXPECT_EQ(second.data<float>()[1], 2);
  }
  EXPECT_TRUE(released);
}

TEST(Tensor, IsCastIntoABufferOfItsOwn) {
  const std::array<double, 3> values{1.5, -2.75, 3.0};
  const Tensor exact = Tensor::from<double>(values, {3, 1});
  const Tensor whole = exact.cast(DType::int32);
  EXPECT_EQ(whole.shape(), Shape({3, 1}));
  EXPECT_EQ(whole.span<std::int32_t>()[1], -2);
  const Tensor same = exact.cast(DType::float64);
  EXPECT_NE(same.bytes(), exact.bytes());
  EXPECT_EQ(same.span<double>()[1], -2.75);
}

TEST(Tensor, ThatIsReadAsWhatItIsNotThrowsAnErrorWithTheWayOut) {
  const std::array<float, 3> three{1, 2, 3};
  const Tensor tensor = Tensor::from<float>(three, {3});
  EXPECT_THAT(ERROR_OF(tensor.data<double>()), Mentions("float32", "float64", "cast(DType::float64)"));
  EXPECT_THAT(ERROR_OF(tensor.item<float>()), Mentions("one element", "(3,)"));
  EXPECT_THAT(ERROR_OF(tensor.reshaped({2, 2})), Mentions("(3,)", "(2, 2)", "4 elements"));
  EXPECT_THAT(ERROR_OF(Tensor::from<float>(three, {2, 2})), Mentions("3 values", "(2, 2)", "4 elements"));
  EXPECT_THAT(ERROR_OF(Tensor::absent(DType::float32, {3}, "it is on worker 3").bytes()),
              Mentions("worker 3"));
}

TEST(Tensor, AnEmptyTensorHasNoElements) {
  EXPECT_FALSE(Tensor().defined());
  EXPECT_EQ(Tensor(DType::float32, {0, 4}).elements(), 0);
  EXPECT_EQ(Tensor::scalar(2.5).elements(), 1);
}

TEST(Processor, NamesItsInstructionsForBfloat16) {
  EXPECT_EQ(bfloat16_instructions({}), "");
  EXPECT_EQ(bfloat16_instructions({.isa = Isa::avx512, .avx512_bf16 = true}), "AVX512_BF16");
  EXPECT_EQ(bfloat16_instructions({.isa = Isa::avx512, .avx512_bf16 = true, .amx_bf16 = true}),
            "AVX512_BF16 and AMX_BF16");
}

TEST(Tensor, IsHandedOnWithoutElementsAndKnowsWhoHasThem) {
  const Tensor gradient = Tensor::absent(DType::float32, {1000000, 100}, "the gradient is on worker 3");
  const Tensor view = gradient.reshaped({100, 1000000});
  EXPECT_TRUE(view.defined());
  EXPECT_EQ(view.size_bytes(), 400000000u);
  ASSERT_NE(view.absence(), nullptr);
  EXPECT_THAT(*view.absence(), Mentions("gradient", "worker 3"));
  EXPECT_EQ(Tensor::zeros(DType::float32, {2}).absence(), nullptr);
  EXPECT_EQ(Tensor().absence(), nullptr);
}

}  // namespace
}  // namespace muster
