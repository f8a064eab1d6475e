// Cross entropy of softmax(logits) against class labels.
#pragma once

#include <cstdint>
#include <optional>

#include "muster/base/base.h"

namespace muster::kernels {

struct CrossEntropySize {
  std::int64_t samples = 0;
  std::int64_t classes = 0;
  std::int64_t ignore_index = -100;
  double label_smoothing = 0.0;
  enum class Reduce { mean, sum, none } reduce = Reduce::mean;
};

// T is float or double, L int32 or int64; weight may be null. A label that is neither ignore_index nor in
// [0, classes) stops with the sample's number.
template <class T, class L>
struct CrossEntropyArguments {
  const T* logits = nullptr;
  const L* labels = nullptr;
  const T* weight = nullptr;
  T* loss = nullptr;
  T* probabilities = nullptr;
  int threads = 1;
};
template <class T, class L>
std::optional<std::int64_t> cross_entropy(const CrossEntropySize& size,
                                          const CrossEntropyArguments<T, L>& arguments);

// logits' gradient from the probabilities and the loss's gradient (one, or one for each sample).
template <class T, class L>
struct CrossEntropyGradArguments {
  const T* probabilities = nullptr;
  const L* labels = nullptr;
  const T* loss_gradient = nullptr;
  const T* weight = nullptr;
  T* logits_gradient = nullptr;
  int threads = 1;
};
template <class T, class L>
std::optional<std::int64_t> cross_entropy_grad(const CrossEntropySize& size,
                                               const CrossEntropyGradArguments<T, L>& arguments);

}  // namespace muster::kernels
