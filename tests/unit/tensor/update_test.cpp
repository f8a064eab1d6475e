// Updates of parameters: in shares over threads, and with bits that no processor changes.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <vector>

#include "muster/tensor/kernels.h"
#include "muster/tensor/tensor.h"

namespace muster::kernels {
namespace {

TEST(Shares, CoverEveryElementOfEveryTensorOnce) {
  const RandomStream random(entropy(), 1);
  for (std::uint64_t problem = 0; problem < 50; ++problem) {
    std::vector<std::vector<int>> touched;
    std::vector<std::int64_t> ends;
    std::int64_t end = 0;
    for (std::uint64_t i = 0; i < problem % 7; ++i) {
      // Some are empty, some as large as the share of several threads.
      const std::uint64_t bound = i % 3 == 0 ? 4 : 200'000;
      const auto count = static_cast<std::int64_t>(random.below(problem * 7 + i, bound));
      touched.emplace_back(static_cast<std::size_t>(count), 0);
      ends.push_back(end += count);
    }
    for_each_part(ends, static_cast<int>(1 + problem % 5),
                  [&](std::size_t tensor, std::int64_t begin, std::int64_t last) {
                    ASSERT_LT(begin, last);
                    for (std::int64_t i = begin; i < last; ++i)
                      ++touched[tensor].at(static_cast<std::size_t>(i));
                  });
    for (const auto& counts : touched)
      for (const int count : counts) ASSERT_EQ(count, 1);
  }
}

TEST(Shares, AreEqualHoweverTheElementsAreSpread) {
  constexpr std::int64_t million = 1 << 20;
  std::vector<std::int64_t> ends;
  for (std::int64_t i = 1; i <= 64; ++i) ends.push_back(i * million / 64);
  ends.push_back(2 * million);
  std::mutex lock;
  std::vector<std::int64_t> done;  // by call, in an order that nobody knows
  for_each_part(ends, 2, [&](std::size_t, std::int64_t begin, std::int64_t end) {
    const std::scoped_lock hold(lock);
    done.push_back(end - begin);
  });
  // 64 small tensors are one thread's share, the large one is the other's.
  EXPECT_EQ(done.size(), 65U);
}

// One rounding after each operation, whatever the compiler would like.
float rounded(float value) {
  volatile float kept = value;
  return kept;
}

TEST(Updates, RoundEachProductAndEachSum) {
  constexpr std::int64_t count = 1003;
  const RandomStream random(entropy(), 2);
  std::vector<float> p, g, v;
  for (std::uint64_t i = 0; i < count; ++i) {
    p.push_back(static_cast<float>(random.normal(3 * i)));
    g.push_back(static_cast<float>(random.normal(3 * i + 1)));
    v.push_back(static_cast<float>(random.normal(3 * i + 2)));
  }
  std::vector<float> expected(p);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const float decayed = rounded(g[i] * 0.3F) + rounded(0.01F * p[i]);
    const float speed = rounded(0.9F * v[i]) + rounded(1.0F * decayed);
    expected[i] = p[i] - rounded(0.1F * rounded(speed));
  }
  sgd<float>({.momentum = 0.9F, .weight_decay = 0.01F, .gradient_scale = 0.3F}, {.parameter = p.data(),
                                                                                 .gradient = g.data(),
                                                                                 .learning_rate = 0.1F,
                                                                                 .accumulation = v.data(),
                                                                                 .count = count});
  EXPECT_EQ(p, expected);
}

TEST(Updates, TakeTheSquareRootThatIsNearest) {
  constexpr std::int64_t count = 1003;
  const RandomStream random(entropy(), 3);
  std::vector<float> p(count, 1.0F), g, squares(count, 0.0F);
  for (std::uint64_t i = 0; i < count; ++i) g.push_back(static_cast<float>(random.normal(i)));
  std::vector<float> expected;
  for (const float gradient : g) {
    const float square = rounded(gradient * gradient);
    expected.push_back(1 - rounded(rounded(0.5F * gradient) / rounded(std::sqrt(square) + 0.25F)));
  }
  adagrad<float>({.scale = {}, .eps = 0.25}, squares.data(),
                 {.parameter = p.data(), .gradient = g.data(), .learning_rate = 0.5, .count = count});
  EXPECT_EQ(p, expected);
}

}  // namespace
}  // namespace muster::kernels
