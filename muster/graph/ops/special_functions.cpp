#include "muster/graph/ops/special_functions.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace muster::graph::special {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double pi = std::numbers::pi;

// Of even numbers: B(2), B(4), ...
constexpr double bernoulli[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};

bool is_whole(double x) { return x == std::floor(x); }

}  // namespace

double arc_sine(double x) { return std::asin(x); }
double arc_cosine(double x) { return std::acos(x); }
double arc_tangent(double x) { return std::atan(x); }
double hyperbolic_sine(double x) { return std::sinh(x); }
double hyperbolic_cosine(double x) { return std::cosh(x); }
double area_sine(double x) { return std::asinh(x); }
double area_cosine(double x) { return std::acosh(x); }
double area_tangent(double x) { return std::atanh(x); }
double error_complement(double x) { return std::erfc(x); }

// Winitzki's formula (2008), which is right to 0.2 %, and Newton steps of third order from there.
double error_inverse(double x) {
  if (!(std::abs(x) < 1)) return std::abs(x) == 1 ? std::copysign(infinite, x) : nan;
  const double log_term = std::log1p(-x * x);
  const double half = 2 / (pi * 0.147) + log_term / 2;
  double y = std::copysign(std::sqrt(std::sqrt(half * half - log_term / 0.147) - half), x);
  for (int i = 0; i < 3; ++i) {
    // Near the ends erf has no digits left, and erfc has them all.
    const double behind = (1 - std::abs(x)) - std::erfc(std::abs(y));
    const double away = std::abs(x) < 0.5 ? std::erf(y) - x : (x < 0 ? -behind : behind);
    const double step = away / (2 * std::numbers::inv_sqrtpi * std::exp(-y * y));
    y -= step / (1 + y * step);
  }
  return y;
}

// lgamma() writes the sign to a global, which threads share.
double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

// Recurrence up to 10, then the asymptotic series.
double digamma(double x) {
  if (x == 0) return std::copysign(infinite, -x);
  if (x < 0) return is_whole(x) ? nan : digamma(1 - x) - pi / std::tan(pi * x);
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  double power = 1, series = 0;
  for (int k = 0; k < 8; ++k) {
    power /= x * x;
    series += bernoulli[k] * power / (2 * (k + 1));
  }
  return sum + std::log(x) - 0.5 / x - series;
}

namespace {

constexpr double large = 100;  // from here on the asymptotic series have all digits

// e^-x I(x) for large x, and e^x K(x) with the other sign: Abramowitz and Stegun 9.7.1 and 9.7.2.
double bessel_tail(double order, double x, double sign) {
  const double mu = 4 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 12; ++k) {
    const double odd = 2 * k - 1;
    term *= sign * (mu - odd * odd) / (k * 8 * x);
    sum += term;
  }
  return sum;
}

double first_kind_scaled(double order, double x) {
  if (x > large) return bessel_tail(order, x, -1) / std::sqrt(2 * pi * x);
  return std::exp(-x) * std::cyl_bessel_i(order, x);
}

double second_kind_scaled(double order, double x) {
  if (!(x >= 0)) return nan;
  if (x == 0) return infinite;
  if (x > large) return bessel_tail(order, x, 1) * std::sqrt(pi / (2 * x));
  return std::exp(x) * std::cyl_bessel_k(order, x);
}

}  // namespace

double bessel_i0e(double x) { return std::isnan(x) ? nan : first_kind_scaled(0, std::abs(x)); }
double bessel_i1e(double x) {
  return std::isnan(x) ? nan : std::copysign(first_kind_scaled(1, std::abs(x)), x);
}
double bessel_i0(double x) { return std::exp(std::abs(x)) * bessel_i0e(x); }
double bessel_i1(double x) { return std::exp(std::abs(x)) * bessel_i1e(x); }
double bessel_j0(double x) { return ::j0(x); }
double bessel_j1(double x) { return ::j1(x); }
double bessel_y0(double x) { return x < 0 ? nan : ::y0(x); }
double bessel_y1(double x) { return x < 0 ? nan : ::y1(x); }
double bessel_k0e(double x) { return second_kind_scaled(0, x); }
double bessel_k1e(double x) { return second_kind_scaled(1, x); }
double bessel_k0(double x) { return std::exp(-x) * bessel_k0e(x); }
double bessel_k1(double x) { return std::exp(-x) * bessel_k1e(x); }

double arc_tangent_of_two(double y, double x) { return std::atan2(y, x); }
double next_after(double x, double y) { return std::nextafter(x, y); }

// Euler and Maclaurin: ten terms, and the series of the rest.
double zeta(double x, double q) {
  if (x == 1) return infinite;
  if (!(x > 1) || (q <= 0 && !(is_whole(q) || is_whole(x)))) return nan;
  if (q <= 0 && is_whole(q)) return infinite;
  double sum = 0;
  int terms = 10;
  for (; terms > 0 || q < 10; --terms, ++q) sum += std::pow(q, -x);
  sum += std::pow(q, 1 - x) / (x - 1) + 0.5 * std::pow(q, -x);
  double factor = x * std::pow(q, -x - 1), factorial = 2;
  for (int k = 0; k < 10; ++k) {
    sum += bernoulli[k] * factor / factorial;
    const double at = 2 * k + 1;
    factor *= (x + at) * (x + at + 1) / (q * q);
    factorial *= (at + 2) * (at + 3);
  }
  return sum;
}

double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  if (n < 0 || !is_whole(n)) return nan;
  const double sign = std::fmod(n, 2) == 1 ? 1 : -1;
  return sign * std::tgamma(n + 1) * zeta(n + 1, x);
}

namespace {

// x^a e^-x / gamma(a + 1)
double gamma_factor(double a, double x) { return std::exp(a * std::log(x) - x - log_gamma(a + 1)); }

double lower_series(double a, double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 2000 && term > sum * 1e-17; ++k) sum += term *= x / (a + k);
  return sum * gamma_factor(a, x);
}

// Lentz's continued fraction.
double upper_fraction(double a, double x) {
  constexpr double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, product = d;
  for (int k = 1; k < 2000; ++k) {
    const double an = -k * (k - a);
    b += 2;
    d = an * d + b;
    d = 1 / (std::abs(d) < tiny ? tiny : d);
    c = b + an / c;
    if (std::abs(c) < tiny) c = tiny;
    product *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return product * gamma_factor(a, x) * a;
}

}  // namespace

double lower_gamma(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return nan;
  if (x == 0) return 0;
  if (std::isinf(x)) return 1;
  return x < a + 1 ? lower_series(a, x) : 1 - upper_fraction(a, x);
}

double upper_gamma(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return nan;
  if (x == 0) return 1;
  if (std::isinf(x)) return 0;
  return x < a + 1 ? 1 - lower_series(a, x) : upper_fraction(a, x);
}

// There is no closed form: differences of five points, right to ten digits.
double lower_gamma_slope(double a, double x) {
  if (!(a > 0) || !(x > 0)) return x == 0 ? 0 : nan;
  const double h = a * 1e-3;
  const auto at = [&](double steps) { return lower_gamma(a + steps * h, x); };
  return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h);
}

}  // namespace muster::graph::special
