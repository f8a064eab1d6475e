#include "muster/tensor/kernels/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "muster/tensor/kernels/vector_math.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

constexpr std::int64_t samples_at_once = 64;

// Writes softmax(row) and log(sum(exp(row))) of each row.
void softmax(const VectorLines& rows, const double* x, double* probabilities, double* log_sums) {
  for (std::int64_t i = 0; i < rows.rows; ++i, x += rows.columns, probabilities += rows.columns) {
    const double greatest = *std::max_element(x, x + rows.columns);
    double sum = 0;
    for (std::int64_t c = 0; c < rows.columns; ++c) sum += probabilities[c] = std::exp(x[c] - greatest);
    const double inverse = 1 / sum;
    for (std::int64_t c = 0; c < rows.columns; ++c) probabilities[c] *= inverse;
    log_sums[i] = greatest + std::log(sum);
  }
}
void softmax(const VectorLines& rows, const float* x, float* probabilities, float* log_sums) {
  PowerSum sums[samples_at_once];
  vector_math().front().softmax(false, rows, x, probabilities, sums);
  for (std::int64_t i = 0; i < rows.rows; ++i)
    log_sums[i] = static_cast<float>(static_cast<double>(sums[i].greatest) + std::log(sums[i].sum));
}

// So many samples that a second thread pays.
std::int64_t grain(const CrossEntropySize& size) {
  constexpr std::int64_t elements_per_thread = 8192;
  return std::max<std::int64_t>(1, elements_per_thread / std::max<std::int64_t>(1, size.classes));
}

// The target of one sample: t[c] = smooth * weight[c], plus `hit` at its label.
template <class T>
struct Target {
  T hit = 0;
  T smooth = 0;
};

template <class T>
T weight_of(const T* weight, std::int64_t index) {
  return weight != nullptr ? weight[index] : T{1};
}

template <class T>
Target<T> target(const CrossEntropySize& size, const T* weight, std::int64_t label) {
  return {static_cast<T>(1 - size.label_smoothing) * weight_of(weight, label),
          static_cast<T>(size.label_smoothing / static_cast<double>(size.classes))};
}

template <class T>
T sample_loss(const CrossEntropySize& size, const T* row, const T* weight, std::int64_t label, T log_sum) {
  const Target<T> t = target(size, weight, label);
  const T loss = t.hit * (log_sum - row[label]);
  if (t.smooth == 0) return loss;
  double spread = 0;
  for (std::int64_t c = 0; c < size.classes; ++c)
    spread += static_cast<double>(weight_of(weight, c) * (log_sum - row[c]));
  return static_cast<T>(static_cast<double>(loss) + static_cast<double>(t.smooth) * spread);
}

template <class L>
std::optional<std::int64_t> first_wrong_label(const CrossEntropySize& size, const L* labels) {
  for (std::int64_t i = 0; i < size.samples; ++i)
    if (labels[i] != size.ignore_index && (labels[i] < 0 || labels[i] >= size.classes)) return i;
  return std::nullopt;
}

// The sum of the weights of the labels that count.
template <class T, class L>
double weight_sum(const CrossEntropySize& size, const L* labels, const T* weight) {
  double sum = 0;
  for (std::int64_t i = 0; i < size.samples; ++i)
    if (labels[i] != size.ignore_index) sum += static_cast<double>(weight_of(weight, labels[i]));
  return sum;
}

// Of sample i; `weights` is the sum of all classes', `scale` what the reduction divides by, inverted.
template <class T, class L>
void sample_gradient(const CrossEntropySize& size, const CrossEntropyGradArguments<T, L>& arguments,
                     std::int64_t i, T scale, T weights) {
  T* const out = arguments.logits_gradient + i * size.classes;
  const std::int64_t label = arguments.labels[i];
  if (label == size.ignore_index) {
    std::fill_n(out, size.classes, T{0});
    return;
  }
  const T* const probabilities = arguments.probabilities + i * size.classes;
  const Target<T> t = target(size, arguments.weight, label);
  const T factor = scale * arguments.loss_gradient[size.reduce == CrossEntropySize::Reduce::none ? i : 0];
  const T total = t.hit + t.smooth * weights;
  if (t.smooth == 0)
    for (std::int64_t c = 0; c < size.classes; ++c) out[c] = factor * (probabilities[c] * total);
  else
    for (std::int64_t c = 0; c < size.classes; ++c)
      out[c] = factor * (probabilities[c] * total - t.smooth * weight_of(arguments.weight, c));
  out[label] -= factor * t.hit;
}

}  // namespace

template <class T, class L>
std::optional<std::int64_t> cross_entropy(const CrossEntropySize& size,
                                          const CrossEntropyArguments<T, L>& arguments) {
  using Reduce = CrossEntropySize::Reduce;
  if (const auto wrong = first_wrong_label(size, arguments.labels)) return wrong;
  std::vector<T> kept(size.reduce == Reduce::none ? 0 : static_cast<std::size_t>(size.samples));
  T* const losses = size.reduce == Reduce::none ? arguments.loss : kept.data();
  parallel_for(size.samples, grain(size), arguments.threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += samples_at_once) {
      const std::int64_t behind = std::min(first + samples_at_once, end), at = first * size.classes;
      T log_sums[samples_at_once];
      softmax({behind - first, size.classes}, arguments.logits + at, arguments.probabilities + at, log_sums);
      for (std::int64_t i = first; i < behind; ++i) {
        const std::int64_t label = arguments.labels[i];
        losses[i] = label == size.ignore_index ? T{0}
                                               : sample_loss(size, arguments.logits + i * size.classes,
                                                             arguments.weight, label, log_sums[i - first]);
      }
    }
  });
  if (size.reduce == Reduce::none) return std::nullopt;
  double total = std::accumulate(kept.begin(), kept.end(), 0.0);
  if (size.reduce == Reduce::mean) total /= weight_sum(size, arguments.labels, arguments.weight);
  arguments.loss[0] = static_cast<T>(total);
  return std::nullopt;
}

template <class T, class L>
std::optional<std::int64_t> cross_entropy_grad(const CrossEntropySize& size,
                                               const CrossEntropyGradArguments<T, L>& arguments) {
  using Reduce = CrossEntropySize::Reduce;
  if (const auto wrong = first_wrong_label(size, arguments.labels)) return wrong;
  T scale = 1;
  if (size.reduce == Reduce::mean)
    scale = static_cast<T>(1 / weight_sum(size, arguments.labels, arguments.weight));
  T weights = 0;  // of all classes, for smoothing
  for (std::int64_t c = 0; c < size.classes; ++c) weights += weight_of(arguments.weight, c);
  parallel_for(size.samples, grain(size), arguments.threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sample_gradient(size, arguments, i, scale, weights);
  });
  return std::nullopt;
}

#define MUSTER_INSTANTIATE(T, L)                                                          \
  template std::optional<std::int64_t> cross_entropy(const CrossEntropySize&,             \
                                                     const CrossEntropyArguments<T, L>&); \
  template std::optional<std::int64_t> cross_entropy_grad(const CrossEntropySize&,        \
                                                          const CrossEntropyGradArguments<T, L>&);
MUSTER_INSTANTIATE(float, std::int32_t)
MUSTER_INSTANTIATE(float, std::int64_t)
MUSTER_INSTANTIATE(double, std::int32_t)
MUSTER_INSTANTIATE(double, std::int64_t)

}  // namespace muster::kernels
