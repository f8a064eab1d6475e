#include "muster/tensor/kernels/update.h"

#include "muster/tensor/parallel.h"

namespace muster::kernels {

namespace {

// Waking a thread costs as much as updating about this many elements.
constexpr std::int64_t elements_per_thread = 1 << 16;

template <class T>
void update(const SgdSettings& settings, const SgdArguments<T>& arguments, std::int64_t begin,
            std::int64_t end) {
  const auto scale = static_cast<T>(settings.gradient_scale);
  const auto decay = static_cast<T>(settings.weight_decay);
  const T rate = arguments.learning_rate;
  const T* const gradient = arguments.gradient;
  T* const p = arguments.parameter;
  for (std::int64_t i = begin; i < end; ++i) p[i] -= rate * (gradient[i] * scale + decay * p[i]);
}

template <class T>
void update_with_momentum(const SgdSettings& settings, const SgdArguments<T>& arguments, std::int64_t begin,
                          std::int64_t end) {
  const auto scale = static_cast<T>(settings.gradient_scale);
  const auto decay = static_cast<T>(settings.weight_decay);
  const auto momentum = arguments.first ? T{0} : static_cast<T>(settings.momentum);
  const auto undamped = arguments.first ? T{1} : static_cast<T>(1 - settings.dampening);
  const auto ahead = static_cast<T>(settings.momentum);
  const T rate = arguments.learning_rate;
  const T* const gradient = arguments.gradient;
  T* const p = arguments.parameter;
  T* const v = arguments.accumulation;
  for (std::int64_t i = begin; i < end; ++i) {
    const T g = gradient[i] * scale + decay * p[i];
    v[i] = momentum * v[i] + undamped * g;
    p[i] -= rate * (settings.nesterov ? g + ahead * v[i] : v[i]);
  }
}

}  // namespace

template <class T>
void sgd(const SgdSettings& settings, const SgdArguments<T>& arguments) {
  parallel_for(arguments.count, elements_per_thread, arguments.threads,
               [&](std::int64_t begin, std::int64_t end) {
                 if (arguments.accumulation == nullptr)
                   update(settings, arguments, begin, end);
                 else
                   update_with_momentum(settings, arguments, begin, end);
               });
}

template void sgd(const SgdSettings&, const SgdArguments<float>&);
template void sgd(const SgdSettings&, const SgdArguments<double>&);

}  // namespace muster::kernels
