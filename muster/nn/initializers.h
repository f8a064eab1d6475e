// How parameters begin. Numbers come from counters of the parameter's own stream, so they do not depend on
// ranks, threads or the order of parameters.
#pragma once

#include <string_view>

#include "muster/graph/graph.h"

namespace muster::nn {

using graph::Initializer;

Initializer zeros();
Initializer ones();
Initializer constant(double value);
Initializer normal(double sigma = 0.01, double mean = 0.0);
// In [-scale, scale).
Initializer uniform(double scale = 0.07);
// In [-b, b), b = gain * sqrt(6 / (fan_in + fan_out)). Glorot and Bengio, AISTATS 2010.
Initializer xavier_uniform(double gain = 1.0);

enum class Fan { in, out };
// In [-b, b), b = sqrt(3 / fan) * gain, gain = sqrt(2 / (1 + negative_slope^2)). He et al., ICCV 2015.
Initializer he_uniform(double negative_slope = 0.0, Fan fan = Fan::in);

// "zeros", "ones", "normal", "uniform", "xavier_uniform", "he_uniform", with the defaults above.
Result<Initializer> initializer_named(std::string_view name);

}  // namespace muster::nn
