#include "muster/tensor/kernels/update_ftrl.h"

#include <cmath>

namespace muster::kernels {
namespace {

// n^-power: a root, unless another power was asked for.
template <class T>
T powered(T n, T power) {
  return power == T{-0.5} ? std::sqrt(n) : std::pow(n, -power);
}

}  // namespace

template <class T>
void ftrl_part(const FtrlSettings& settings, const FtrlState<T>& state, const UpdateArguments<T>& arguments,
               std::int64_t begin, std::int64_t end) {
  const auto rate = static_cast<T>(arguments.learning_rate);
  if (rate == 0) return;  // the formula divides by it: nothing moves
  const auto scale = static_cast<T>(settings.scale.gradient_scale);
  const auto decay = static_cast<T>(settings.scale.weight_decay);
  const auto power = static_cast<T>(settings.power);
  const auto l1 = static_cast<T>(settings.l1), l2 = static_cast<T>(settings.l2);
  T* const p = arguments.parameter;
  T* const sum = state.sum;
  T* const linear = state.linear;
  for (std::int64_t i = begin; i < end; ++i) {
    const T g = arguments.gradient[i] * scale + decay * p[i];
    const T before = powered(sum[i], power);
    sum[i] += g * g;
    const T root = powered(sum[i], power);
    linear[i] += g - (root - before) / rate * p[i];
    const T u = linear[i];
    p[i] = std::abs(u) > l1 ? (std::copysign(l1, u) - u) / (root / rate + 2 * l2) : T{0};
  }
}

template void ftrl_part(const FtrlSettings&, const FtrlState<float>&, const UpdateArguments<float>&,
                        std::int64_t, std::int64_t);
template void ftrl_part(const FtrlSettings&, const FtrlState<double>&, const UpdateArguments<double>&,
                        std::int64_t, std::int64_t);

}  // namespace muster::kernels
