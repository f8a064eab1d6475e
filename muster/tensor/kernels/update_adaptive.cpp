#include "muster/tensor/kernels/update_adaptive.h"

#include <algorithm>
#include <cmath>

#include "muster/tensor/kernels/vectorised.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {

namespace {

// Waking a thread costs as much as updating about this many elements.
constexpr std::int64_t elements_per_thread = 1 << 15;

// Calls part(begin, end) for all elements on several threads.
template <class T, class Part>
void on_threads(const UpdateArguments<T>& arguments, const Part& part) {
  parallel_for(arguments.count, elements_per_thread, arguments.threads, part);
}

// Calls update(i) for each element, which must be declared MUSTER_LOOP and look at no other one.
template <class Update>
void for_elements(std::int64_t first, std::int64_t last, const Update& update) {
  vectorised(first, last, [update](std::int64_t begin, std::int64_t end) MUSTER_LOOP {
#pragma GCC ivdep
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
  MUSTER_LOOP T operator()(std::int64_t i) const { return gradient[i] * scale + decay * parameter[i]; }
};

double corrected_rate(const AdamSettings& settings, std::int64_t steps, double learning_rate) {
  if (settings.decoupled) return learning_rate;
  const auto t = static_cast<double>(steps + 1);
  return learning_rate * std::sqrt(1 - std::pow(settings.beta2, t)) / (1 - std::pow(settings.beta1, t));
}

template <bool nesterov, bool amsgrad, class T>
void adam_elements(const AdamSettings& settings, const AdamState<T>& state,
                   const UpdateArguments<T>& arguments, std::int64_t begin, std::int64_t end) {
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
  for_elements(begin, end, [=](std::int64_t i) MUSTER_LOOP {
    const T g = decayed(i);
    const T m = state.mean[i] = beta1 * state.mean[i] + rest1 * g;
    const T v = state.square[i] = beta2 * state.square[i] + rest2 * g * g;
    T height = v;
    if constexpr (amsgrad) height = state.greatest[i] = std::max(state.greatest[i], v);
    const T direction = nesterov ? beta1 * m + rest1 * g : m;
    p[i] -= rate * direction / (std::sqrt(height) + eps) + apart * p[i];
  });
}

template <bool centered, class T>
void rms_prop_elements(const RmsPropSettings& settings, const RmsPropState<T>& state,
                       const UpdateArguments<T>& arguments, std::int64_t begin, std::int64_t end) {
  const auto decay = static_cast<T>(settings.decay);
  const auto rest = static_cast<T>(1 - settings.decay);
  const auto momentum = static_cast<T>(settings.momentum);
  const auto eps = static_cast<T>(settings.eps);
  const auto rate = static_cast<T>(arguments.learning_rate);
  const Decayed<T> decayed(settings.scale, arguments);
  T* const p = arguments.parameter;
  for_elements(begin, end, [=](std::int64_t i) MUSTER_LOOP {
    const T g = decayed(i);
    const T s = state.square[i] = decay * state.square[i] + rest * g * g;
    T spread = s;
    if constexpr (centered) {
      const T n = state.mean[i] = decay * state.mean[i] + rest * g;
      spread = s - n * n;
    }
    const T v = state.moment[i] = momentum * state.moment[i] + rate * g / std::sqrt(spread + eps);
    p[i] -= v;
  });
}

template <bool accumulates, class T>
void adagrad_elements(const AdagradSettings& settings, T* sum, const UpdateArguments<T>& arguments,
                      std::int64_t begin, std::int64_t end) {
  const auto eps = static_cast<T>(settings.eps);
  const auto rate = static_cast<T>(arguments.learning_rate);
  const Decayed<T> decayed(settings.scale, arguments);
  T* const p = arguments.parameter;
  for_elements(begin, end, [=](std::int64_t i) MUSTER_LOOP {
    const T g = decayed(i);
    if constexpr (accumulates) sum[i] += g * g;
    p[i] -= rate * g / (std::sqrt(sum[i]) + eps);
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
void adam_part(const AdamSettings& settings, const AdamState<T>& state, const UpdateArguments<T>& arguments,
               std::int64_t begin, std::int64_t end) {
  const bool amsgrad = state.greatest != nullptr;
  if (settings.nesterov && amsgrad) return adam_elements<true, true>(settings, state, arguments, begin, end);
  if (settings.nesterov) return adam_elements<true, false>(settings, state, arguments, begin, end);
  if (amsgrad) return adam_elements<false, true>(settings, state, arguments, begin, end);
  adam_elements<false, false>(settings, state, arguments, begin, end);
}

template <class T>
void adam(const AdamSettings& settings, const AdamState<T>& state, const UpdateArguments<T>& arguments) {
  on_threads(arguments, [&](std::int64_t begin, std::int64_t end) {
    adam_part(settings, state, arguments, begin, end);
  });
}

template <class T>
void rms_prop_part(const RmsPropSettings& settings, const RmsPropState<T>& state,
                   const UpdateArguments<T>& arguments, std::int64_t begin, std::int64_t end) {
  if (state.mean != nullptr) return rms_prop_elements<true>(settings, state, arguments, begin, end);
  rms_prop_elements<false>(settings, state, arguments, begin, end);
}

template <class T>
void rms_prop(const RmsPropSettings& settings, const RmsPropState<T>& state,
              const UpdateArguments<T>& arguments) {
  on_threads(arguments, [&](std::int64_t begin, std::int64_t end) {
    rms_prop_part(settings, state, arguments, begin, end);
  });
}

template <class T>
void adagrad_part(const AdagradSettings& settings, T* sum, const UpdateArguments<T>& arguments,
                  std::int64_t begin, std::int64_t end) {
  if (settings.accumulate) return adagrad_elements<true>(settings, sum, arguments, begin, end);
  adagrad_elements<false>(settings, sum, arguments, begin, end);
}

template <class T>
void adagrad(const AdagradSettings& settings, T* sum, const UpdateArguments<T>& arguments) {
  on_threads(arguments, [&](std::int64_t begin, std::int64_t end) {
    adagrad_part(settings, sum, arguments, begin, end);
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
  on_threads(arguments, [&](std::int64_t begin, std::int64_t end) {
    for_elements(begin, end, [=](std::int64_t i) MUSTER_LOOP { out[i] = factor * decayed(i); });
  });
}

#define MUSTER_INSTANTIATE(T)                                                                                \
  template void adam(const AdamSettings&, const AdamState<T>&, const UpdateArguments<T>&);                   \
  template void adam_part(const AdamSettings&, const AdamState<T>&, const UpdateArguments<T>&, std::int64_t, \
                          std::int64_t);                                                                     \
  template void rms_prop(const RmsPropSettings&, const RmsPropState<T>&, const UpdateArguments<T>&);         \
  template void rms_prop_part(const RmsPropSettings&, const RmsPropState<T>&, const UpdateArguments<T>&,     \
                              std::int64_t, std::int64_t);                                                   \
  template void adagrad(const AdagradSettings&, T*, const UpdateArguments<T>&);                              \
  template void adagrad_part(const AdagradSettings&, T*, const UpdateArguments<T>&, std::int64_t,            \
                             std::int64_t);                                                                  \
  template void lars(const LarsSettings&, const UpdateArguments<T>&, T*);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)

}  // namespace muster::kernels
