// Private to graph: special functions of one and of two numbers.
#pragma once

namespace muster::graph::special {

double arc_sine(double x);
double arc_cosine(double x);
double arc_tangent(double x);
double hyperbolic_sine(double x);
double hyperbolic_cosine(double x);
double area_sine(double x);
double area_cosine(double x);
double area_tangent(double x);
double error_complement(double x);
double error_inverse(double x);
double log_gamma(double x);
double digamma(double x);

double bessel_i0(double x);
double bessel_i0e(double x);
double bessel_i1(double x);
double bessel_i1e(double x);
double bessel_j0(double x);
double bessel_j1(double x);
double bessel_y0(double x);
double bessel_y1(double x);
double bessel_k0(double x);
double bessel_k0e(double x);
double bessel_k1(double x);
double bessel_k1e(double x);

double arc_tangent_of_two(double y, double x);
double next_after(double x, double y);
double polygamma(double n, double x);
double zeta(double x, double q);
// The regularized incomplete gamma functions, and the derivative of the lower one by a.
double lower_gamma(double a, double x);
double upper_gamma(double a, double x);
double lower_gamma_slope(double a, double x);

}  // namespace muster::graph::special
