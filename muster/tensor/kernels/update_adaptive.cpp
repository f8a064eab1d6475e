#include "muster/tensor/kernels/update_adaptive.h"

#include <algorithm>
#include <cmath>

#include "muster/tensor/parallel.h"

namespace muster::kernels {

namespace {

// Waking a thread costs as much as updating about this many elements.
constexpr std::int64_t elements_per_thread = 1 << 15;

template <class T, class Update>
void for_elements(const UpdateArguments<T>& arguments, const Update& update) {
  parallel_for(arguments.count, elements_per_thread, arguments.threads,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) update(i);
               });
}

// g as above, for element i.
template <class T>
struct Decayed {
  const T* gradient;
  const T* parameter;
  T scale;
  T decay;

  Decayed(const UpdateScale& given, const UpdateArguments<T>& arguments)
      : gradient(arguments.gradient),
        parameter(arguments.parameter),
        scale(static_cast<T>(given.gradient_scale)),
        decay(static_cast<T>(given.weight_decay)) {}
  T operator()(std::int64_t i) const { return gradient[i] * scale + decay * parameter[i]; }
};

double corrected_rate(const AdamSettings& settings, std::int64_t steps, double learning_rate) {
  if (settings.decoupled) return learning_rate;
  const auto t = static_cast<double>(steps + 1);
  return learning_rate * std::sqrt(1 - std::pow(settings.beta2, t)) / (1 - std::pow(settings.beta1, t));
}

template <bool nesterov, bool amsgrad, class T>
void adam_elements(const AdamSettings& settings, const AdamState<T>& state,
                   const UpdateArguments<T>& arguments) {
  const auto beta1 = static_cast<T>(settings.beta1);
  const auto beta2 = static_cast<T>(settings.beta2);
  const auto rest1 = static_cast<T>(1 - settings.beta1);
  const auto rest2 = static_cast<T>(1 - settings.beta2);
  const auto eps = static_cast<T>(settings.eps);
  const auto rate = static_cast<T>(corrected_rate(settings, state.steps, arguments.learning_rate));
  const auto apart =
      static_cast<T>(settings.decoupled ? arguments.learning_rate * settings.scale.weight_decay : 0.0);
  UpdateScale scale = settings.scale;
  if (settings.decoupled) scale.weight_decay = 0;
  const Decayed<T> decayed(scale, arguments);
  T* const p = arguments.parameter;
  for_elements(arguments, [&](std::int64_t i) {
    const T g = decayed(i);
    const T m = state.mean[i] = beta1 * state.mean[i] + rest1 * g;
    const T v = state.square[i] = beta2 * state.square[i] + rest2 * g * g;
    T height = v;
    if constexpr (amsgrad) height = state.greatest[i] = std::max(state.greatest[i], v);
    const T direction = nesterov ? beta1 * m + rest1 * g : m;
    p[i] -= rate * direction / (std::sqrt(height) + eps) + apart * p[i];
  });
}

template <class T>
double norm(const T* values, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return std::sqrt(sum);
}

}  // namespace

template <class T>
void adam(const AdamSettings& settings, const AdamState<T>& state, const UpdateArguments<T>& arguments) {
  const bool amsgrad = state.greatest != nullptr;
  if (settings.nesterov && amsgrad) return adam_elements<true, true>(settings, state, arguments);
  if (settings.nesterov) return adam_elements<true, false>(settings, state, arguments);
  if (amsgrad) return adam_elements<false, true>(settings, state, arguments);
  adam_elements<false, false>(settings, state, arguments);
}

template <class T>
void rms_prop(const RmsPropSettings& settings, const RmsPropState<T>& state,
              const UpdateArguments<T>& arguments) {
  const auto decay = static_cast<T>(settings.decay);
  const auto rest = static_cast<T>(1 - settings.decay);
  const auto momentum = static_cast<T>(settings.momentum);
  const auto eps = static_cast<T>(settings.eps);
  const auto rate = static_cast<T>(arguments.learning_rate);
  const Decayed<T> decayed(settings.scale, arguments);
  T* const p = arguments.parameter;
  for_elements(arguments, [&](std::int64_t i) {
    const T g = decayed(i);
    const T s = state.square[i] = decay * state.square[i] + rest * g * g;
    T spread = s;
    if (state.mean != nullptr) {
      const T n = state.mean[i] = decay * state.mean[i] + rest * g;
      spread = s - n * n;
    }
    const T v = state.moment[i] = momentum * state.moment[i] + rate * g / std::sqrt(spread + eps);
    p[i] -= v;
  });
}

template <class T>
void adagrad(const AdagradSettings& settings, T* sum, const UpdateArguments<T>& arguments) {
  const auto eps = static_cast<T>(settings.eps);
  const auto rate = static_cast<T>(arguments.learning_rate);
  const Decayed<T> decayed(settings.scale, arguments);
  T* const p = arguments.parameter;
  for_elements(arguments, [&](std::int64_t i) {
    const T g = decayed(i);
    if (settings.accumulate) sum[i] += g * g;
    p[i] -= rate * g / (std::sqrt(sum[i]) + eps);
  });
}

template <class T>
void lars(const LarsSettings& settings, const UpdateArguments<T>& arguments, T* out) {
  const double decay = settings.scale.weight_decay;
  const double weight = norm(arguments.parameter, arguments.count);
  const double gradient = norm(arguments.gradient, arguments.count) * settings.scale.gradient_scale;
  double ratio = settings.coefficient * weight / (gradient + decay * weight + settings.eps);
  if (settings.clip) ratio = std::min(ratio / arguments.learning_rate, 1.0);
  const auto factor = static_cast<T>(ratio);
  const Decayed<T> decayed(settings.scale, arguments);
  for_elements(arguments, [&](std::int64_t i) { out[i] = factor * decayed(i); });
}

template void adam(const AdamSettings&, const AdamState<float>&, const UpdateArguments<float>&);
template void adam(const AdamSettings&, const AdamState<double>&, const UpdateArguments<double>&);
template void rms_prop(const RmsPropSettings&, const RmsPropState<float>&, const UpdateArguments<float>&);
template void rms_prop(const RmsPropSettings&, const RmsPropState<double>&, const UpdateArguments<double>&);
template void adagrad(const AdagradSettings&, float*, const UpdateArguments<float>&);
template void adagrad(const AdagradSettings&, double*, const UpdateArguments<double>&);
template void lars(const LarsSettings&, const UpdateArguments<float>&, float*);
template void lars(const LarsSettings&, const UpdateArguments<double>&, double*);

}  // namespace muster::kernels
