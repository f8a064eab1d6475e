#include "muster/nn/initializers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

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
  const auto write_low = [&]<class T>(T* low) {
    for (std::uint64_t i = 0; i < count; ++i) low[i] = static_cast<T>(static_cast<float>(number(i)));
  };
  if (out.dtype() == DType::bfloat16) return write_low(out.data<bfloat16>());
  if (out.dtype() == DType::float16) return write_low(out.data<float16>());
  if (out.dtype() != DType::float32)
    throw Exception(Code::invalid_argument,
                    fmt::format("an initializer fills floating parameters, not {}", to_string(out.dtype())));
  for (std::uint64_t i = 0; i < count; ++i) out.data<float>()[i] = static_cast<float>(number(i));
}

struct FanSizes {
  double in = 1;
  double out = 1;

  double of(Fan fan) const { return fan == Fan::in ? in : out; }
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

void write_normal(const Tensor& out, const RandomStream& stream, double sigma, double mean) {
  write(out, [&](std::uint64_t i) { return mean + sigma * stream.normal(i); });
}

double gain_of(Nonlinearity nonlinearity, double negative_slope) {
  switch (nonlinearity) {
    case Nonlinearity::linear:
      return 1;
    case Nonlinearity::tanh:
      return 5.0 / 3;
    case Nonlinearity::relu:
      return std::sqrt(2.0);
    case Nonlinearity::leaky_relu:
      break;
  }
  return std::sqrt(2 / (1 + negative_slope * negative_slope));
}

double below(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

// The z in [a, b] below which lies the part u of the normal distribution between a and b.
double truncated_quantile(double a, double b, double u) {
  const double wanted = below(a) + u * (below(b) - below(a));
  for (int i = 0; i < 60; ++i) {
    const double middle = (a + b) / 2;
    (below(middle) < wanted ? a : b) = middle;
  }
  return a;
}

// Draws until one lies in [a, b]; where that is rare, by the distribution function.
double truncated(const RandomStream& stream, std::uint64_t index, std::uint64_t count, double a, double b) {
  constexpr std::uint64_t draws_max = 16;
  for (std::uint64_t draw = 0; draw < draws_max; ++draw) {
    const double z = stream.normal(index + draw * count);
    if (z >= a && z <= b) return z;
  }
  return truncated_quantile(a, b, stream.uniform(index + draws_max * count));
}

// Makes the rows of a matrix (rows, columns), rows <= columns, orthonormal, by Gram and Schmidt, twice.
void make_orthonormal(std::vector<double>& matrix, std::size_t rows, std::size_t columns) {
  for (std::size_t row = 0; row < rows; ++row) {
    double* const own = matrix.data() + row * columns;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t other = 0; other < row; ++other) {
        const double* const done = matrix.data() + other * columns;
        double product = 0;
        for (std::size_t i = 0; i < columns; ++i) product += own[i] * done[i];
        for (std::size_t i = 0; i < columns; ++i) own[i] -= product * done[i];
      }
    }
    double square = 0;
    for (std::size_t i = 0; i < columns; ++i) square += own[i] * own[i];
    for (std::size_t i = 0; i < columns; ++i) own[i] /= std::sqrt(square);
  }
}

}  // namespace

void ElementFormula::operator()(const Tensor& out, const RandomStream& stream) const {
  switch (kind) {
    case Kind::constant:
      return write(out, [&](std::uint64_t) { return mean; });
    case Kind::normal:
      return write_normal(out, stream, scale, mean);
    case Kind::uniform:
      return write_uniform(out, stream, scale);
  }
}

Initializer constant(double value) { return ElementFormula{.mean = value}; }
Initializer zeros() { return constant(0); }
Initializer ones() { return constant(1); }

Initializer normal(double sigma, double mean) {
  return ElementFormula{.kind = ElementFormula::Kind::normal, .scale = sigma, .mean = mean};
}

Initializer truncated_normal(TruncatedNormalOptions options) {
  return [=](const Tensor& out, const RandomStream& stream) {
    const auto count = static_cast<std::uint64_t>(out.elements()) + 1;
    const double a = (options.a - options.mean) / options.sigma;
    const double b = (options.b - options.mean) / options.sigma;
    write(out,
          [&](std::uint64_t i) { return options.mean + options.sigma * truncated(stream, i, count, a, b); });
  };
}

Initializer uniform(double scale) {
  return ElementFormula{.kind = ElementFormula::Kind::uniform, .scale = scale};
}

