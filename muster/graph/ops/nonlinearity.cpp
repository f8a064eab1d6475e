// The functions between layers: relu, sigmoid, gelu, … and the rows of their derivatives.
#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace nonlinearity_rows {

using kernels::Nonlinearity;
using Kind = Nonlinearity::Kind;

struct Names {
  std::string_view forward;
  std::string_view backward;
};

// gelu_tanh is gelu with an attribute.
constexpr Names names_of(Kind kind) {
  switch (kind) {
    case Kind::relu:
      return {"relu", "relu_grad"};
    case Kind::relu6:
      return {"relu6", "relu6_grad"};
    case Kind::leaky_relu:
      return {"leaky_relu", "leaky_relu_grad"};
    case Kind::elu:
      return {"elu", "elu_grad"};
    case Kind::sigmoid:
      return {"sigmoid", "sigmoid_grad"};
    case Kind::tanh:
      return {"tanh", "tanh_grad"};
    case Kind::gelu:
    case Kind::gelu_tanh:
      return {"gelu", "gelu_grad"};
    case Kind::silu:
      return {"silu", "silu_grad"};
    case Kind::softplus:
      break;
  }
  return {"softplus", "softplus_grad"};
}

template <Kind kind>
Types infer(const Signature& signature) {
  constexpr bool takes_whole = kind == Kind::relu || kind == Kind::leaky_relu;
  const auto require = takes_whole ? require_number : require_floating;
  MUSTER_TRY_VOID(require(names_of(kind).forward, signature.inputs[0]));
  return same_as_first(signature);
}

template <Kind kind>
Types infer_grad(const Signature& signature) {
  if (signature.inputs[0] != signature.inputs[1])
    return bad("{}: dy {} and {} {} must be alike", names_of(kind).backward, to_string(signature.inputs[0]),
               kernels::derivative_of_output(kind) ? "y" : "x", to_string(signature.inputs[1]));
  MUSTER_TRY_VOID(require_floating(names_of(kind).backward, signature.inputs[0]));
  return same_as_first(signature);
}

template <Kind kind>
std::vector<Value> gradient(const GradientQuery& query) {
  const Value& value = kernels::derivative_of_output(kind) ? query.outputs[0] : query.inputs[0];
  const auto rule = [&](const Value& dy) {
    const Value at = is_floating(value.dtype()) ? value : as_numbers(value, dy);
    return apply(names_of(kind).backward, {dy, at}, query.attributes);
  };
  return {in_floats(query.output_gradients[0], rule)};
}

// f''(x) of GELU: p(x) (2 - x^2), p the density of N(0, 1).
Value gelu_curvature(const Value& x) {
  constexpr double one_over_root_two_pi = 0.3989422804014327;
  const Value square = apply("square", {x});
  const Value density = times(apply("exp", {times(square, -0.5)}), one_over_root_two_pi);
  return times(density, minus(scalar_like(x, 2), square));
}

// Of x/2 (1 + t), t = tanh(u): (1 - t^2) (u' + x/2 (u'' - 2 t u'^2)).
Value gelu_tanh_curvature(const Value& x) {
  constexpr double scale = 0.7978845608028654;  // sqrt(2 / pi)
  constexpr double cubic = 0.044715;
  const Value square = apply("square", {x});
  const Value u = times(times(x, plus(times(square, cubic), scalar_like(x, 1))), scale);
  const Value slope = times(plus(times(square, 3 * cubic), scalar_like(x, 1)), scale);
  const Value t = apply("tanh", {u});
  const Value bend = minus(times(x, 6 * scale * cubic), times(times(t, apply("square", {slope})), 2));
  const Value flatness = minus(scalar_like(x, 1), apply("square", {t}));
  return times(flatness, plus(slope, times(times(x, bend), 0.5)));
}

