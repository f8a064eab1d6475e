// Fast attention against the definition, on drawn sizes, masks and dropout.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "muster/tensor/kernels.h"
#include "muster/tensor/tensor.h"

namespace muster::kernels {
namespace {
namespace attention_test {

struct Problem {
  AttentionSize size;
  std::vector<float> q, k, v, dy, added;
  std::unique_ptr<bool[]> visible;
  DropoutDraw draw;

  AttentionInputs<float> inputs() const {
    return {.q = q.data(),
            .k = k.data(),
            .v = v.data(),
            .added = added.empty() ? nullptr : added.data(),
            .visible = visible.get(),
            .draw = draw};
  }
};

struct Results {
  std::vector<float> y, dq, dk, dv;

  explicit Results(const Problem& of)
      : y(of.dy.size(), NAN), dq(of.q.size(), NAN), dk(of.k.size(), NAN), dv(of.v.size(), NAN) {}
  AttentionGradients<float> gradients(const Problem& of) {
    return {.dy = of.dy.data(), .dq = dq.data(), .dk = dk.data(), .dv = dv.data()};
  }
};

std::vector<float> numbers(const RandomStream& random, std::uint64_t from, std::int64_t count) {
  std::vector<float> made;
  for (std::int64_t i = 0; i < count; ++i)
    made.push_back(static_cast<float>(random.normal((from << 32) + static_cast<std::uint64_t>(i))));
  return made;
}

// Around the edges of tiles and of blocks of queries.
std::int64_t some_length(const RandomStream& random, std::uint64_t index) {
  const std::uint64_t limits[] = {3, 40, 70, 200};
  return 1 + static_cast<std::int64_t>(random.below(index, limits[random.below(index + 1, 4)]));
}

// In half of the problems: in each row of the mask the keys behind one that is drawn, or all of them.
template <class Hide>
void hide_the_end(const RandomStream& random, const AttentionSize& size, const Hide& hide) {
  if (random.below(19, 2) == 0) return;
  const std::int64_t rows = size.mask_steps[2] == 0 ? size.samples : size.queries;
  for (std::int64_t row = 0; row < rows; ++row)
    for (auto key = static_cast<std::int64_t>(
             random.below(5000 + static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(size.keys) + 1));
         key < size.keys; ++key)
      hide(row * size.keys + key);
}

Problem make_problem(std::uint64_t seed, std::uint64_t number) {
  const RandomStream random(seed, number);
  const auto below = [&](std::uint64_t index, std::uint64_t limit) {
    return static_cast<std::int64_t>(random.below(index, limit));
  };
  Problem made;
  AttentionSize& size = made.size;
  size = {.samples = 1 + below(0, 3), .key_heads = 1 + below(1, 3), .queries = some_length(random, 2)};
  size.heads = size.key_heads * (1 + below(4, 2));
  size.keys = below(5, 2) == 0 ? size.queries : some_length(random, 6);
  size.depth = 1 + below(8, 70);
  size.value_depth = below(9, 2) == 0 ? size.depth : 1 + below(10, 70);
  size.scale = 1 / std::sqrt(static_cast<double>(size.depth));
  size.is_causal = below(11, 2) == 0;
  if (below(12, 2) == 0) size.keep_prob = 0.7;
  if (below(16, 2) == 0) size.layout = AttentionLayout::rows_first;
  made.draw = {.seed = seed, .step = 3, .stream = number, .first_sample = 5, .sample_stride = 2};
  made.q = numbers(random, 1, size.samples * size.heads * size.queries * size.depth);
  made.k = numbers(random, 2, size.samples * size.key_heads * size.keys * size.depth);
  made.v = numbers(random, 3, size.samples * size.key_heads * size.keys * size.value_depth);
  made.dy = numbers(random, 4, size.samples * size.heads * size.queries * size.value_depth);
  const std::int64_t kind = below(13, 3);
  if (kind == 0) return made;
  // One mask for all samples and heads, or for each sample its keys.
  const bool is_of_keys = below(14, 2) == 0;
  const std::int64_t elements = is_of_keys ? size.samples * size.keys : size.queries * size.keys;
  size.mask_steps = is_of_keys ? std::array<std::int64_t, 4>{size.keys, 0, 0, 1}
                               : std::array<std::int64_t, 4>{0, 0, size.keys, 1};
  if (kind == 1) {
    made.added = numbers(random, 5, elements);
    for (std::size_t i = 0; i < made.added.size(); i += 5) made.added[i] = -INFINITY;
    const float hidden[] = {-INFINITY, -1e9F, std::numeric_limits<float>::lowest()};
    hide_the_end(random, size,
                 [&](std::int64_t i) { made.added[static_cast<std::size_t>(i)] = hidden[below(17, 3)]; });
    return made;
  }
  made.visible = std::make_unique<bool[]>(static_cast<std::size_t>(elements));
  const std::int64_t fill = below(17, 4);
  if (fill == 1) size.fill = -INFINITY;
  if (fill == 2) size.fill = -1e9;
  if (fill == 3) size.fill = -0.5;
  size.hides_where = below(18, 2) == 0;
  const bool hides_all = below(15, 4) == 0;
  for (std::int64_t i = 0; i < elements; ++i)
    made.visible[static_cast<std::size_t>(i)] =
        (!hides_all && below(100 + static_cast<std::uint64_t>(i), 3) != 0) != size.hides_where;
  hide_the_end(random, size,
               [&](std::int64_t i) { made.visible[static_cast<std::size_t>(i)] = size.hides_where; });
  return made;
}

Results reference(const Problem& problem) {
  Results made(problem);
  attention_reference(problem.size, problem.inputs(), made.y.data());
  attention_grad_reference(problem.size, problem.inputs(), made.gradients(problem));
  return made;
}

Results run(const AttentionKernel& kernel, const Problem& problem, int threads) {
  Results made(problem);
  std::vector<std::byte> scratch(kernel.scratch_bytes(problem.size, threads), std::byte{0xff});
  kernel.run(problem.size, problem.inputs(), made.y.data(), scratch.data(), threads);
  scratch.assign(kernel.grad_scratch_bytes(problem.size, threads), std::byte{0xff});  // NaN
  kernel.run_grad(problem.size, problem.inputs(), made.gradients(problem), scratch.data(), threads);
  return made;
}

void expect_near(const char* what, const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(found[i])) << what << ", element " << i;
    } else {
      ASSERT_NEAR(found[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << what << ", element " << i;
    }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Attention, FastKernelsAgreeWithTheDefinitionOnDrawnSizes) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  for (std::uint64_t number = 0; number < 60; ++number) {
    const Problem problem = make_problem(seed, number);
    SCOPED_TRACE(::testing::Message() << "problem " << number);
    const Results expected = reference(problem);
    for (const AttentionKernel& kernel : attention_kernels()) {
      SCOPED_TRACE(kernel.name);
      const Results found = run(kernel, problem, 1);
      expect_near("y", found.y, expected.y);
      expect_near("dq", found.dq, expected.dq);
      expect_near("dk", found.dk, expected.dk);
      expect_near("dv", found.dv, expected.dv);
    }
  }
}

TEST(Attention, CountsAllKeysAlikeWhereTheScaleIsZero) {
  Problem problem = make_problem(1, 0);
  problem.size.scale = 0;
  const Results expected = reference(problem);
  for (const AttentionKernel& kernel : attention_kernels()) {
    const Results found = run(kernel, problem, 1);
    expect_near("y", found.y, expected.y);
    expect_near("dk", found.dk, expected.dk);
  }
}

// With heads and rows in the other order.
std::vector<float> exchanged(const std::vector<float>& from, std::int64_t samples, std::int64_t outer,
                             std::int64_t inner) {
  std::vector<float> made;
  const std::int64_t width = static_cast<std::int64_t>(from.size()) / (samples * outer * inner);
  for (std::int64_t s = 0; s < samples; ++s)
    for (std::int64_t i = 0; i < inner; ++i)
      for (std::int64_t o = 0; o < outer; ++o) {
        const auto row = from.begin() + ((s * outer + o) * inner + i) * width;
        made.insert(made.end(), row, row + width);
      }
  return made;
}

TEST(Attention, TheOrderOfAxesChangesNoBit) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  for (std::uint64_t number = 0; number < 20; ++number) {
    Problem problem = make_problem(seed, number), other = make_problem(seed, number);
    problem.size.layout = AttentionLayout::heads_first;
    other.size.layout = AttentionLayout::rows_first;
    const AttentionSize& size = problem.size;
    const auto of_queries = [&](const std::vector<float>& from) {
      return exchanged(from, size.samples, size.heads, size.queries);
    };
    const auto of_keys = [&](const std::vector<float>& from) {
      return exchanged(from, size.samples, size.key_heads, size.keys);
    };
    other.q = of_queries(problem.q);
    other.dy = of_queries(problem.dy);
    other.k = of_keys(problem.k);
    other.v = of_keys(problem.v);
    for (const AttentionKernel& kernel : attention_kernels()) {
      const Results expected = run(kernel, problem, 1), found = run(kernel, other, 1);
      EXPECT_TRUE(same_bits(found.y, of_queries(expected.y))) << "problem " << number;
      EXPECT_TRUE(same_bits(found.dq, of_queries(expected.dq))) << "problem " << number;
      EXPECT_TRUE(same_bits(found.dk, of_keys(expected.dk))) << "problem " << number;
      EXPECT_TRUE(same_bits(found.dv, of_keys(expected.dv))) << "problem " << number;
    }
  }
}

TEST(Attention, ThreadsChangeNoBit) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  for (std::uint64_t number = 0; number < 20; ++number) {
    const Problem problem = make_problem(seed, number);
    for (const AttentionKernel& kernel : attention_kernels()) {
      const Results one = run(kernel, problem, 1), three = run(kernel, problem, 3);
      EXPECT_TRUE(same_bits(one.y, three.y)) << "problem " << number;
      EXPECT_TRUE(same_bits(one.dq, three.dq)) << "problem " << number;
      EXPECT_TRUE(same_bits(one.dk, three.dk)) << "problem " << number;
      EXPECT_TRUE(same_bits(one.dv, three.dv)) << "problem " << number;
    }
  }
}