Initializer xavier_uniform(double gain) {
  return [=](const Tensor& out, const RandomStream& stream) {
    const FanSizes fan = fan_sizes(out.shape());
    write_uniform(out, stream, gain * std::sqrt(6 / (fan.in + fan.out)));
  };
}

Initializer xavier_normal(double gain) {
  return [=](const Tensor& out, const RandomStream& stream) {
    const FanSizes fan = fan_sizes(out.shape());
    write_normal(out, stream, gain * std::sqrt(2 / (fan.in + fan.out)), 0);
  };
}

Initializer he_uniform(double negative_slope, Fan fan, Nonlinearity nonlinearity) {
  return [=](const Tensor& out, const RandomStream& stream) {
    const double gain = gain_of(nonlinearity, negative_slope);
    write_uniform(out, stream, gain * std::sqrt(3 / fan_sizes(out.shape()).of(fan)));
  };
}

Initializer he_normal(double negative_slope, Fan fan, Nonlinearity nonlinearity) {
  return [=](const Tensor& out, const RandomStream& stream) {
    const double gain = gain_of(nonlinearity, negative_slope);
    write_normal(out, stream, gain / std::sqrt(fan_sizes(out.shape()).of(fan)), 0);
  };
}

Initializer identity() {
  return [](const Tensor& out, const RandomStream&) {
    require_fitting({.name = "identity", .rank_min = 2, .rank_max = 2}, out.shape()).value();
    const auto columns = static_cast<std::uint64_t>(out.shape()[1]);
    write(out, [&](std::uint64_t i) { return i / columns == i % columns ? 1.0 : 0.0; });
  };
}

Initializer orthogonal(double gain) {
  return [=](const Tensor& out, const RandomStream& stream) {
    require_fitting({.name = "orthogonal", .rank_min = 2}, out.shape()).value();
    if (out.elements() == 0) return;
    const auto rows = static_cast<std::size_t>(out.shape()[0]);
    const std::size_t columns = static_cast<std::size_t>(out.elements()) / rows;
    const bool turned = rows > columns;
    const std::size_t fewer = std::min(rows, columns), more = std::max(rows, columns);
    std::vector<double> matrix(fewer * more);
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = stream.normal(i);
    make_orthonormal(matrix, fewer, more);
    write(out, [&](std::uint64_t i) {
      const std::size_t row = i / columns, column = i % columns;
      return gain * (turned ? matrix[column * more + row] : matrix[row * more + column]);
    });
  };
}

namespace {

double fan_of(const FanSizes& fan, FanMode mode) {
  if (mode == FanMode::average) return (fan.in + fan.out) / 2;
  return mode == FanMode::in ? fan.in : fan.out;
}

// The deviation of a normal distribution that is cut off at two of its deviations.
constexpr double truncated_deviation = 0.87962566103423978;

// The rows of a column that stay 0: those with the least numbers of a stream.
std::vector<std::uint64_t> rows_of_zeros(const RandomStream& stream, std::uint64_t rows,
                                         std::uint64_t columns, std::uint64_t column, std::uint64_t count) {
  const std::uint64_t behind_the_values = rows * columns;
  std::vector<std::pair<double, std::uint64_t>> order(rows);
  for (std::uint64_t row = 0; row < rows; ++row)
    order[row] = {stream.uniform(behind_the_values + row * columns + column), row};
  std::ranges::sort(order);
  std::vector<std::uint64_t> chosen(std::min(count, rows));
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = order[i].second;
  return chosen;
}

}  // namespace

Initializer variance_scaling(VarianceScalingOptions options) {
  return [=](const Tensor& out, const RandomStream& stream) {
    const double fan = std::max(1.0, fan_of(fan_sizes(out.shape()), options.mode));
    const double deviation = std::sqrt(options.scale / fan);
    if (options.distribution == Distribution::uniform)
      return write_uniform(out, stream, std::sqrt(3.0) * deviation);
    if (options.distribution == Distribution::untruncated_normal)
      return write_normal(out, stream, deviation, 0);
    const double sigma = deviation / truncated_deviation;
    truncated_normal({.sigma = sigma, .a = -2 * sigma, .b = 2 * sigma})(out, stream);
  };
}

Initializer sparse(double sparsity, double sigma) {
  return [=](const Tensor& out, const RandomStream& stream) {
    require_fitting({.name = "sparse", .rank_min = 2, .rank_max = 2}, out.shape()).value();
    const auto rows = static_cast<std::uint64_t>(out.shape()[0]);
    const auto columns = static_cast<std::uint64_t>(out.shape()[1]);
    const auto count = static_cast<std::uint64_t>(std::ceil(sparsity * static_cast<double>(rows)));
    std::vector<bool> is_zero(rows * columns);
    for (std::uint64_t column = 0; column < columns; ++column)
      for (const std::uint64_t row : rows_of_zeros(stream, rows, columns, column, count))
        is_zero[row * columns + column] = true;
    write(out, [&](std::uint64_t i) { return is_zero[i] ? 0.0 : sigma * stream.normal(i); });
  };
}