// s (1 - s) (2 + x (1 - 2 s)), s = sigmoid(x).
Value silu_curvature(const Value& x) {
  const Value s = apply("sigmoid", {x});
  const Value one = scalar_like(x, 1);
  const Value bend = plus(times(x, minus(one, times(s, 2))), scalar_like(x, 2));
  return times(times(s, minus(one, s)), bend);
}

// Of dx = dy f'(v), v being x or y, for the gradient g of dx: what flows to v. Nothing where f' is piecewise
// constant.
template <Kind kind>
Value gradient_by_value(const Value& g, const Value& dy, const Value& v, const Attributes& attributes) {
  if constexpr (kind == Kind::relu || kind == Kind::relu6 || kind == Kind::leaky_relu) return Value();
  const Value both = times(g, dy);
  if constexpr (kind == Kind::tanh) return times(times(both, v), -2);
  if constexpr (kind == Kind::sigmoid) return times(both, minus(scalar_like(v, 1), times(v, 2)));
  if constexpr (kind == Kind::gelu)
    return times(both, attributes.get("approximate", false) ? gelu_tanh_curvature(v) : gelu_curvature(v));
  if constexpr (kind == Kind::silu) return times(both, silu_curvature(v));
  if constexpr (kind == Kind::softplus) return apply("sigmoid_grad", {both, apply("sigmoid", {v})});
  // elu: e^x is its own derivative, and elu_grad does not compute it where it would overflow.
  return where(apply("less_equal", {v, scalar_like(v, 0)}), apply("elu_grad", {both, v}, attributes));
}

// By dy it is f' again.
template <Kind kind>
std::vector<Value> gradient_grad(const GradientQuery& query) {
  const Value& g = query.output_gradients[0];
  return {apply(names_of(kind).backward, {g, query.inputs[1]}, query.attributes),
          gradient_by_value<kind>(g, query.inputs[0], query.inputs[1], query.attributes)};
}

struct Settings {
  Nonlinearity what;
  Elements elements;
};

template <Kind kind>
Prepared prepare(const Signature& signature) {
  Nonlinearity what{kind, signature.attributes.get("alpha", kind == Kind::leaky_relu ? 0.2 : 1.0)};
  if (kind == Kind::gelu && signature.attributes.get("approximate", false)) what.kind = Kind::gelu_tanh;
  // A derivative times the zeros of padding is zero; of the functions two are not zero there.
  constexpr bool zero_at_zero = kind != Kind::sigmoid && kind != Kind::softplus;
  const bool keeps = zero_at_zero || signature.inputs.size() == 2;
  const FormatPtr format = keeps ? common_format(signature) : nullptr;
  return in_format(prepared(Settings{what, {signature.inputs[0].dtype, elements_in(format, signature)}}),
                   signature, format);
}

void run_vector(const KernelCall& call) {
  const auto& [what, elements] = call.setting<Settings>();
  kernels::vector_nonlinearity(kernels::vector_math().front(), what, call.input<float>(0),
                               call.output<float>(), elements.count, call.threads);
}

void run_vector_grad(const KernelCall& call) {
  const auto& [what, elements] = call.setting<Settings>();
  kernels::vector_nonlinearity_grad(kernels::vector_math().front(), what, call.input<float>(0),
                                    call.input<float>(1), call.output<float>(), elements.count, call.threads);
}

void run(const KernelCall& call) {
  const auto& [what, elements] = call.setting<Settings>();
  kernels::nonlinearity(what, elements.dtype, call.inputs[0], call.outputs[0], elements.count, call.threads);
}

void run_grad(const KernelCall& call) {
  const auto& [what, elements] = call.setting<Settings>();
  kernels::nonlinearity_grad(what, elements.dtype, call.inputs[0], call.inputs[1], call.outputs[0],
                             elements.count, call.threads);
}

// The reference, behind a kernel of vector functions where there is one.
std::vector<Kernel> kernel_list(bool has_vector, Kernel vector, const Kernel& reference) {
  vector.name = kernels::vector_math().front().name;
  return has_vector ? std::vector{vector, reference} : std::vector{reference};
}

