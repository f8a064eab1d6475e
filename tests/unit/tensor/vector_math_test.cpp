// Functions on vectors against the C library in long double, for every instruction set that this machine has.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "muster/tensor/kernels.h"
#include "muster/tensor/tensor.h"

namespace muster::kernels {
namespace {

using Kind = Nonlinearity::Kind;
using Floats = std::vector<float>;
using Apply = std::function<Floats(const VectorMath&, const Floats&)>;
using Exact = long double (*)(long double);

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr double elu_alpha = 0.75;

struct Function {
  std::string name;
  Apply apply;
  Exact exact;
  double bound;  // in units of the last place, as vector_math.h promises
};

Apply of(Unary kind) {
  return [kind](const VectorMath& math, const Floats& x) {
    Floats y(x.size());
    math.unary(kind, x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    return y;
  };
}
Apply of(Kind kind) {
  return [kind](const VectorMath& math, const Floats& x) {
    Floats y(x.size());
    math.nonlinearity({kind, elu_alpha}, x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    return y;
  };
}

long double cdf(long double x) { return std::erfc(-x / std::numbers::sqrt2_v<long double>) / 2; }
long double logistic(long double x) { return 1 / (1 + std::exp(-x)); }

const std::vector<Function>& functions() {
  static const std::vector<Function> all{
      {"exp", of(Unary::exp), [](long double x) { return std::exp(x); }, 1.5},
      {"expm1", of(Unary::expm1), [](long double x) { return std::expm1(x); }, 2.5},
      {"log", of(Unary::log), [](long double x) { return std::log(x); }, 1.5},
      {"log1p", of(Unary::log1p), [](long double x) { return std::log1p(x); }, 2.5},
      {"erf", of(Unary::erf), [](long double x) { return std::erf(x); }, 3.5},
      {"sigmoid", of(Kind::sigmoid), logistic, 3},
      {"tanh", of(Kind::tanh), [](long double x) { return std::tanh(x); }, 3},
      {"softplus", of(Kind::softplus), [](long double x) { return std::log1p(std::exp(x)); }, 3},
      {"silu", of(Kind::silu), [](long double x) { return x * logistic(x); }, 4},
      {"elu", of(Kind::elu), [](long double x) { return x > 0 ? x : elu_alpha * std::expm1(x); }, 3},
      {"gelu", of(Kind::gelu), [](long double x) { return x * cdf(x); }, 10},
      {"gelu_tanh", of(Kind::gelu_tanh),
       [](long double x) {
         const long double inside = x + 0.044715L * x * x * x;
         return x * logistic(inside * 2 * std::numbers::sqrt2_v<long double> *
                             std::numbers::inv_sqrtpi_v<long double>);
       },
       250}};
  return all;
}

// All exponents and signs alike, and as many ordinary numbers.
Floats some_arguments(std::uint64_t seed) {
  constexpr std::size_t count = 40'003;
  const RandomStream random(seed, 1);
  Floats x;
  for (std::uint64_t i = 0; i < count; ++i)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.bits(i))));
  for (std::uint64_t i = 0; i < count; ++i) x.push_back(static_cast<float>(random.normal(count + i) * 4));
  for (const float end : {0.0F, -0.0F, infinity, -infinity, nan, 1.0F, -1.0F, 88.72F, -87.33F, -103.9F})
    x.push_back(end);
  return x;
}

// How far `found` is from `exact`, in units of the last place of a float like `exact`.
double units_between(float found, long double exact) {
  const int exponent = std::max(std::ilogb(exact), std::numeric_limits<float>::min_exponent - 1);
  return static_cast<double>(std::fabs(found - exact) / std::ldexp(1.0L, exponent - 23));
}

// Where the promise holds: nothing on the way is so small that it has fewer digits.
bool is_promised(long double exact) {
  return std::isfinite(exact) && std::fabs(exact) >= 1e-36L &&
         std::fabs(exact) <= std::numeric_limits<float>::max();
}

TEST(VectorMath, IsAsExactAsPromised) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  const Floats x = some_arguments(seed);
  for (const Function& function : functions()) {
    const Floats y = function.apply(vector_math().front(), x);
    double worst = 0;
    float where = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double exact = function.exact(x[i]);
      if (!is_promised(exact)) continue;
      const double units = units_between(y[i], exact);
      if (units <= worst) continue;
      worst = units;
      where = x[i];
    }
    RecordProperty(function.name, std::to_string(worst));
    EXPECT_LE(worst, function.bound) << function.name << " at " << where;
  }
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

TEST(VectorMath, EveryInstructionSetGivesTheSameBits) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  const Floats x = some_arguments(seed);
  for (const Function& function : functions()) {
    const Floats first = function.apply(vector_math().front(), x);
    for (const VectorMath& math : vector_math().subspan(1)) {
      const Floats other = function.apply(math, x);
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_TRUE(same(first[i], other[i])) << function.name << " of " << x[i] << ": " << first[i]
                                              << " and, by " << math.name << ", " << other[i];
    }
  }
}

