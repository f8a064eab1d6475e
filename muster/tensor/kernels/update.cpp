#include "muster/tensor/kernels/update.h"

namespace muster::kernels {

template <class T>
void sgd(const SgdSettings& settings, const SgdArguments<T>& arguments) {
  const auto scale = static_cast<T>(settings.gradient_scale);
  const auto decay = static_cast<T>(settings.weight_decay);
  const T rate = arguments.learning_rate;
  T* const p = arguments.parameter;
  if (arguments.accumulation == nullptr) {
    for (std::int64_t i = 0; i < arguments.count; ++i)
      p[i] -= rate * (arguments.gradient[i] * scale + decay * p[i]);
    return;
  }
  const auto momentum = arguments.first ? T{0} : static_cast<T>(settings.momentum);
  const auto undamped = arguments.first ? T{1} : static_cast<T>(1 - settings.dampening);
  const auto ahead = static_cast<T>(settings.momentum);
  T* const v = arguments.accumulation;
  for (std::int64_t i = 0; i < arguments.count; ++i) {
    const T g = arguments.gradient[i] * scale + decay * p[i];
    v[i] = momentum * v[i] + undamped * g;
    p[i] -= rate * (settings.nesterov ? g + ahead * v[i] : v[i]);
  }
}

template void sgd(const SgdSettings&, const SgdArguments<float>&);
template void sgd(const SgdSettings&, const SgdArguments<double>&);

}  // namespace muster::kernels
