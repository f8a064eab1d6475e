// Parameter updates, in place, one pass over memory. T is float or double. The same numbers give the same
// bits on every processor (no multiplication is fused with an addition), so that ranks on different machines
// stay equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace muster::kernels {

struct SgdSettings {
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  double gradient_scale = 1.0;
  bool nesterov = false;
};

// `accumulation` is null without momentum; `first` says that it holds nothing yet.
template <class T>
struct SgdArguments {
  T* parameter = nullptr;
  const T* gradient = nullptr;
  T learning_rate = 0;
  T* accumulation = nullptr;
  bool first = false;
  std::int64_t count = 0;
  int threads = 1;
};

// g = gradient * gradient_scale + weight_decay * p; with momentum: v = momentum v + (1 - dampening) g, v = g
// at first, then g = nesterov ? g + momentum v : v; p -= learning_rate g.
template <class T>
void sgd(const SgdSettings& settings, const SgdArguments<T>& arguments);
// The same for the elements [begin, end) alone, on the calling thread.
template <class T>
void sgd_part(const SgdSettings& settings, const SgdArguments<T>& arguments, std::int64_t begin,
              std::int64_t end);

// Calls body(i, begin, end) for ranges that cover the elements of every one of several tensors once; tensor i
// has ends[i] - ends[i - 1] elements. Threads get equal shares of all of them together, so that many small
// tensors cost one parallel loop.
using PartBody = std::function<void(std::size_t tensor, std::int64_t begin, std::int64_t end)>;
void for_each_part(std::span<const std::int64_t> ends, int threads, const PartBody& body);

}  // namespace muster::kernels