// The others have no operator of their own in opset 17.
Result<> onnx_gelu(OnnxCall& call) {
  const DType dtype = call.in().type.dtype;
  const std::string& x = call.input();
  std::string inner;
  if (call.attributes().get("approximate", false)) {
    const std::string cube = call.make("Mul", {x, call.make("Mul", {x, x})});
    const std::string bent = call.make("Mul", {cube, call.scalar(0.044715, dtype)});
    const std::string scale = call.scalar(0.7978845608028654, dtype);  // sqrt(2 / pi)
    inner = call.make("Tanh", {call.make("Mul", {call.make("Add", {x, bent}), scale})});
  } else {
    inner = call.make("Erf", {call.make("Mul", {x, call.scalar(0.7071067811865476, dtype)})});  // 1 / sqrt(2)
  }
  const std::string half = call.make("Mul", {x, call.scalar(0.5, dtype)});
  return call.give("Mul", {half, call.make("Add", {inner, call.scalar(1, dtype)})});
}

template <Kind kind>
Result<> onnx_rule(OnnxCall& call) {
  const DType dtype = call.in().type.dtype;
  const auto alpha = [&call](double otherwise) {
    return OnnxAttributes{{"alpha", static_cast<float>(call.attributes().get("alpha", otherwise))}};
  };
  if constexpr (kind == Kind::relu) return call.give("Relu", {call.input()});
  if constexpr (kind == Kind::relu6)
    return call.give("Clip", {call.input(), call.scalar(0, dtype), call.scalar(6, dtype)});
  if constexpr (kind == Kind::leaky_relu) return call.give("LeakyRelu", {call.input()}, alpha(0.2));
  if constexpr (kind == Kind::elu) return call.give("Elu", {call.input()}, alpha(1));
  if constexpr (kind == Kind::sigmoid) return call.give("Sigmoid", {call.input()});
  if constexpr (kind == Kind::tanh) return call.give("Tanh", {call.input()});
  if constexpr (kind == Kind::gelu) return onnx_gelu(call);
  if constexpr (kind == Kind::silu)
    return call.give("Mul", {call.input(), call.make("Sigmoid", {call.input()})});
  return call.give("Softplus", {call.input()});
}

template <Kind kind>
Op row(Schema schema, std::string_view documentation) {
  schema.inputs = {"x"};
  return {
      .name = names_of(kind).forward,
      .documentation = documentation,
      .infer = infer<kind>,
      .gradient = gradient<kind>,
      .kernels = kernel_list(kernels::has_vector_math(kind), {{}, first_is<float>, prepare<kind>, run_vector},
                             with_bfloat16({"reference", any_signature, prepare<kind>, run})),
      .sharing = Sharing::reuse,
      .precision = kind == Kind::softplus ? MixedPrecision::full : MixedPrecision::given,
      .schema = std::move(schema),
      .onnx = onnx_rule<kind>,
      .dimensions = elementwise};
}

template <Kind kind>
Op grad_row(std::string_view documentation) {
  return {.name = names_of(kind).backward,
          .documentation = documentation,
          .inputs_min = 2,
          .inputs_max = 2,
          .infer = infer_grad<kind>,
          .gradient = gradient_grad<kind>,
          .kernels = kernel_list(kernels::has_vector_math_grad(kind),
                                 {{}, first_is<float>, prepare<kind>, run_vector_grad},
                                 with_bfloat16({"reference", any_signature, prepare<kind>, run_grad})),
          .sharing = Sharing::reuse,
          .dimensions = elementwise};
}

Argument alpha(double otherwise) { return {.name = "alpha", .otherwise = otherwise}; }

