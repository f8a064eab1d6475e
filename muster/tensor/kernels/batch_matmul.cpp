#include "muster/tensor/kernels/batch_matmul.h"

#include <algorithm>
#include <type_traits>

#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

// From this much work on, one product keeps all threads busy.
constexpr std::int64_t large_operations = 1 << 22;
// Waking a thread costs about as much as this much work.
constexpr std::int64_t operations_per_part = 1 << 18;

template <class T>
void multiply(const MatmulSize& size, const MatmulKernel* kernel, const MatmulArguments<T>& arguments) {
  if constexpr (std::is_same_v<T, float>) {
    if (kernel != nullptr) return kernel->run(size, arguments);
  }
  matmul_reference(size, arguments);
}

}  // namespace

template <class T>
void batch_matmul(const BatchMatmulSize& size, const MatmulKernel* kernel, const T* a, const T* b, T* c,
                  int threads) {
  const MatmulSize& each = size.each;
  const auto products = static_cast<std::int64_t>(size.a_begins.size());
  const std::int64_t operations = std::max<std::int64_t>(each.m * each.n * each.k, 1);
  const bool share_products = operations < large_operations && products > 1;
  const std::int64_t grain =
      share_products ? std::max<std::int64_t>(operations_per_part / operations, 1) : products;
  if (products == 0) return;
  parallel_for(products, grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      multiply<T>(each, kernel,
                  {.a = a + size.a_begins[static_cast<std::size_t>(i)],
                   .b = b + size.b_begins[static_cast<std::size_t>(i)],
                   .c = c + i * each.m * each.n,
                   .threads = share_products ? 1 : threads});
  });
}

template void batch_matmul(const BatchMatmulSize&, const MatmulKernel*, const float*, const float*, float*,
                           int);
template void batch_matmul(const BatchMatmulSize&, const MatmulKernel*, const double*, const double*, double*,
                           int);

}  // namespace muster::kernels