TEST(Attention, TakesMemoryThatIsLinearInTheNumberOfKeys) {
  AttentionSize size{.samples = 1, .heads = 4, .key_heads = 4, .queries = 4096, .keys = 4096};
  size.depth = size.value_depth = 64;
  AttentionSize twice = size;
  twice.queries *= 2;
  twice.keys *= 2;
  for (const AttentionKernel& kernel : attention_kernels()) {
    EXPECT_LE(kernel.scratch_bytes(twice, 2), 2 * kernel.scratch_bytes(size, 2));
    EXPECT_LE(kernel.grad_scratch_bytes(twice, 2), 2 * kernel.grad_scratch_bytes(size, 2));
    EXPECT_LT(kernel.grad_scratch_bytes(size, 2), std::size_t{4096} * 4096 * 4);
  }
}

TEST(Attention, KeepsNotANumberInSight) {
  for (const AttentionKernel& kernel : attention_kernels()) {
    Problem problem;
    problem.size = {.samples = 1, .heads = 1, .key_heads = 1, .queries = 2, .keys = 2, .depth = 1};
    problem.size.value_depth = 1;
    problem.q = {NAN, 1};
    problem.k = problem.v = problem.dy = {1, 2};
    const Results found = run(kernel, problem, 1);
    EXPECT_TRUE(std::isnan(found.y[0]));
    EXPECT_FALSE(std::isnan(found.y[1]));
  }
}

