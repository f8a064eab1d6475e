// Every fast kernel against the reference on random sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "muster/tensor/kernels.h"
#include "muster/tensor/tensor.h"

namespace muster::kernels {
namespace {

struct Problem {
  MatmulSize size;
  std::vector<float> a, b, bias;
  Activation activation = Activation::none;
};

std::vector<float> numbers(std::uint64_t seed, std::uint64_t stream, std::int64_t count) {
  const RandomStream random(seed, stream);
  std::vector<float> made;
  for (std::int64_t i = 0; i < count; ++i)
    made.push_back(static_cast<float>(random.normal(static_cast<std::uint64_t>(i))));
  return made;
}

// Sizes around the edges of tiles, some long.
std::int64_t some_size(const RandomStream& random, std::uint64_t index) {
  const std::uint64_t limits[] = {4, 20, 70, 300};
  return 1 + static_cast<std::int64_t>(random.below(index, limits[random.below(index + 1, 4)]));
}

Problem make_problem(std::uint64_t seed, std::uint64_t number) {
  const RandomStream random(seed, number);
  Problem problem{.size = {.m = some_size(random, 0),
                           .n = some_size(random, 2),
                           .k = some_size(random, 4),
                           .transpose_a = random.below(6, 2) == 1,
                           .transpose_b = random.below(7, 2) == 1},
                  .a = {},
                  .b = {},
                  .bias = {},
                  .activation = static_cast<Activation>(random.below(8, 3))};
  const MatmulSize& size = problem.size;
  problem.a = numbers(seed, number * 8 + 1, size.m * size.k);
  problem.b = numbers(seed, number * 8 + 2, size.k * size.n);
  if (random.below(9, 2) == 1) problem.bias = numbers(seed, number * 8 + 3, size.n);
  return problem;
}

std::vector<float> run(const Problem& problem,
                       void (*kernel)(const MatmulSize&, const MatmulArguments<float>&), int threads,
                       std::size_t scratch_bytes = 0) {
  std::vector<float> c(static_cast<std::size_t>(problem.size.m * problem.size.n), NAN);
  constexpr std::size_t guard_bytes = 4096;
  constexpr std::byte untouched{0x5a};
  const auto scratch = Buffer::allocate(scratch_bytes + guard_bytes);
  std::fill_n(scratch->data() + scratch_bytes, guard_bytes, untouched);
  kernel(problem.size, {.a = problem.a.data(),
                        .b = problem.b.data(),
                        .c = c.data(),
                        .bias = problem.bias.empty() ? nullptr : problem.bias.data(),
                        .activation = problem.activation,
                        .threads = threads,
                        .scratch = scratch->data()});
  EXPECT_EQ(
      std::count(scratch->data() + scratch_bytes, scratch->data() + scratch_bytes + guard_bytes, untouched),
      guard_bytes)
      << "it wrote behind its scratch memory";
  return c;
}

std::vector<float> run(const Problem& problem, const MatmulKernel& kernel, int threads) {
  return run(problem, kernel.run, threads, kernel.scratch_bytes(problem.size, threads));
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Matmul, FastKernelsAgreeWithTheReferenceOnRandomSizes) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  for (std::uint64_t number = 0; number < 300; ++number) {
    const Problem problem = make_problem(seed, number);
    const MatmulSize& size = problem.size;
    const std::vector<float> expected = run(problem, matmul_reference<float>, 1);
    for (const MatmulKernel& kernel : matmul_kernels()) {
      if (!kernel.usable(size)) continue;
      const std::vector<float> c = run(problem, kernel, 1);
      for (std::size_t i = 0; i < c.size(); ++i)
        ASSERT_NEAR(c[i], expected[i], 2e-5 * std::sqrt(static_cast<double>(size.k)) * 5)
            << kernel.name << " m " << size.m << " n " << size.n << " k " << size.k << " transposed "
            << size.transpose_a << size.transpose_b << " at " << i;
    }
  }
}

TEST(Matmul, ThreadsAndRepetitionsChangeNoBit) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{64, 10, 20000}, {40, 700, 600}, {300, 333, 257}}) {
    for (const bool transpose_b : {false, true}) {
      const Problem problem{
          .size = {.m = m, .n = n, .k = k, .transpose_a = false, .transpose_b = transpose_b},
          .a = numbers(seed, 1, m * k),
          .b = numbers(seed, 2, k * n),
          .bias = {}};
      for (const MatmulKernel& kernel : matmul_kernels()) {
        if (!kernel.usable(problem.size)) continue;
        const std::vector<float> once = run(problem, kernel, 1);
        EXPECT_TRUE(same_bits(once, run(problem, kernel, 1))) << kernel.name;
        EXPECT_TRUE(same_bits(once, run(problem, kernel, 2))) << kernel.name;
        EXPECT_TRUE(same_bits(once, run(problem, kernel, 3))) << kernel.name;
      }
    }
  }
}

TEST(Matmul, APositiveInfinityAndNaNComeThrough) {
  const float nan = std::nanf("");
  for (const MatmulKernel& kernel : matmul_kernels()) {
    Problem problem{.size = {.m = 4, .n = 32, .k = 32, .transpose_a = false, .transpose_b = true},
                    .a = std::vector<float>(4 * 32, 1.0f),
                    .b = std::vector<float>(32 * 32, 1.0f),
                    .bias = {},
                    .activation = Activation::relu};
    problem.a[0] = nan;
    problem.a[32] = INFINITY;
    if (!kernel.usable(problem.size)) continue;
    const std::vector<float> c = run(problem, kernel, 1);
    EXPECT_TRUE(std::isnan(c[0])) << kernel.name;
    EXPECT_TRUE(std::isinf(c[32])) << kernel.name;
    EXPECT_EQ(c[64], 32.0f) << kernel.name;
  }
}

// Wider than a block of columns, and divided by columns among threads: each part adds the bias of its own.
TEST(Matmul, EveryBlockOfColumnsGetsItsOwnBias) {
  const MatmulSize size{.m = 70, .n = 2100, .k = 40, .transpose_b = true};
  const Problem problem{.size = size,
                        .a = numbers(5, 1, size.m * size.k),
                        .b = numbers(5, 2, size.k * size.n),
                        .bias = numbers(5, 3, size.n)};
  const std::vector<float> wanted = run(problem, matmul_reference<float>, 1);
  for (const MatmulKernel& kernel : matmul_kernels()) {
    if (!kernel.usable(size)) continue;
    for (const int threads : {1, 3}) {
      const std::vector<float> got = run(problem, kernel, threads);
      for (std::size_t i = 0; i < wanted.size(); ++i)
        ASSERT_NEAR(got[i], wanted[i], 1e-4) << kernel.name << ", " << threads << " threads, element " << i;
    }
  }
}

}  // namespace
}  // namespace muster::kernels
