// Cross entropy of float32 against the same in double, on any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "oracle.h"

namespace muster::kernels {
namespace {

template <class T>
struct CrossEntropyResult {
  std::vector<T> loss, probabilities, gradient;
  bool operator==(const CrossEntropyResult&) const = default;
};

template <class T>
CrossEntropyResult<T> cross_entropy_of(const CrossEntropySize& size, const std::vector<float>& logits,
                                       const std::vector<std::int32_t>& labels,
                                       const std::vector<float>& weight, int threads) {
  const std::vector<T> x(logits.begin(), logits.end()), w(weight.begin(), weight.end());
  const auto losses =
      static_cast<std::size_t>(size.reduce == CrossEntropySize::Reduce::none ? size.samples : 1);
  CrossEntropyResult<T> found{std::vector<T>(losses), std::vector<T>(x.size()), std::vector<T>(x.size())};
  const std::vector<T> flow(losses, T{0.5});
  EXPECT_FALSE((cross_entropy<T, std::int32_t>(size, {.logits = x.data(),
                                                      .labels = labels.data(),
                                                      .weight = w.empty() ? nullptr : w.data(),
                                                      .loss = found.loss.data(),
                                                      .probabilities = found.probabilities.data(),
                                                      .threads = threads})));
  EXPECT_FALSE((cross_entropy_grad<T, std::int32_t>(size, {.probabilities = found.probabilities.data(),
                                                           .labels = labels.data(),
                                                           .loss_gradient = flow.data(),
                                                           .weight = w.empty() ? nullptr : w.data(),
                                                           .logits_gradient = found.gradient.data(),
                                                           .threads = threads})));
  return found;
}

void expect_close(const std::vector<float>& found, const std::vector<double>& exact, const char* what) {
  for (std::size_t i = 0; i < exact.size(); ++i)
    ASSERT_NEAR(found[i], exact[i], 2e-6 * std::max(1.0, std::abs(exact[i]))) << what << " at " << i;
}

TEST(CrossEntropy, IsThatOfDoubleAndTheSameOnAnyThreads) {
  for (std::uint64_t round = 0; round < 60; ++round) {
    SCOPED_TRACE(::testing::Message() << "seed 51, round " << round);
    Numbers numbers(51, round);
    CrossEntropySize size{.samples = numbers.from(1, 40),
                          .classes = numbers.from(1, numbers.coin() ? 20 : 3000)};
    size.label_smoothing = numbers.coin() ? 0 : 0.1;
    size.reduce = static_cast<CrossEntropySize::Reduce>(numbers.from(0, 2));
    const Tensor drawn = numbers.normal({size.samples, size.classes});
    std::vector<float> logits(drawn.span<float>().begin(), drawn.span<float>().end());
    for (float& logit : logits) logit *= 5;
    std::vector<std::int32_t> labels(static_cast<std::size_t>(size.samples));
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(numbers.from(0, size.classes - 1));
    if (numbers.coin()) labels.back() = static_cast<std::int32_t>(size.ignore_index);
    if (labels.size() == 1) labels[0] = 0;  // a mean over none is NaN
    std::vector<float> weight(numbers.coin() ? 0 : static_cast<std::size_t>(size.classes));
    for (float& each : weight) each = static_cast<float>(numbers.from(1, 9)) / 4;
    const auto found = cross_entropy_of<float>(size, logits, labels, weight, 1);
    const auto exact = cross_entropy_of<double>(size, logits, labels, weight, 1);
    expect_close(found.loss, exact.loss, "the loss");
    expect_close(found.probabilities, exact.probabilities, "the probability");
    expect_close(found.gradient, exact.gradient, "the gradient");
    EXPECT_EQ(cross_entropy_of<float>(size, logits, labels, weight, 3), found) << "threads change bits";
  }
}

}  // namespace
}  // namespace muster::kernels
