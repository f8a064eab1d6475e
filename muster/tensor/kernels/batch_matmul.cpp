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

std::int64_t operations_of(const MatmulSize& each) {
  return std::max<std::int64_t>(each.m * each.n * each.k, 1);
}

template <class T>
void multiply(const MatmulSize& size, const MatmulKernel* kernel, const MatmulArguments<T>& arguments) {
  if constexpr (std::is_same_v<T, float>) {
    if (kernel != nullptr) return kernel->run(size, arguments);
  }
  matmul_reference(size, arguments);
}

// Whether each thread computes whole products, instead of a part of each.
bool shares_products(const BatchMatmulSize& size) {
  return operations_of(size.each) < large_operations && size.a_begins.size() > 1;
}

}  // namespace

std::size_t batch_matmul_scratch(const BatchMatmulSize& size, const MatmulKernel* kernel, int threads) {
  if (kernel == nullptr) return 0;
  return shares_products(size) ? kernel->scratch_bytes(size.each, 1) * static_cast<std::size_t>(threads)
                               : kernel->scratch_bytes(size.each, threads);
}

template <class T>
void batch_matmul(const BatchMatmulSize& size, const MatmulKernel* kernel,
                  const BatchMatmulArguments<T>& arguments) {
  const MatmulSize& each = size.each;
  const auto products = static_cast<std::int64_t>(size.a_begins.size());
  const bool shares = shares_products(size);
  const std::int64_t grain =
      shares ? std::max<std::int64_t>(operations_per_part / operations_of(each), 1) : products;
  const std::size_t scratch_of_part =
      shares && kernel != nullptr ? kernel->scratch_bytes(each, 1) : std::size_t{0};
  if (products == 0) return;
  parallel_parts(
      products, grain, arguments.threads, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          multiply<T>(each, kernel,
                      {.a = arguments.a + size.a_begins[static_cast<std::size_t>(i)],
                       .b = arguments.b + size.b_begins[static_cast<std::size_t>(i)],
                       .c = arguments.c + i * each.m * each.n,
                       .threads = shares ? 1 : arguments.threads,
                       .scratch = arguments.scratch + static_cast<std::size_t>(part) * scratch_of_part});
      });
}

template void batch_matmul(const BatchMatmulSize&, const MatmulKernel*, const BatchMatmulArguments<float>&);
template void batch_matmul(const BatchMatmulSize&, const MatmulKernel*, const BatchMatmulArguments<double>&);

}  // namespace muster::kernels
