// Sums that pass a relu, forwards and backwards, and relu itself: elements in any order, on several threads.
// T is float, double or bfloat16; outputs may be inputs.
#pragma once

#include <cstdint>

namespace muster::kernels {

struct Extent {
  std::int64_t count = 0;
  int threads = 1;
};

// out = max(a + b, 0), NaN stays NaN
template <class T>
void add_relu(const T* a, const T* b, T* out, const Extent& extent);

template <class T>
struct AddReluGradArguments {
  const T* a = nullptr;
  const T* b = nullptr;
  const T* y = nullptr;
};
// out = a + b where y > 0, else 0
template <class T>
void add_relu_grad(const AddReluGradArguments<T>& arguments, T* out, const Extent& extent);

}  // namespace muster::kernels
