// Many matrix products of one size.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/tensor/kernels/matmul.h"

namespace muster::kernels {

// Product i multiplies the matrices at a + a_begins[i] and b + b_begins[i] (in elements); the results lie one
// behind the other.
struct BatchMatmulSize {
  MatmulSize each;
  std::vector<std::int64_t> a_begins;
  std::vector<std::int64_t> b_begins;
};

// What a product reads and writes, and the memory of batch_matmul_scratch.
template <class T>
struct BatchMatmulArguments {
  const T* a = nullptr;
  const T* b = nullptr;
  T* c = nullptr;
  std::byte* scratch = nullptr;
  int threads = 1;
};

// `kernel` serves float; null is the reference. T is float or double. Threads share the products when there
// are many small ones, each product otherwise; the bits are the same.
template <class T>
void batch_matmul(const BatchMatmulSize& size, const MatmulKernel* kernel,
                  const BatchMatmulArguments<T>& arguments);
// In bytes.
std::size_t batch_matmul_scratch(const BatchMatmulSize& size, const MatmulKernel* kernel, int threads);

}  // namespace muster::kernels
