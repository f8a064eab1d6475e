// The negative log likelihood of labels. T is float or double, L the labels' int32_t or int64_t.
#pragma once

#include <cstdint>
#include <optional>

#include "muster/tensor/kernels/softmax_cross_entropy.h"

namespace muster::kernels {

// `size.label_smoothing` is not used. `weight` (classes) is null when all are 1.
template <class T, class L>
struct NllArguments {
  const T* logs = nullptr;  // samples x classes; null for the gradient
  const L* labels = nullptr;
  const T* weight = nullptr;
  T* loss = nullptr;                 // forward: one number, or one for each sample
  const T* loss_gradient = nullptr;  // gradient: likewise
  T* logs_gradient = nullptr;        // gradient: samples x classes
};

// loss = -weight[label] logs[label], reduced; the mean divides by the sum of the weights. Gives the first
// sample whose label is no class, if there is one.
template <class T, class L>
std::optional<std::int64_t> nll_loss(const CrossEntropySize& size, const NllArguments<T, L>& arguments);

template <class T, class L>
std::optional<std::int64_t> nll_loss_grad(const CrossEntropySize& size, const NllArguments<T, L>& arguments);

}  // namespace muster::kernels
