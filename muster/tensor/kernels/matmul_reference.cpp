#include <cmath>

#include "muster/tensor/kernels/matmul.h"

namespace muster::kernels {

template <class T>
void matmul_reference(const MatmulSize& size, const MatmulArguments<T>& arguments) {
  const std::int64_t a_row = size.transpose_a ? 1 : size.k;
  const std::int64_t a_column = size.transpose_a ? size.m : 1;
  const std::int64_t b_row = size.transpose_b ? 1 : size.n;
  const std::int64_t b_column = size.transpose_b ? size.k : 1;
  for (std::int64_t i = 0; i < size.m; ++i) {
    for (std::int64_t j = 0; j < size.n; ++j) {
      T sum = 0;
      for (std::int64_t p = 0; p < size.k; ++p)
        sum += arguments.a[i * a_row + p * a_column] * arguments.b[p * b_row + j * b_column];
      if (arguments.bias != nullptr) sum += arguments.bias[j];
      if (arguments.activation == Activation::relu) sum = sum > 0 ? sum : (std::isnan(sum) ? sum : T{0});
      if (arguments.activation == Activation::tanh) sum = std::tanh(sum);
      arguments.c[i * size.n + j] = sum;
    }
  }
}

template void matmul_reference(const MatmulSize&, const MatmulArguments<float>&);
template void matmul_reference(const MatmulSize&, const MatmulArguments<double>&);

}  // namespace muster::kernels
