// Matrix products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "muster/tensor/cpu.h"

namespace muster::kernels {

// c (m, n) = op(a) op(b); a is (m, k), or (k, m) when transposed; b is (k, n), or (n, k) when transposed.
struct MatmulSize {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
};

enum class Activation { none, relu, tanh };

// c = activation(op(a) op(b) + bias), bias (n,) or null.
template <class T>
struct MatmulArguments {
  const T* a = nullptr;
  const T* b = nullptr;
  T* c = nullptr;
  const T* bias = nullptr;
  Activation activation = Activation::none;
  int threads = 1;
  std::byte* scratch = nullptr;  // of the kernel's scratch_bytes
};

// The definition; float or double.
template <class T>
void matmul_reference(const MatmulSize& size, const MatmulArguments<T>& arguments);

// Each sum runs over k in an order that depends on the sizes alone, so threads never change a bit.
struct MatmulKernel {
  Isa isa = Isa::none;
  std::string_view name;
  bool (*usable)(const MatmulSize& size);
  void (*run)(const MatmulSize& size, const MatmulArguments<float>& arguments);
  // With so many threads; never more with fewer.
  std::size_t (*scratch_bytes)(const MatmulSize& size, int threads);
  bool narrow = true;  // made for products with a short side, and hard to beat there; else for any
};

// Fast ones, best first; empty where the processor has none. The reference is not among them.
std::span<const MatmulKernel> matmul_kernels();

}  // namespace muster::kernels
