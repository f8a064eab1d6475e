#include "muster/tensor/kernels/nll_loss.h"

#include <algorithm>

namespace muster::kernels {

namespace {

using Reduce = CrossEntropySize::Reduce;

template <class T, class L>
T weight_of(const NllArguments<T, L>& arguments, std::int64_t label) {
  return arguments.weight == nullptr ? T{1} : arguments.weight[label];
}

// The sum of the weights of the labels that count.
template <class T, class L>
double weight_sum(const CrossEntropySize& size, const NllArguments<T, L>& arguments) {
  double sum = 0;
  for (std::int64_t i = 0; i < size.samples; ++i)
    if (const std::int64_t label = arguments.labels[i]; label != size.ignore_index)
      sum += static_cast<double>(weight_of(arguments, label));
  return sum;
}

template <class T, class L>
std::optional<std::int64_t> first_wrong(const CrossEntropySize& size, const NllArguments<T, L>& arguments) {
  for (std::int64_t i = 0; i < size.samples; ++i) {
    const std::int64_t label = arguments.labels[i];
    if (label != size.ignore_index && (label < 0 || label >= size.classes)) return i;
  }
  return std::nullopt;
}

}  // namespace

template <class T, class L>
std::optional<std::int64_t> nll_loss(const CrossEntropySize& size, const NllArguments<T, L>& arguments) {
  if (const auto wrong = first_wrong(size, arguments)) return wrong;
  double sum = 0;
  for (std::int64_t i = 0; i < size.samples; ++i) {
    const std::int64_t label = arguments.labels[i];
    const bool counts = label != size.ignore_index;
    const T loss = counts ? -weight_of(arguments, label) * arguments.logs[i * size.classes + label] : T{0};
    if (size.reduce == Reduce::none) arguments.loss[i] = loss;
    sum += static_cast<double>(loss);
  }
  if (size.reduce == Reduce::mean) sum /= weight_sum(size, arguments);
  if (size.reduce != Reduce::none) *arguments.loss = static_cast<T>(sum);
  return std::nullopt;
}

template <class T, class L>
std::optional<std::int64_t> nll_loss_grad(const CrossEntropySize& size, const NllArguments<T, L>& arguments) {
  if (const auto wrong = first_wrong(size, arguments)) return wrong;
  std::fill_n(arguments.logs_gradient, size.samples * size.classes, T{0});
  const double divisor = size.reduce == Reduce::mean ? weight_sum(size, arguments) : 1.0;
  for (std::int64_t i = 0; i < size.samples; ++i) {
    const std::int64_t label = arguments.labels[i];
    if (label == size.ignore_index) continue;
    const T flow = size.reduce == Reduce::none ? arguments.loss_gradient[i] : *arguments.loss_gradient;
    arguments.logs_gradient[i * size.classes + label] =
        -weight_of(arguments, label) * flow / static_cast<T>(divisor);
  }
  return std::nullopt;
}

#define MUSTER_NLL(T, L)                                                                             \
  template std::optional<std::int64_t> nll_loss(const CrossEntropySize&, const NllArguments<T, L>&); \
  template std::optional<std::int64_t> nll_loss_grad(const CrossEntropySize&, const NllArguments<T, L>&);
MUSTER_NLL(float, std::int32_t)
MUSTER_NLL(float, std::int64_t)
MUSTER_NLL(double, std::int32_t)
MUSTER_NLL(double, std::int64_t)
#undef MUSTER_NLL

}  // namespace muster::kernels
