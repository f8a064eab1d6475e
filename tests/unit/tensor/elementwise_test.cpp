// Broadcasting and reductions against their definitions on random shapes, and on several threads.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "muster/tensor/kernels.h"
#include "muster/tensor/tensor.h"

namespace muster::kernels {
namespace {

constexpr std::uint64_t problems = 300;

// A seed of its own for each run, printed with a failure.
std::uint64_t fresh_seed() { return entropy(); }

std::vector<float> numbers(const RandomStream& random, std::int64_t count) {
  std::vector<float> made(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<float>(random.normal(i));
  return made;
}

// Up to five axes, many of size 1.
Shape some_shape(const RandomStream& random) {
  std::vector<std::int64_t> sizes(random.below(0, 6));
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    sizes[axis] =
        random.below(10 + axis, 4) == 0 ? 1 : 1 + static_cast<std::int64_t>(random.below(20 + axis, 6));
  return Shape(std::move(sizes));
}

// What broadcasts to `out`: leading axes are missing, others have size 1.
Shape part_of(const Shape& out, const RandomStream& random) {
  const auto missing = static_cast<std::ptrdiff_t>(random.below(0, out.rank() + 1));
  std::vector<std::int64_t> sizes(out.begin() + missing, out.end());
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    if (random.below(1 + axis, 3) == 0) sizes[axis] = 1;
  return Shape(std::move(sizes));
}

TEST(Broadcast, RunsGiveWhatOneByOneGives) {
  const std::uint64_t seed = fresh_seed();
  for (std::uint64_t problem = 0; problem < problems; ++problem) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", problem " << problem);
    const Shape out = some_shape(RandomStream(seed, problem * 4));
    const std::array<Shape, 3> shapes = {part_of(out, RandomStream(seed, problem * 4 + 1)), out, out};
    const auto a = numbers(RandomStream(seed, problem * 4 + 2), shapes[0].elements());
    const auto b = numbers(RandomStream(seed, problem * 4 + 3), shapes[1].elements());
    std::vector<float> found(static_cast<std::size_t>(out.elements()), NAN);
    std::vector<float> expected(found);
    binary(Binary::sub, DType::float32, broadcast_loops(out, {shapes.data(), 2}),
           {a.data(), b.data(), found.data()}, 1);
    binary_reference(Binary::sub, DType::float32, shapes, {a.data(), b.data(), expected.data()});
    EXPECT_EQ(found, expected);
  }
}

TEST(Broadcast, ThreadsChangeNoBit) {
  const std::array<Shape, 2> shapes = {Shape{7, 1, 331}, Shape{7, 41, 331}};
  const auto a = numbers(RandomStream(1, 1), shapes[0].elements());
  const auto b = numbers(RandomStream(1, 2), shapes[1].elements());
  const BroadcastLoops loops = broadcast_loops(shapes[1], shapes);
  ASSERT_GT(loops.count, 4 * 16384) << "too few elements for threads";
  std::vector<float> alone(b.size(), NAN);
  std::vector<float> together(b.size(), NAN);
  binary(Binary::mul, DType::float32, loops, {a.data(), b.data(), alone.data()}, 1);
  binary(Binary::mul, DType::float32, loops, {a.data(), b.data(), together.data()}, 5);
  EXPECT_EQ(alone, together);
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(found[i])) << i;
    else
      EXPECT_NEAR(found[i], expected[i], 1e-6 * (1 + std::abs(expected[i]))) << i;
  }
}

TEST(Reductions, RunsGiveWhatOneByOneGives) {
  const std::uint64_t seed = fresh_seed();
  for (std::uint64_t problem = 0; problem < problems; ++problem) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", problem " << problem);
    const RandomStream random(seed, problem * 2);
    Shape shape = some_shape(random);
    if (shape.rank() > 0 && random.below(50, 2) == 0)  // longer than the accumulators, and than a block
      shape[shape.rank() - 1] = 33 + static_cast<std::int64_t>(random.below(51, 200));
    std::vector<bool> folded(shape.rank());
    for (std::size_t axis = 0; axis < folded.size(); ++axis) folded[axis] = random.below(60 + axis, 2) == 1;
    const ReduceLoops loops = reduce_loops(shape, folded);
    auto x = numbers(RandomStream(seed, problem * 2 + 1), shape.elements());
    if (random.below(70, 4) == 0) x[x.size() / 2] = NAN;
    std::vector<float> found(static_cast<std::size_t>(loops.outputs), -77.0F);
    std::vector<float> expected(found);
    const auto kind = static_cast<Reduce>(random.below(71, 6));
    reduce(kind, DType::float32, loops, x.data(), found.data(), 1);
    reduce_reference(kind, DType::float32, loops, x.data(), expected.data());
    expect_near(found, expected);
  }
}

