// Update of follow-the-regularized-leader, in place, one pass over memory. T is float or double. The same
// numbers give the same bits on every processor, as update.h says.
#pragma once

#include <cstdint>

#include "muster/tensor/kernels/update_adaptive.h"

namespace muster::kernels {

struct FtrlSettings {
  UpdateScale scale;
  double power = -0.5;
  double l1 = 0;
  double l2 = 0;
};

template <class T>
struct FtrlState {
  T* sum = nullptr;
  T* linear = nullptr;
};

// g = gradient * gradient_scale + weight_decay * p; m = sum + g^2;
// linear = linear + g - (m^-power - sum^-power) / learning_rate * p; sum = m;
// p = (sign(linear) l1 - linear) / (m^-power / learning_rate + 2 l2) where |linear| > l1, else 0.
// A learning rate of 0 changes nothing. The elements [begin, end), on the calling thread.
template <class T>
void ftrl_part(const FtrlSettings& settings, const FtrlState<T>& state, const UpdateArguments<T>& arguments,
               std::int64_t begin, std::int64_t end);

}  // namespace muster::kernels
