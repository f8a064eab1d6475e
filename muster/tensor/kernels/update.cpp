#include "muster/tensor/kernels/update.h"

#include <algorithm>

#include "muster/tensor/kernels/vectorised.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

// Waking a thread costs as much as updating about this many elements.
constexpr std::int64_t elements_per_thread = 1 << 16;

template <class T>
void update(const SgdSettings& settings, const SgdArguments<T>& arguments, std::int64_t first,
            std::int64_t last) {
  const auto scale = static_cast<T>(settings.gradient_scale);
  const auto decay = static_cast<T>(settings.weight_decay);
  const T rate = arguments.learning_rate;
  const T* const gradient = arguments.gradient;
  T* const p = arguments.parameter;
  vectorised(first, last, [=](std::int64_t begin, std::int64_t end) MUSTER_LOOP {
    for (std::int64_t i = begin; i < end; ++i) p[i] -= rate * (gradient[i] * scale + decay * p[i]);
  });
}

template <bool nesterov, class T>
void update_with_momentum(const SgdSettings& settings, const SgdArguments<T>& arguments, std::int64_t first,
                          std::int64_t last) {
  const auto scale = static_cast<T>(settings.gradient_scale);
  const auto decay = static_cast<T>(settings.weight_decay);
  const auto momentum = arguments.first ? T{0} : static_cast<T>(settings.momentum);
  const auto undamped = arguments.first ? T{1} : static_cast<T>(1 - settings.dampening);
  const auto ahead = static_cast<T>(settings.momentum);
  const T rate = arguments.learning_rate;
  const T* const gradient = arguments.gradient;
  T* const p = arguments.parameter;
  T* const v = arguments.accumulation;
  vectorised(first, last, [=](std::int64_t begin, std::int64_t end) MUSTER_LOOP {
#pragma GCC ivdep  // no element depends on another one
    for (std::int64_t i = begin; i < end; ++i) {
      const T g = gradient[i] * scale + decay * p[i];
      v[i] = momentum * v[i] + undamped * g;
      p[i] -= rate * (nesterov ? g + ahead * v[i] : v[i]);
    }
  });
}

}  // namespace

template <class T>
void sgd_part(const SgdSettings& settings, const SgdArguments<T>& arguments, std::int64_t begin,
              std::int64_t end) {
  if (arguments.accumulation == nullptr) return update(settings, arguments, begin, end);
  if (settings.nesterov) return update_with_momentum<true>(settings, arguments, begin, end);
  update_with_momentum<false>(settings, arguments, begin, end);
}

template <class T>
void sgd(const SgdSettings& settings, const SgdArguments<T>& arguments) {
  parallel_for(arguments.count, elements_per_thread, arguments.threads,
               [&](std::int64_t begin, std::int64_t end) { sgd_part(settings, arguments, begin, end); });
}

void for_each_part(std::span<const std::int64_t> ends, int threads, const PartBody& body) {
  if (ends.empty()) return;
  const std::int64_t total = ends.back();
  const std::int64_t shares = std::clamp<std::int64_t>(total / elements_per_thread, 1, std::max(threads, 1));
  parallel_for(shares, 1, threads, [&](std::int64_t first, std::int64_t last) {
    std::int64_t from = total * first / shares;
    const std::int64_t to = total * last / shares;
    while (from < to) {
      const auto end = std::upper_bound(ends.begin(), ends.end(), from);
      const std::int64_t start = end == ends.begin() ? 0 : *(end - 1);
      body(static_cast<std::size_t>(end - ends.begin()), from - start, std::min(*end, to) - start);
      from = *end;
    }
  });
}

template void sgd(const SgdSettings&, const SgdArguments<float>&);
template void sgd(const SgdSettings&, const SgdArguments<double>&);
template void sgd_part(const SgdSettings&, const SgdArguments<float>&, std::int64_t, std::int64_t);
template void sgd_part(const SgdSettings&, const SgdArguments<double>&, std::int64_t, std::int64_t);

}  // namespace muster::kernels
