#include "muster/tensor/kernels/softmax.h"

#include <algorithm>
#include <cmath>

#include "muster/tensor/kernels/types.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

template <class T>
T greatest(const T* x, std::int64_t size, std::int64_t step) {
  T found = x[0];
  for (std::int64_t i = 1; i < size; ++i)
    if (x[i * step] > found) found = x[i * step];
  return found;
}

template <class T>
void softmax_line(const T* x, T* y, std::int64_t size, std::int64_t step) {
  const T top = greatest(x, size, step);  // so that e^x cannot overflow
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const T power = std::exp(x[i * step] - top);
    y[i * step] = power;
    sum += static_cast<double>(power);
  }
  const T scale = static_cast<T>(1 / sum);
  for (std::int64_t i = 0; i < size; ++i) y[i * step] *= scale;
}

template <class T>
void log_softmax_line(const T* x, T* y, std::int64_t size, std::int64_t step) {
  const T top = greatest(x, size, step);
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += static_cast<double>(std::exp(x[i * step] - top));
  const T rest = static_cast<T>(std::log(sum));
  for (std::int64_t i = 0; i < size; ++i) y[i * step] = x[i * step] - top - rest;
}

template <class T>
void softmax_grad_line(const T* dy, const T* y, T* dx, std::int64_t size, std::int64_t step) {
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += static_cast<double>(dy[i * step]) * y[i * step];
  for (std::int64_t i = 0; i < size; ++i) dx[i * step] = y[i * step] * (dy[i * step] - static_cast<T>(sum));
}

template <class T>
void log_softmax_grad_line(const T* dy, const T* y, T* dx, std::int64_t size, std::int64_t step) {
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += static_cast<double>(dy[i * step]);
  for (std::int64_t i = 0; i < size; ++i)
    dx[i * step] = dy[i * step] - std::exp(y[i * step]) * static_cast<T>(sum);
}

// body(offset of the line's first element) for each line.
template <class Body>
void for_each_line(const LineSize& lines, int threads, const Body& body) {
  if (lines.size == 0) return;
  const std::int64_t grain = std::max<std::int64_t>(1, 4096 / lines.size);
  parallel_for(lines.outer * lines.inner, grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      body(i / lines.inner * lines.inner * lines.size + i % lines.inner);
  });
}

}  // namespace

void softmax(bool logarithm, DType dtype, const LineSize& lines, const void* x, void* y, int threads) {
  with_floating(dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto line = logarithm ? &log_softmax_line<T> : &softmax_line<T>;
    for_each_line(lines, threads, [&](std::int64_t at) {
      line(static_cast<const T*>(x) + at, static_cast<T*>(y) + at, lines.size, lines.inner);
    });
  });
}

void softmax_grad(bool logarithm, DType dtype, const LineSize& lines, const void* dy, const void* y, void* dx,
                  int threads) {
  with_floating(dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto line = logarithm ? &log_softmax_grad_line<T> : &softmax_grad_line<T>;
    for_each_line(lines, threads, [&](std::int64_t at) {
      line(static_cast<const T*>(dy) + at, static_cast<const T*>(y) + at, static_cast<T*>(dx) + at,
           lines.size, lines.inner);
    });
  });
}

}  // namespace muster::kernels