TEST(VectorMath, EndsAreThoseOfTheCLibrary) {
  const Floats ends{0.0F, -0.0F, infinity, -infinity, nan, -1.0F, 200.0F, -200.0F, 1e-42F, -1e-42F};
  for (const Function& function : functions()) {
    const Floats y = function.apply(vector_math().front(), ends);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const auto exact = static_cast<float>(function.exact(ends[i]));
      if (std::isnan(exact) || std::isinf(exact) || exact == 0)
        EXPECT_TRUE(same(y[i], exact))
            << function.name << " of " << ends[i] << " is " << y[i] << ", not " << exact;
      else
        EXPECT_NEAR(y[i], exact, 1e-6 * std::fabs(exact) + 1e-44) << function.name << " of " << ends[i];
    }
  }
}

TEST(VectorMath, SizesThreadsAndPlacesChangeNoBit) {
  const Floats x = some_arguments(5);
  for (const Function& function : functions()) {
    const Floats whole = function.apply(vector_math().front(), x);
    for (std::size_t count = 0; count < 70; ++count) {
      const Floats part =
          function.apply(vector_math().front(), {x.end() - static_cast<std::ptrdiff_t>(count), x.end()});
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_TRUE(same(part[i], whole[x.size() - count + i]))
            << function.name << ", " << count << " elements";
    }
  }
  Floats y(x);
  vector_unary(vector_math().front(), Unary::exp, y.data(), y.data(), static_cast<std::int64_t>(y.size()), 5);
  const Floats whole = of(Unary::exp)(vector_math().front(), x);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(same(y[i], whole[i])) << i;
}

long double derivative(Kind kind, long double x) {
  const long double h = 1e-6L;
  for (const Function& function : functions())
    if (function.name == (kind == Kind::elu        ? "elu"
                          : kind == Kind::gelu     ? "gelu"
                          : kind == Kind::silu     ? "silu"
                          : kind == Kind::softplus ? "softplus"
                                                   : "gelu_tanh"))
      return (function.exact(x + h) - function.exact(x - h)) / (2 * h);
  return 0;
}

TEST(VectorMath, DerivativesAreThoseOfTheFunctions) {
  const RandomStream random(entropy(), 2);
  for (const Kind kind : {Kind::elu, Kind::gelu, Kind::gelu_tanh, Kind::silu, Kind::softplus}) {
    ASSERT_TRUE(has_vector_math_grad(kind));
    for (std::uint64_t i = 0; i < 500; ++i) {
      const auto x = static_cast<float>(random.normal(2 * i) * 3);
      const auto dy = static_cast<float>(random.normal(2 * i + 1));
      float dx = nan;
      vector_math().front().nonlinearity_grad({kind, elu_alpha}, &dy, &x, &dx, 1);
      const auto expected = static_cast<double>(dy * derivative(kind, x));
      EXPECT_NEAR(dx, expected, 1e-6 * (1 + std::fabs(expected))) << static_cast<int>(kind) << " at " << x;
    }
  }
}

// Lines of neighbours against the reference, which sums in double too.
TEST(VectorMath, LinesAreThoseOfTheReference) {
  const RandomStream random(entropy(), 3);
  for (const std::int64_t columns : {1, 7, 16, 37, 1000}) {
    const VectorLines lines{.rows = 23, .columns = columns};
    Floats x, dy;
    for (std::int64_t i = 0; i < lines.rows * columns; ++i) {
      x.push_back(static_cast<float>(random.normal(static_cast<std::uint64_t>(2 * i)) * 5));
      dy.push_back(static_cast<float>(random.normal(static_cast<std::uint64_t>(2 * i + 1))));
    }
    for (const bool logarithm : {false, true}) {
      Floats expected(x.size()), expected_dx(x.size());
      const LineSize size{.outer = lines.rows, .size = columns, .inner = 1};
      softmax(logarithm, DType::float32, size, x.data(), expected.data(), 1);
      softmax_grad(logarithm, DType::float32, size, dy.data(), expected.data(), expected_dx.data(), 1);
      Floats first;
      for (const VectorMath& math : vector_math()) {
        Floats y(x), dx(dy);
        vector_softmax(math, logarithm, lines, y.data(), y.data(), 3);
        vector_softmax_grad(math, logarithm, lines, dx.data(), expected.data(), dx.data(), 3);
        for (std::size_t i = 0; i < x.size(); ++i) {
          ASSERT_NEAR(y[i], expected[i], 2e-6 * (1 + std::fabs(expected[i]))) << math.name << " at " << i;
          ASSERT_NEAR(dx[i], expected_dx[i], 2e-6 * (1 + std::fabs(expected_dx[i])))
              << math.name << " at " << i;
        }
        y.insert(y.end(), dx.begin(), dx.end());
        if (first.empty()) first = y;
        EXPECT_EQ(y, first) << math.name;
      }
    }
  }
}

}  // namespace
}  // namespace muster::kernels
