#include "muster/tensor/kernels/add_relu.h"

#include "muster/tensor/kernels/bfloat16_loops.h"
#include "muster/tensor/kernels/elementwise_loops.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {
// Waking a thread costs as much as this many elements.
constexpr std::int64_t elements_per_thread = 1 << 15;
}  // namespace

template <class T>
void add_relu(const T* a, const T* b, T* out, const Extent& extent) {
  parallel_for(extent.count, elements_per_thread, extent.threads, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T sum = a[i] + b[i];
      out[i] = sum < 0 ? T{0} : sum;
    }
  });
}

template <class T>
void add_relu_grad(const AddReluGradArguments<T>& arguments, T* out, const Extent& extent) {
  const auto [a, b, y] = arguments;
  parallel_for(extent.count, elements_per_thread, extent.threads,
               [a = a, b = b, y = y, out](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const T sum = a[i] + b[i];
                   out[i] = y[i] > 0 ? sum : T{0};
                 }
               });
}

template <>
void add_relu(const bfloat16* a, const bfloat16* b, bfloat16* out, const Extent& extent) {
  in_parts(bfloat16_loops().add_relu, extent.count, extent.threads, out, a, b);
}

template <>
void add_relu_grad(const AddReluGradArguments<bfloat16>& arguments, bfloat16* out, const Extent& extent) {
  in_parts(bfloat16_loops().add_relu_grad, extent.count, extent.threads, out, arguments.a, arguments.b,
           arguments.y);
}

#define MUSTER_INSTANTIATE(T)                                    \
  template void add_relu(const T*, const T*, T*, const Extent&); \
  template void add_relu_grad(const AddReluGradArguments<T>&, T*, const Extent&);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)

}  // namespace muster::kernels
