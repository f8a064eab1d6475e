#include <cmath>

#include "muster/tensor/kernels/batch_norm.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

// Calls use(index) for each element of one channel, in the order of memory.
template <class Use>
void for_channel(const BatchNormSize& size, std::int64_t channel, const Use& use) {
  for (std::int64_t n = 0; n < size.batch; ++n) {
    const std::int64_t begin = (n * size.channels + channel) * size.inner;
    for (std::int64_t i = begin; i < begin + size.inner; ++i) use(i);
  }
}

struct Statistics {
  double mean = 0;
  double variance = 0;
};

template <class T>
Statistics statistics_of(const BatchNormSize& size, const T* x, std::int64_t channel) {
  const auto count = static_cast<double>(size.count());
  Statistics found;
  for_channel(size, channel, [&](std::int64_t i) { found.mean += static_cast<double>(x[i]); });
  found.mean /= count;
  for_channel(size, channel, [&](std::int64_t i) {
    const double difference = static_cast<double>(x[i]) - found.mean;
    found.variance += difference * difference;
  });
  found.variance /= count;
  return found;
}

template <class T>
void move(const BatchNormSize& size, T& moving, double batch) {
  moving = static_cast<T>(size.moved(static_cast<double>(moving), batch));
}

}  // namespace

template <class T>
void batch_norm(const BatchNormSize& size, const BatchNormArguments<T>& arguments) {
  parallel_for(size.channels, 1, arguments.threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      Statistics used{static_cast<double>(arguments.moving_mean[c]),
                      static_cast<double>(arguments.moving_variance[c])};
      if (size.training) {
        used = statistics_of(size, arguments.x, c);
        move(size, arguments.moving_mean[c], used.mean);
        move(size, arguments.moving_variance[c], used.variance * size.unbiased());
      }
      arguments.mean[c] = static_cast<T>(used.mean);
      arguments.variance[c] = static_cast<T>(used.variance);
      const double scale = static_cast<double>(arguments.gamma[c]) / std::sqrt(used.variance + size.eps);
      const auto beta = static_cast<double>(arguments.beta[c]);
      for_channel(size, c, [&](std::int64_t i) {
        const double y = (static_cast<double>(arguments.x[i]) - used.mean) * scale + beta;
        if (arguments.mask != nullptr) arguments.mask[i] = y > 0;
        arguments.y[i] = static_cast<T>(arguments.mask != nullptr && y < 0 ? 0.0 : y);
      });
    }
  });
}

template <class T>
void batch_norm_grad(const BatchNormSize& size, const BatchNormGradArguments<T>& arguments) {
  const auto count = static_cast<double>(size.count());
  parallel_for(size.channels, 1, arguments.threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      const auto mean = static_cast<double>(arguments.mean[c]);
      const double inverse = 1 / std::sqrt(static_cast<double>(arguments.variance[c]) + size.eps);
      const double scale = static_cast<double>(arguments.gamma[c]) * inverse;
      const auto dy = [&](std::int64_t i) {
        const bool passes = arguments.mask == nullptr || arguments.mask[i] != 0;
        return passes ? static_cast<double>(arguments.dy[i]) : 0.0;
      };
      double dgamma = 0, dbeta = 0;
      for_channel(size, c, [&](std::int64_t i) {
        dbeta += dy(i);
        dgamma += dy(i) * (static_cast<double>(arguments.x[i]) - mean) * inverse;
      });
      arguments.dgamma[c] = static_cast<T>(dgamma);
      arguments.dbeta[c] = static_cast<T>(dbeta);
      // The batch's own mean and variance depend on x too.
      const double through_mean = size.training ? dbeta / count : 0;
      const double through_variance = size.training ? dgamma / count : 0;
      for_channel(size, c, [&](std::int64_t i) {
        const double normal = (static_cast<double>(arguments.x[i]) - mean) * inverse;
        arguments.dx[i] = static_cast<T>(scale * (dy(i) - through_mean - normal * through_variance));
      });
    }
  });
}

#define MUSTER_INSTANTIATE(T)                                                   \
  template void batch_norm(const BatchNormSize&, const BatchNormArguments<T>&); \
  template void batch_norm_grad(const BatchNormSize&, const BatchNormGradArguments<T>&);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)

}  // namespace muster::kernels