const std::vector<Op>& family() {
  static const std::vector<Op> rows = {
      row<Kind::relu>({.primitives = {{"ReLU"}}},
                      "y = max(x, 0), NaN stays NaN; any shape and numbers. The gradient at 0 is 0."),
      row<Kind::tanh>({.promotion = Promotion::floating,
                       .methods = {{"tanh"}},
                       .mindspore = {{"tanh", {"input"}}},
                       .primitives = {{"Tanh"}}},
                      "y = tanh(x); any shape, float32 or float64."),
      row<Kind::relu6>(
          {.mindspore = {{"relu6", {"x"}}}, .primitives = {{"ReLU6"}}},
          "y = min(max(x, 0), 6); any shape, float32 or float64. The gradient at 0 is 0, at 6 it is 1. "
          "Source: Krizhevsky, Convolutional deep belief networks on CIFAR-10, 2010."),
      row<Kind::leaky_relu>(
          {.attributes = {alpha(0.2)}, .mindspore = {{"leaky_relu", {"input", "alpha"}}}},
          "y = x where x > 0, else alpha x (0.2 unless set; of whole numbers cut off to one); any shape and "
          "numbers. Source: Maas, Hannun, Ng, Rectifier nonlinearities, ICML 2013."),
      row<Kind::elu>({.attributes = {alpha(1.0)},
                      .mindspore = {{"elu", {"input_x", "alpha"}}},
                      .primitives = {{"Elu", {"alpha"}}}},
                     "y = x where x > 0, else alpha (e^x - 1) (alpha 1 unless set); any shape, float32 or "
                     "float64. Source: Clevert, Unterthiner, Hochreiter, ICLR 2016, arXiv 1511.07289."),
      row<Kind::sigmoid>({.promotion = Promotion::floating,
                          .methods = {{"sigmoid"}},
                          .mindspore = {{"sigmoid", {"input"}}},
                          .primitives = {{"Sigmoid"}}},
                         "y = 1 / (1 + e^-x); any shape, float32 or float64."),
      row<Kind::gelu>({.attributes = {{.name = "approximate", .otherwise = false}}},
                      "y = x P(X <= x) for X ~ N(0, 1), or with approximate=true its approximation "
                      "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); any shape, float32 or float64. Source: "
                      "Hendrycks, Gimpel, arXiv 1606.08415."),
      row<Kind::silu>(
          {.promotion = Promotion::floating, .mindspore = {{"silu", {"input"}}}},
          "y = x / (1 + e^-x), also called swish; any shape, float32 or float64. Source: Elfwing, "
          "Uchibe, Doya, arXiv 1702.03118."),
      row<Kind::softplus>({.promotion = Promotion::floating, .primitives = {{"Softplus"}}},
                          "y = log(1 + e^x), exact for large and small x; any shape, float32 or float64."),
      grad_row<Kind::relu>("dx = dy where y > 0, else 0, for y = relu(x)."),
      grad_row<Kind::tanh>("dx = dy (1 - y^2), for y = tanh(x)."),
      grad_row<Kind::relu6>("dx = dy where 0 < x <= 6, else 0, for y = relu6(x)."),
      grad_row<Kind::leaky_relu>("dx = dy where x > 0, else alpha dy, for y = leaky_relu(x)."),
      grad_row<Kind::elu>("dx = dy where x > 0, else dy alpha e^x, for y = elu(x)."),
      grad_row<Kind::sigmoid>("dx = dy y (1 - y), for y = sigmoid(x)."),
      grad_row<Kind::gelu>("dx = dy (P(X <= x) + x p(x)) for y = gelu(x), p the density of N(0, 1); with "
                           "approximate=true the derivative of the approximation."),
      grad_row<Kind::silu>("dx = dy s (1 + x (1 - s)) with s = sigmoid(x), for y = silu(x)."),
      grad_row<Kind::softplus>("dx = dy sigmoid(x), for y = softplus(x)."),
  };
  return rows;
}

}  // namespace nonlinearity_rows
}  // namespace

std::vector<const Op*> rows_of_nonlinearity() {
  using namespace nonlinearity_rows;
  return addresses(family());
}
const Op& relu_op() { return *find_op("relu"); }
const Op& relu_grad_op() { return *find_op("relu_grad"); }
const Op& tanh_op() { return *find_op("tanh"); }

}  // namespace muster::graph