TEST(Reductions, ThreadsChangeNoBit) {
  const Shape shape{37, 41, 53};
  const auto x = numbers(RandomStream(1, 1), shape.elements());
  for (const std::vector<bool>& folded :
       {std::vector<bool>{false, true, true}, {true, true, false}, {true, false, true}}) {
    const ReduceLoops loops = reduce_loops(shape, folded);
    std::vector<float> alone(static_cast<std::size_t>(loops.outputs), NAN);
    std::vector<float> together(alone);
    reduce(Reduce::sum, DType::float32, loops, x.data(), alone.data(), 1);
    reduce(Reduce::sum, DType::float32, loops, x.data(), together.data(), 5);
    EXPECT_EQ(alone, together);
  }
}

TEST(Reductions, OfLongRunsGiveWhatOneByOneGivesForAnyNumberOfThreads) {
  const Shape shape{3, 150001};
  const auto x = numbers(RandomStream(2, 1), shape.elements());
  for (const Reduce kind : {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min, Reduce::sum_of_squares})
    for (const std::vector<bool>& folded : {std::vector<bool>{false, true}, {true, true}}) {
      const ReduceLoops loops = reduce_loops(shape, folded);
      std::vector<float> alone(static_cast<std::size_t>(loops.outputs), NAN);
      std::vector<float> together(alone), expected(alone);
      reduce(kind, DType::float32, loops, x.data(), alone.data(), 1);
      reduce(kind, DType::float32, loops, x.data(), together.data(), 5);
      reduce_reference(kind, DType::float32, loops, x.data(), expected.data());
      EXPECT_EQ(alone, together);
      expect_near(alone, expected);
    }
}

// The definition: one word of Philox for each element, by its sample and its place in it.
TEST(Dropout, KeepsWhatItsOwnRandomWordSays) {
  for (const double keep_prob : {0.0, 0.3, 1.0}) {
    const DropoutSize size{.samples = 3, .elements = 20'011, .keep_prob = keep_prob};
    const DropoutDraw draw{
        .seed = 0x1234567890, .step = 2, .stream = 3, .first_sample = 4, .sample_stride = 5};
    const auto count = static_cast<std::size_t>(size.samples * size.elements);
    const std::vector<float> x(count, 1.0F);
    std::vector<float> y(count);
    const auto mask = std::make_unique<bool[]>(count);
    dropout(size, draw, DType::float32, x.data(), y.data(), mask.get(), 5);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t row = i / 20'011;
      const std::uint32_t place = i % 20'011;
      const auto word = philox({place / 4, 4 + row * 5, 3, 2}, {0x34567890, 0x12});
      ASSERT_EQ(mask[i], word[place % 4] < keep_prob * 0x1.0p32) << i << " with " << keep_prob;
    }
  }
}

TEST(Dropout, EveryInstructionSetDrawsTheSame) {
  const DropoutDraw draw{.seed = 0x9876543210, .step = 2, .stream = 3};
  for (const MaskKernel& kernel : mask_kernels())
    for (const std::int64_t first : {std::int64_t{0}, std::int64_t{5}, std::int64_t{0xFFFFFFFE}}) {
      const auto mask = std::make_unique<bool[]>(static_cast<std::size_t>(kernel.elements));
      kernel.draw(draw, 7, 0x40000000, first, mask.get());
      for (std::int64_t i = 0; i < kernel.elements; ++i) {
        const auto counter = static_cast<std::uint32_t>(first + i / 4);
        const auto word = philox({counter, 7, 3, 2}, {0x76543210, 0x98});
        EXPECT_EQ(mask[static_cast<std::size_t>(i)], word[static_cast<std::size_t>(i % 4)] < 0x40000000)
            << kernel.name << " from " << first << ", element " << i;
      }
    }
}

TEST(Dropout, ThreadsChangeNoBitOfTheMask) {
  const DropoutSize size{.samples = 3, .elements = 30001, .keep_prob = 0.3};
  const DropoutDraw draw{.seed = 1, .step = 2, .stream = 3, .first_sample = 4, .sample_stride = 5};
  const auto count = static_cast<std::size_t>(size.samples * size.elements);
  const std::vector<float> x(count, 1);
  std::vector<float> y(count);
  const auto alone = std::make_unique<bool[]>(count);
  const auto together = std::make_unique<bool[]>(count);
  dropout(size, draw, DType::float32, x.data(), y.data(), alone.get(), 1);
  dropout(size, draw, DType::float32, x.data(), y.data(), together.get(), 5);
  EXPECT_TRUE(std::equal(alone.get(), alone.get() + count, together.get()));
}

}  // namespace
}  // namespace muster::kernels
