// Parameter updates, in place, one pass over memory. T is float or double.
#pragma once

#include <cstdint>

namespace muster::kernels {

struct SgdSettings {
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  double gradient_scale = 1.0;
  bool nesterov = false;
};

// `accumulation` is null without momentum; `first` says that it holds nothing yet.
template <class T>
struct SgdArguments {
  T* parameter = nullptr;
  const T* gradient = nullptr;
  T learning_rate = 0;
  T* accumulation = nullptr;
  bool first = false;
  std::int64_t count = 0;
  int threads = 1;
};

// g = gradient * gradient_scale + weight_decay * p; with momentum: v = momentum v + (1 - dampening) g, v = g
// at first, then g = nesterov ? g + momentum v : v; p -= learning_rate g.
template <class T>
void sgd(const SgdSettings& settings, const SgdArguments<T>& arguments);

}  // namespace muster::kernels
