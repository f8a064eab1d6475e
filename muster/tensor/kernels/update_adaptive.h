// Parameter updates with a rate for each element, in place, one pass over memory. T is float or double. The
// same numbers give the same bits on every processor, as update.h says. The functions named _part do the
// elements [begin, end) alone, on the calling thread.
#pragma once

#include <cstdint>

namespace muster::kernels {

// What all updates here share: g = gradient * gradient_scale + weight_decay * p.
struct UpdateScale {
  double gradient_scale = 1.0;
  double weight_decay = 0.0;
};

template <class T>
struct UpdateArguments {
  T* parameter = nullptr;
  const T* gradient = nullptr;
  double learning_rate = 0;
  std::int64_t count = 0;
  int threads = 1;
};

struct AdamSettings {
  UpdateScale scale;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  bool nesterov = false;
  // AdamWeightDecay: the decay joins the step instead of the gradient, and the moments are not corrected.
  bool decoupled = false;
};

// `greatest` is null without amsgrad; `steps` were done before this one.
template <class T>
struct AdamState {
  T* mean = nullptr;
  T* square = nullptr;
  T* greatest = nullptr;
  std::int64_t steps = 0;
};

// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; with `greatest` h: h = max(h, v), else h = v;
// p -= learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t) * u / (sqrt(h) + eps), where t counts from 1 and
// u = nesterov ? beta1 m + (1 - beta1) g : m. Decoupled: p -= learning_rate (u / (sqrt(h) + eps) +
// weight_decay p), where g has no decay in it.
template <class T>
void adam(const AdamSettings& settings, const AdamState<T>& state, const UpdateArguments<T>& arguments);
template <class T>
void adam_part(const AdamSettings& settings, const AdamState<T>& state, const UpdateArguments<T>& arguments,
               std::int64_t begin, std::int64_t end);

struct RmsPropSettings {
  UpdateScale scale;
  double decay = 0.9;
  double momentum = 0.0;
  double eps = 1e-10;
};

// `mean` is null unless centered.
template <class T>
struct RmsPropState {
  T* square = nullptr;
  T* moment = nullptr;
  T* mean = nullptr;
};

// s = decay s + (1 - decay) g^2; centered: n = decay n + (1 - decay) g, d = s - n^2, else d = s;
// v = momentum v + learning_rate g / sqrt(d + eps); p -= v.
template <class T>
void rms_prop(const RmsPropSettings& settings, const RmsPropState<T>& state,
              const UpdateArguments<T>& arguments);
template <class T>
void rms_prop_part(const RmsPropSettings& settings, const RmsPropState<T>& state,
                   const UpdateArguments<T>& arguments, std::int64_t begin, std::int64_t end);

struct AdagradSettings {
  UpdateScale scale;
  double eps = 0.0;
  bool accumulate = true;
};

// s = s + g^2 (when it accumulates); p -= learning_rate g / (sqrt(s) + eps).
template <class T>
void adagrad(const AdagradSettings& settings, T* sum, const UpdateArguments<T>& arguments);
template <class T>
void adagrad_part(const AdagradSettings& settings, T* sum, const UpdateArguments<T>& arguments,
                  std::int64_t begin, std::int64_t end);

struct LarsSettings {
  UpdateScale scale;
  double coefficient = 0.001;
  double eps = 1e-5;
  bool clip = false;
};

// out = r (gradient * gradient_scale + weight_decay p), where
// r = coefficient |p| / (|gradient * gradient_scale| + weight_decay |p| + eps), and with `clip`
// r = min(r / learning_rate, 1).
template <class T>
void lars(const LarsSettings& settings, const UpdateArguments<T>& arguments, T* out);

}  // namespace muster::kernels
