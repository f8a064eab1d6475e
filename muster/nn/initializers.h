// Initial values of parameters. Numbers come from counters of the parameter's own stream, so they do not
// depend on ranks, threads or the order of parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "muster/graph/graph.h"

namespace muster::nn {

using graph::Initializer;

// What constant(), normal() and uniform() are: each element is a function of its place alone, so that
// parameter servers can make single rows (Initializer::target gives it).
struct ElementFormula {
  enum class Kind { constant, normal, uniform };
  Kind kind = Kind::constant;
  double scale = 0;
  double mean = 0;

  void operator()(const Tensor& out, const RandomStream& stream) const;
};
Initializer zeros();
Initializer ones();
Initializer constant(double value);
Initializer normal(double sigma = 0.01, double mean = 0.0);

struct TruncatedNormalOptions {
  double sigma = 0.01;
  double mean = 0.0;
  double a = -2.0;  // the least and the greatest number; a < b
  double b = 2.0;
};
Initializer truncated_normal(TruncatedNormalOptions options = {});
// In [-scale, scale).
Initializer uniform(double scale = 0.07);

// Of weights (out, in, kernel...): fan_in = in * kernel, fan_out = out * kernel.
// In [-b, b), b = gain * sqrt(6 / (fan_in + fan_out)). Glorot and Bengio, AISTATS 2010.
Initializer xavier_uniform(double gain = 1.0);
// sigma = gain * sqrt(2 / (fan_in + fan_out)).
Initializer xavier_normal(double gain = 1.0);

enum class Fan { in, out };
// What follows the weight: the gain is 1, 5/3, sqrt(2), sqrt(2 / (1 + negative_slope^2)).
enum class Nonlinearity { linear, tanh, relu, leaky_relu };
// "linear", "conv2d", "sigmoid", ... (linear), "tanh", "relu", "leaky_relu".
std::optional<Nonlinearity> nonlinearity_from(std::string_view name);
// In [-b, b), b = sqrt(3 / fan) * gain. He et al., ICCV 2015.
Initializer he_uniform(double negative_slope = 0.0, Fan fan = Fan::in,
                       Nonlinearity nonlinearity = Nonlinearity::leaky_relu);
// sigma = gain / sqrt(fan).
Initializer he_normal(double negative_slope = 0.0, Fan fan = Fan::in,
                      Nonlinearity nonlinearity = Nonlinearity::leaky_relu);

// 1 where the two indices are equal, else 0. Of two axes.
Initializer identity();
// As a matrix (first axis, all others) its rows or its columns, whichever are fewer, are orthogonal and of
// length `gain`. Saxe et al., ICLR 2014. Of two axes at least.
Initializer orthogonal(double gain = 1.0);

enum class Distribution { uniform, truncated_normal, untruncated_normal };
enum class FanMode { in, out, average };
struct VarianceScalingOptions {
  double scale = 1.0;
  FanMode mode = FanMode::in;
  Distribution distribution = Distribution::truncated_normal;
};
// Of variance scale / fan: uniform, normal, or normal and at most two deviations of the uncut normal.
Initializer variance_scaling(VarianceScalingOptions options = {});
// Normal, but for the part `sparsity` of each column, rounded up, which is 0. Of two axes.
Initializer sparse(double sparsity, double sigma = 0.01);
// Of weights (out, in, kernel...) of three to five axes: 1 in the middle of the kernel from each input
// channel to the output channel of its number in each of `groups` parts, else 0. `groups` divides `out`.
Initializer dirac(std::int64_t groups = 1);

// An initializer with the axes that it needs; the caller checks before it makes a parameter.
struct InitializerKind {
  std::string_view name;
  Initializer fill = {};
  std::size_t rank_min = 0;
  std::size_t rank_max = 16;
  std::int64_t groups = 1;  // must divide the first axis
};
// "xavier_uniform: a shape with 2 axes at least is needed, not (3,)"
Result<> require_fitting(const InitializerKind& kind, const Shape& shape);

// "zeros", "ones", "normal", "uniform", "truncated_normal", "xavier_uniform", "xavier_normal", "he_uniform",
// "he_normal", "identity", "orthogonal", "dirac", "variance_scaling", with the defaults above; capitals and
// underscores do not matter.
Result<InitializerKind> initializer_kind_named(std::string_view name);
Result<Initializer> initializer_named(std::string_view name);

}  // namespace muster::nn
