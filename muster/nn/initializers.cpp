#include "muster/nn/initializers.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace muster::nn {
namespace {

// Writes number(i) to element i.
template <class Number>
void write(const Tensor& out, Number number) {
  const auto count = static_cast<std::uint64_t>(out.elements());
  if (out.dtype() == DType::float64) {
    for (std::uint64_t i = 0; i < count; ++i) out.data<double>()[i] = number(i);
    return;
  }
  MUSTER_CHECK(out.dtype() == DType::float32, "initializers make floating parameters");
  for (std::uint64_t i = 0; i < count; ++i) out.data<float>()[i] = static_cast<float>(number(i));
}

struct FanSizes {
  double in = 1;
  double out = 1;
};

// (out, in, kernel...): as weights are laid out.
FanSizes fan_sizes(const Shape& shape) {
  if (shape.rank() == 0) return {};
  if (shape.rank() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double receptive = 1;
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) receptive *= static_cast<double>(shape[axis]);
  return {static_cast<double>(shape[1]) * receptive, static_cast<double>(shape[0]) * receptive};
}

void write_uniform(const Tensor& out, const RandomStream& stream, double bound) {
  write(out, [&](std::uint64_t i) { return bound * (2 * stream.uniform(i) - 1); });
}

}  // namespace

Initializer constant(double value) {
  return
      [value](const Tensor& out, const RandomStream&) { write(out, [&](std::uint64_t) { return value; }); };
}
Initializer zeros() { return constant(0); }
Initializer ones() { return constant(1); }

Initializer normal(double sigma, double mean) {
  return [=](const Tensor& out, const RandomStream& stream) {
    write(out, [&](std::uint64_t i) { return mean + sigma * stream.normal(i); });
  };
}

Initializer uniform(double scale) {
  return [=](const Tensor& out, const RandomStream& stream) { write_uniform(out, stream, scale); };
}

Initializer xavier_uniform(double gain) {
  return [=](const Tensor& out, const RandomStream& stream) {
    const FanSizes fan = fan_sizes(out.shape());
    write_uniform(out, stream, gain * std::sqrt(6 / (fan.in + fan.out)));
  };
}

Initializer he_uniform(double negative_slope, Fan fan) {
  return [=](const Tensor& out, const RandomStream& stream) {
    const FanSizes sizes = fan_sizes(out.shape());
    const double gain = std::sqrt(2 / (1 + negative_slope * negative_slope));
    write_uniform(out, stream, gain * std::sqrt(3 / (fan == Fan::in ? sizes.in : sizes.out)));
  };
}

Result<Initializer> initializer_named(std::string_view name) {
  if (name == "zeros") return zeros();
  if (name == "ones") return ones();
  if (name == "normal") return normal();
  if (name == "uniform") return uniform();
  if (name == "xavier_uniform") return xavier_uniform();
  if (name == "he_uniform") return he_uniform();
  return fail(Code::not_provided,
              fmt::format("there is no initializer '{}': choose 'zeros', 'ones', 'normal', 'uniform', "
                          "'xavier_uniform' or 'he_uniform'",
                          name));
}

}  // namespace muster::nn