// ---- bfloat16 ---------------------------------------------------------------------------------------------

std::vector<bfloat16> narrow(const std::vector<float>& from) {
  std::vector<bfloat16> made;
  for (const float each : from) made.push_back(bfloat16(each));
  return made;
}
std::vector<float> wide(const std::vector<bfloat16>& from) {
  std::vector<float> made;
  for (const bfloat16 each : from) made.push_back(static_cast<float>(each));
  return made;
}

// The results of `kernel`, widened, and in `rounded` the problem that it saw.
enum class MaskDtype { bfloat16, float32 };
Results run_bfloat16(const AttentionKernelOf<bfloat16>& kernel, Problem& rounded, int threads,
                     MaskDtype mask = MaskDtype::bfloat16) {
  const std::vector<bfloat16> q = narrow(rounded.q), k = narrow(rounded.k), v = narrow(rounded.v);
  const std::vector<bfloat16> dy = narrow(rounded.dy), added = narrow(rounded.added);
  rounded.q = wide(q);
  rounded.k = wide(k);
  rounded.v = wide(v);
  rounded.dy = wide(dy);
  rounded.added = wide(added);
  const bool in_float32 = mask == MaskDtype::float32;
  const AttentionInputs<bfloat16> in{
      .q = q.data(),
      .k = k.data(),
      .v = v.data(),
      .added = added.empty() || in_float32 ? nullptr : added.data(),
      .added_float32 = added.empty() || !in_float32 ? nullptr : rounded.added.data(),
      .visible = rounded.visible.get(),
      .draw = rounded.draw};
  std::vector<bfloat16> y(dy.size()), dq(q.size()), dk(k.size()), dv(v.size());
  std::vector<std::byte> scratch(kernel.scratch_bytes(rounded.size, threads), std::byte{0xff});  // NaN
  kernel.run(rounded.size, in, y.data(), scratch.data(), threads);
  scratch.assign(kernel.grad_scratch_bytes(rounded.size, threads), std::byte{0xff});
  kernel.run_grad(rounded.size, in, {.dy = dy.data(), .dq = dq.data(), .dk = dk.data(), .dv = dv.data()},
                  scratch.data(), threads);
  Results made(rounded);
  made.y = wide(y);
  made.dq = wide(dq);
  made.dk = wide(dk);
  made.dv = wide(dv);
  return made;
}