Initializer dirac(std::int64_t groups) {
  return [=](const Tensor& out, const RandomStream&) {
    const Shape& shape = out.shape();
    require_fitting({.name = "dirac", .rank_min = 3, .rank_max = 5, .groups = groups}, shape).value();
    const std::int64_t channels = shape[0] / groups;
    write(out, [&](std::uint64_t i) {
      auto place = static_cast<std::int64_t>(i);
      for (std::size_t axis = shape.rank() - 1; axis >= 2; --axis) {
        if (place % shape[axis] != shape[axis] / 2) return 0.0;
        place /= shape[axis];
      }
      return place / shape[1] % channels == place % shape[1] ? 1.0 : 0.0;
    });
  };
}

std::optional<Nonlinearity> nonlinearity_from(std::string_view name) {
  if (name == "tanh") return Nonlinearity::tanh;
  if (name == "relu") return Nonlinearity::relu;
  if (name == "leaky_relu") return Nonlinearity::leaky_relu;
  for (const std::string_view linear : {"linear", "sigmoid", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
                                        "conv_transpose2d", "conv_transpose3d"})
    if (name == linear) return Nonlinearity::linear;
  return std::nullopt;
}

namespace {

// "2 axes", "2 axes at least", "3 to 5 axes"
std::string axes_of(const InitializerKind& kind) {
  if (kind.rank_min == kind.rank_max) return fmt::format("{} axes", kind.rank_min);
  if (kind.rank_max == InitializerKind{}.rank_max) return fmt::format("{} axes at least", kind.rank_min);
  return fmt::format("{} to {} axes", kind.rank_min, kind.rank_max);
}

}  // namespace

Result<> require_fitting(const InitializerKind& kind, const Shape& shape) {
  if (shape.rank() < kind.rank_min || shape.rank() > kind.rank_max)
    return fail(Code::invalid_argument, fmt::format("{}: a shape with {} is needed, not {}", kind.name,
                                                    axes_of(kind), muster::to_string(shape)));
  if (kind.groups == 1 || shape[0] % kind.groups == 0) return {};
  return fail(Code::invalid_argument,
              fmt::format("{}: the {} output channels of {} are not {} equal groups", kind.name, shape[0],
                          muster::to_string(shape), kind.groups));
}

Result<InitializerKind> initializer_kind_named(std::string_view name) {
  std::string plain;
  for (const char letter : name)
    if (letter != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (plain == "zeros" || plain == "zero") return InitializerKind{"zeros", zeros()};
  if (plain == "ones" || plain == "one") return InitializerKind{"ones", ones()};
  if (plain == "normal") return InitializerKind{"normal", normal()};
  if (plain == "uniform") return InitializerKind{"uniform", uniform()};
  if (plain == "truncatednormal") return InitializerKind{"truncated_normal", truncated_normal()};
  if (plain == "xavieruniform") return InitializerKind{"xavier_uniform", xavier_uniform(), 2};
  if (plain == "xaviernormal") return InitializerKind{"xavier_normal", xavier_normal(), 2};
  if (plain == "heuniform") return InitializerKind{"he_uniform", he_uniform(), 2};
  if (plain == "henormal") return InitializerKind{"he_normal", he_normal(), 2};
  if (plain == "identity") return InitializerKind{"identity", identity(), 2, 2};
  if (plain == "orthogonal") return InitializerKind{"orthogonal", orthogonal(), 2};
  if (plain == "dirac") return InitializerKind{"dirac", dirac(), 3, 5};
  if (plain == "variancescaling") return InitializerKind{"variance_scaling", variance_scaling(), 2};
  return fail(Code::not_provided,
              fmt::format("there is no initializer '{}': choose 'zeros', 'ones', 'normal', 'uniform', "
                          "'truncated_normal', 'xavier_uniform', 'xavier_normal', 'he_uniform', 'he_normal', "
                          "'identity', 'orthogonal', 'dirac' or 'variance_scaling'",
                          name));
}

Result<Initializer> initializer_named(std::string_view name) {
  MUSTER_TRY(InitializerKind kind, initializer_kind_named(name));
  return std::move(kind.fill);
}

}  // namespace muster::nn
