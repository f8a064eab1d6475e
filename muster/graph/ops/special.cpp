// Private to graph: special functions of one and of two numbers. element by element: computed in double,
// whatever the dtype.
#include "muster/graph/ops/special_functions.h"

#include <numbers>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/rules.h"
#include "muster/tensor/parallel.h"

namespace muster::graph {
namespace {
namespace special_rows {

using Rule = std::vector<Value> (*)(const GradientQuery&);
using OfOne = double (*)(double);
using OfTwo = double (*)(double, double);

constexpr std::int64_t grain = 2048;  // these functions take tens of nanoseconds

const Value& x_of(const GradientQuery& query) { return query.inputs[0]; }
const Value& y_of(const GradientQuery& query) { return query.outputs[0]; }
const Value& dy_of(const GradientQuery& query) { return query.output_gradients[0]; }
Value call(std::string_view op, const Value& x) { return apply(op, {x}); }
Value shifted(const Value& x, double by) { return plus(x, scalar_like(x, by)); }
Value squared(const Value& x) { return call("square", x); }

// ---- One number ------------------------------------------------------------------------------------------

template <class Function>
struct Settings {
  DType dtype = DType::float32;
  std::int64_t count = 0;
  Function function = nullptr;
};

template <OfOne function>
Prepared prepare(const Signature& signature) {
  return prepared(Settings<OfOne>{signature.inputs[0].dtype, signature.inputs[0].shape.elements(), function});
}

template <class T>
void run_as(const KernelCall& call, const Settings<OfOne>& settings) {
  const T* x = call.input<T>(0);
  T* y = call.output<T>();
  parallel_for(settings.count, grain, call.threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      y[i] = static_cast<T>(settings.function(static_cast<double>(x[i])));
  });
}

void run(const KernelCall& call) {
  const auto& settings = call.setting<Settings<OfOne>>();
  if (settings.dtype == DType::float32)
    run_as<float>(call, settings);
  else
    run_as<double>(call, settings);
}

// dy f'(x), with f' written as a value.
template <Value (*derivative)(const GradientQuery&)>
std::vector<Value> times_derivative(const GradientQuery& query) {
  return {times(dy_of(query), derivative(query))};
}

Value one_less_square(const GradientQuery& query) {
  return shifted(negated(squared(x_of(query))), 1);  // 1 - x^2
}
Value asin_rule(const GradientQuery& query) { return call("rsqrt", one_less_square(query)); }
Value acos_rule(const GradientQuery& query) { return negated(asin_rule(query)); }
Value atan_rule(const GradientQuery& query) { return call("reciprocal", shifted(squared(x_of(query)), 1)); }
Value sinh_rule(const GradientQuery& query) { return call("cosh", x_of(query)); }
Value cosh_rule(const GradientQuery& query) { return call("sinh", x_of(query)); }
Value asinh_rule(const GradientQuery& query) { return call("rsqrt", shifted(squared(x_of(query)), 1)); }
Value acosh_rule(const GradientQuery& query) { return call("rsqrt", shifted(squared(x_of(query)), -1)); }
Value atanh_rule(const GradientQuery& query) { return call("reciprocal", one_less_square(query)); }
Value erfc_rule(const GradientQuery& query) {
  return times(call("exp", negated(squared(x_of(query)))), -2 * std::numbers::inv_sqrtpi);
}
Value erfinv_rule(const GradientQuery& query) {
  return times(call("exp", squared(y_of(query))), 0.5 / std::numbers::inv_sqrtpi);
}
Value lgamma_rule(const GradientQuery& query) { return call("digamma", x_of(query)); }
Value digamma_rule(const GradientQuery& query) {
  return apply("polygamma", {filled_like(x_of(query), 1), x_of(query)});
}

// y / x, which is 1/2 at 0 for the functions below.
Value over_x(const Value& y, const Value& x) {
  const Value at_zero = apply("equal", {x, scalar_like(x, 0)});
  const Value safe = apply("select", {at_zero, scalar_like(x, 1), x});
  return apply("select", {at_zero, scalar_like(x, 0.5), over(y, safe)});
}
Value sign_of_x(const GradientQuery& query) { return call("sign", x_of(query)); }
Value i0_rule(const GradientQuery& query) { return call("bessel_i1", x_of(query)); }
Value i1_rule(const GradientQuery& query) {
  return minus(call("bessel_i0", x_of(query)), over_x(y_of(query), x_of(query)));
}
Value i0e_rule(const GradientQuery& query) {
  return minus(call("bessel_i1e", x_of(query)), times(sign_of_x(query), y_of(query)));
}
Value i1e_rule(const GradientQuery& query) {
  const Value steady = minus(call("bessel_i0e", x_of(query)), over_x(y_of(query), x_of(query)));
  return minus(steady, times(sign_of_x(query), y_of(query)));
}
Value j0_rule(const GradientQuery& query) { return negated(call("bessel_j1", x_of(query))); }
Value j1_rule(const GradientQuery& query) {
  return minus(call("bessel_j0", x_of(query)), over_x(y_of(query), x_of(query)));
}
Value y0_rule(const GradientQuery& query) { return negated(call("bessel_y1", x_of(query))); }
Value y1_rule(const GradientQuery& query) {
  return minus(call("bessel_y0", x_of(query)), over(y_of(query), x_of(query)));
}
Value k0_rule(const GradientQuery& query) { return negated(call("bessel_k1", x_of(query))); }
Value k1_rule(const GradientQuery& query) {
  return negated(plus(call("bessel_k0", x_of(query)), over(y_of(query), x_of(query))));
}
Value k0e_rule(const GradientQuery& query) { return minus(y_of(query), call("bessel_k1e", x_of(query))); }
Value k1e_rule(const GradientQuery& query) {
  const Value falling = plus(call("bessel_k0e", x_of(query)), over(y_of(query), x_of(query)));
  return minus(y_of(query), falling);
}

template <OfOne function>
Op row(std::string_view name, std::string_view documentation, Rule rule,
       std::vector<std::string_view> aliases, std::string_view primitive, std::string_view argument = "input",
       Result<> (*onnx)(OnnxCall&) = nullptr) {
  Schema schema{.inputs = {"x"}, .promotion = Promotion::floating, .primitives = {{primitive}}};
  for (const std::string_view alias : aliases) schema.mindspore.push_back({alias, {argument}});
  return {.name = name,
          .documentation = documentation,
          .infer = [](const Signature& signature) -> Types {
            MUSTER_TRY_VOID(require_floating("a special function", signature.inputs[0]));
            return same_as_first(signature);
          },
          .gradient = rule,
          .kernels = {{"reference", any_signature, prepare<function>, run}},
          .sharing = Sharing::reuse,
          .precision = MixedPrecision::full,
          .schema = std::move(schema),
          .onnx = onnx};
}

// ---- Two numbers -----------------------------------------------------------------------------------------

template <OfTwo function>
Prepared prepare_two(const Signature& signature) {
  return prepared(Settings<OfTwo>{signature.inputs[0].dtype, signature.inputs[0].shape.elements(), function});
}

template <class T>
void run_two_as(const KernelCall& call, const Settings<OfTwo>& settings) {
  const T* a = call.input<T>(0);
  const T* b = call.input<T>(1);
  T* y = call.output<T>();
  parallel_for(settings.count, grain, call.threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      y[i] = static_cast<T>(settings.function(static_cast<double>(a[i]), static_cast<double>(b[i])));
  });
}

void run_two(const KernelCall& call) {
  const auto& settings = call.setting<Settings<OfTwo>>();
  if (settings.dtype == DType::float32)
    run_two_as<float>(call, settings);
  else
    run_two_as<double>(call, settings);
}

Types infer_two(const Signature& signature) {
  MUSTER_TRY_VOID(require_floating("a special function", signature.inputs[0]));
  if (signature.inputs[0] != signature.inputs[1])
    return bad("a special function of two tensors needs equal ones, not {} and {}: broadcast them",
               to_string(signature.inputs[0]), to_string(signature.inputs[1]));
  return same_as_first(signature);
}

std::vector<Value> atan2_rule(const GradientQuery& query) {
  const Value &y = query.inputs[0], &x = query.inputs[1];
  const Value share = over(dy_of(query), plus(squared(x), squared(y)));
  return {times(share, x), negated(times(share, y))};
}

std::vector<Value> polygamma_rule(const GradientQuery& query) {
  const Value &n = query.inputs[0], &x = query.inputs[1];
  return {Value(), times(dy_of(query), apply("polygamma", {shifted(n, 1), x}))};
}

std::vector<Value> zeta_rule(const GradientQuery& query) {
  const Value &x = query.inputs[0], &q = query.inputs[1];
  const Value slope = negated(times(x, apply("zeta", {shifted(x, 1), q})));
  return {Value(), times(dy_of(query), slope)};
}

// x^(a-1) e^-x / gamma(a), by logarithms.
Value gamma_density(const Value& a, const Value& x) {
  const Value power = minus(times(shifted(a, -1), call("log", x)), x);
  return call("exp", minus(power, call("lgamma", a)));
}
std::vector<Value> igamma_rule(const GradientQuery& query) {
  const Value &a = query.inputs[0], &x = query.inputs[1];
  return {times(dy_of(query), apply("igamma_grad_a", {a, x})), times(dy_of(query), gamma_density(a, x))};
}
std::vector<Value> igammac_rule(const GradientQuery& query) {
  std::vector<Value> made = igamma_rule(query);
  return {negated(made[0]), negated(made[1])};
}

template <OfTwo function>
Op row_of_two(std::string_view name, std::vector<std::string_view> inputs, std::string_view documentation,
              Rule rule) {
  return {.name = name,
          .documentation = documentation,
          .inputs_min = 2,
          .inputs_max = 2,
          .infer = infer_two,
          .gradient = rule,
          .kernels = {{"reference", any_signature, prepare_two<function>, run_two}},
          .precision = MixedPrecision::full,
          .schema = {.inputs = std::move(inputs), .promotion = Promotion::common_floating}};
}

std::vector<Op> rows() {
  using namespace special;
  return {
      row<arc_sine>("asin", "The angle in radians, -pi/2 to pi/2, whose sine is x; NaN outside of [-1, 1].",
                    times_derivative<asin_rule>, {"asin", "arcsin"}, "Asin", "input", onnx_as<"Asin">),
      row<arc_cosine>("acos", "The angle in radians, 0 to pi, whose cosine is x; NaN outside of [-1, 1].",
                      times_derivative<acos_rule>, {"acos", "arccos"}, "ACos", "input", onnx_as<"Acos">),
      row<arc_tangent>("atan", "The angle in radians, -pi/2 to pi/2, whose tangent is x.",
                       times_derivative<atan_rule>, {"atan", "arctan"}, "Atan", "input", onnx_as<"Atan">),
      row<hyperbolic_sine>("sinh", "(e^x - e^-x) / 2.", times_derivative<sinh_rule>, {"sinh"}, "Sinh",
                           "input", onnx_as<"Sinh">),
      row<hyperbolic_cosine>("cosh", "(e^x + e^-x) / 2.", times_derivative<cosh_rule>, {"cosh"}, "Cosh",
                             "input", onnx_as<"Cosh">),
      row<area_sine>("asinh", "The number whose sinh is x.", times_derivative<asinh_rule>,
                     {"asinh", "arcsinh"}, "Asinh", "input", onnx_as<"Asinh">),
      row<area_cosine>("acosh", "The number, 0 or more, whose cosh is x; NaN below 1.",
                       times_derivative<acosh_rule>, {"acosh", "arccosh"}, "Acosh", "input",
                       onnx_as<"Acosh">),
      row<area_tangent>("atanh", "The number whose tanh is x; infinite at -1 and 1, NaN beyond.",
                        times_derivative<atanh_rule>, {"atanh", "arctanh"}, "Atanh", "input",
                        onnx_as<"Atanh">),
      row<error_complement>("erfc", "1 - erf(x), exact also where erf(x) is near 1.",
                            times_derivative<erfc_rule>, {"erfc"}, "Erfc"),
      row<error_inverse>("erfinv", "The number whose erf is x; infinite at -1 and 1, NaN beyond.",
                         times_derivative<erfinv_rule>, {"erfinv"}, "Erfinv"),
      row<log_gamma>("lgamma", "log(|gamma(x)|); infinite at 0, -1, -2, ...", times_derivative<lgamma_rule>,
                     {"lgamma"}, "Lgamma"),
      row<special::digamma>("digamma", "The derivative of lgamma(x); NaN at -1, -2, ..., -inf at 0.",
                            times_derivative<digamma_rule>, {"digamma"}, "Digamma"),
      row<bessel_i0>("bessel_i0", "The modified Bessel function of the first kind of order 0.",
                     times_derivative<i0_rule>, {"bessel_i0"}, "BesselI0", "x"),
      row<bessel_i0e>("bessel_i0e", "e^-|x| bessel_i0(x), which does not overflow.",
                      times_derivative<i0e_rule>, {"bessel_i0e"}, "BesselI0e", "x"),
      row<bessel_i1>("bessel_i1", "The modified Bessel function of the first kind of order 1.",
                     times_derivative<i1_rule>, {"bessel_i1"}, "BesselI1", "x"),
      row<bessel_i1e>("bessel_i1e", "e^-|x| bessel_i1(x), which does not overflow.",
                      times_derivative<i1e_rule>, {"bessel_i1e"}, "BesselI1e", "x"),
      row<bessel_j0>("bessel_j0", "The Bessel function of the first kind of order 0.",
                     times_derivative<j0_rule>, {"bessel_j0"}, "BesselJ0", "x"),
      row<bessel_j1>("bessel_j1", "The Bessel function of the first kind of order 1.",
                     times_derivative<j1_rule>, {"bessel_j1"}, "BesselJ1", "x"),
      row<bessel_y0>("bessel_y0", "The Bessel function of the second kind of order 0; NaN below 0.",
                     times_derivative<y0_rule>, {"bessel_y0"}, "BesselY0", "x"),
      row<bessel_y1>("bessel_y1", "The Bessel function of the second kind of order 1; NaN below 0.",
                     times_derivative<y1_rule>, {"bessel_y1"}, "BesselY1", "x"),
      row<bessel_k0>("bessel_k0", "The modified Bessel function of the second kind of order 0; NaN below 0.",
                     times_derivative<k0_rule>, {"bessel_k0"}, "BesselK0", "x"),
      row<bessel_k0e>("bessel_k0e", "e^x bessel_k0(x).", times_derivative<k0e_rule>, {"bessel_k0e"},
                      "BesselK0e", "x"),
      row<bessel_k1>("bessel_k1", "The modified Bessel function of the second kind of order 1; NaN below 0.",
                     times_derivative<k1_rule>, {"bessel_k1"}, "BesselK1", "x"),
      row<bessel_k1e>("bessel_k1e", "e^x bessel_k1(x).", times_derivative<k1e_rule>, {"bessel_k1e"},
                      "BesselK1e", "x"),
      row_of_two<arc_tangent_of_two>("atan2", {"y", "x"},
                                     "The angle of the point (x, y) in radians, -pi to pi. Both alike.",
                                     atan2_rule),
      row_of_two<next_after>("nextafter", {"x", "y"},
                             "The number next to x towards y, among those of float64.", nullptr),
      row_of_two<polygamma>("polygamma", {"n", "x"},
                            "The derivative of order n (0, 1, 2, ...) of digamma at x; the gradient is by x.",
                            polygamma_rule),
      row_of_two<zeta>("zeta", {"x", "q"},
                       "The Hurwitz zeta function, the sum of (q + k)^-x over k = 0, 1, ..., for x > 1; the "
                       "gradient is by q.",
                       zeta_rule),
      row_of_two<lower_gamma>("igamma", {"a", "x"},
                              "The regularized lower incomplete gamma function, a > 0 and x >= 0.",
                              igamma_rule),
      row_of_two<upper_gamma>("igammac", {"a", "x"},
                              "The regularized upper incomplete gamma function, 1 - igamma(a, x).",
                              igammac_rule),
      row_of_two<lower_gamma_slope>("igamma_grad_a", {"a", "x"}, "The derivative of igamma(a, x) by a.",
                                    nullptr),
  };
}

}  // namespace special_rows
}  // namespace

std::vector<const Op*> rows_of_special() {
  using namespace special_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