// Weights and results are rounded to 8 bits: each errs by 2^-9 of itself, and sums by less of their norm.
void expect_rounded(const char* what, const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::isnan(found[i]), std::isnan(expected[i])) << what << ", element " << i;
    if (std::isnan(found[i])) continue;
    error += std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  // Where gradients cancel, as of few keys that are seen, terms of some tenths err by 2^-9 of themselves.
  const double noise = std::ldexp(0.1, -9) * std::sqrt(static_cast<double>(found.size()));
  EXPECT_LT(std::sqrt(error), std::ldexp(std::sqrt(norm), -7) + noise) << what;
}

TEST(Attention, Bfloat16AgreesWithFloat32WithinItsRoundingOnDrawnSizes) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  for (std::uint64_t number = 0; number < 60; ++number)
    for (const AttentionKernelOf<bfloat16>& kernel : bfloat16_attention_kernels()) {
      SCOPED_TRACE(::testing::Message() << "problem " << number << ", " << kernel.name);
      Problem problem = make_problem(seed, number);
      const Results found = run_bfloat16(kernel, problem, 1);
      const Results expected = run(attention_kernels().front(), problem, 1);
      expect_rounded("y", found.y, expected.y);
      expect_rounded("dq", found.dq, expected.dq);
      expect_rounded("dk", found.dk, expected.dk);
      expect_rounded("dv", found.dv, expected.dv);
    }
}

TEST(Attention, AddsAMaskInFloat32ToBfloat16) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  int masks = 0;
  for (std::uint64_t number = 0; number < 60; ++number)
    for (const AttentionKernelOf<bfloat16>& kernel : bfloat16_attention_kernels()) {
      SCOPED_TRACE(::testing::Message() << "problem " << number);
      Problem problem = make_problem(seed, number);
      if (problem.added.empty()) continue;
      ++masks;
      const Results narrow_mask = run_bfloat16(kernel, problem, 1);
      const Results wide_mask = run_bfloat16(kernel, problem, 1, MaskDtype::float32);
      EXPECT_TRUE(same_bits(narrow_mask.y, wide_mask.y));
      EXPECT_TRUE(same_bits(narrow_mask.dq, wide_mask.dq));
    }
  EXPECT_TRUE(masks > 0 || bfloat16_attention_kernels().empty());
}

TEST(Attention, ThreadsChangeNoBitOfBfloat16) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  for (std::uint64_t number = 0; number < 20; ++number)
    for (const AttentionKernelOf<bfloat16>& kernel : bfloat16_attention_kernels()) {
      Problem problem = make_problem(seed, number);
      const Results one = run_bfloat16(kernel, problem, 1);
      for (const int threads : {2, 3}) {
        const Results more = run_bfloat16(kernel, problem, threads);
        EXPECT_TRUE(same_bits(one.y, more.y)) << "problem " << number;
        EXPECT_TRUE(same_bits(one.dq, more.dq)) << "problem " << number;
        EXPECT_TRUE(same_bits(one.dk, more.dk)) << "problem " << number;
        EXPECT_TRUE(same_bits(one.dv, more.dv)) << "problem " << number;
      }
    }
}

}  // namespace attention_test
}  // namespace
}  // namespace muster::kernels
