// Functions of one number and tests of one number, element by element.
#include <cstring>

#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace unary_rows {

using kernels::Predicate;
using kernels::Unary;
using Rule = std::vector<Value> (*)(const GradientQuery&);

constexpr std::string_view name_of(Unary kind) {
  constexpr std::string_view names[] = {"neg",   "abs", "sign",  "square", "reciprocal", "sqrt",
                                        "rsqrt", "exp", "expm1", "log",    "log1p",      "erf",
                                        "sin",   "cos", "floor", "ceil",   "round"};
  static_assert(std::size(names) == static_cast<std::size_t>(Unary::round) + 1);
  return names[static_cast<std::size_t>(kind)];
}

constexpr std::string_view name_of(Predicate kind) {
  constexpr std::string_view names[] = {"isnan", "isinf", "isfinite", "logical_not"};
  return names[static_cast<std::size_t>(kind)];
}

// In bfloat16 their results overflow, or keep few of the digits that count.
constexpr bool loses_digits(Unary kind) {
  return kind == Unary::exp || kind == Unary::expm1 || kind == Unary::log || kind == Unary::log1p ||
         kind == Unary::reciprocal || kind == Unary::rsqrt;
}

constexpr bool takes_integers(Unary kind) {
  return kind == Unary::neg || kind == Unary::abs || kind == Unary::sign || kind == Unary::square;
}

// Whole numbers are what it makes of them.
constexpr bool keeps_integers(Unary kind) { return kind == Unary::round; }

template <Unary kind>
Types infer(const Signature& signature) {
  if (kind == Unary::abs && signature.inputs[0].dtype == DType::bool_) return same_as_first(signature);
  if constexpr (takes_integers(kind) || keeps_integers(kind))
    MUSTER_TRY_VOID(require_number(name_of(kind), signature.inputs[0]));
  else
    MUSTER_TRY_VOID(require_floating(name_of(kind), signature.inputs[0]));
  return same_as_first(signature);
}

template <Predicate kind>
Types infer_predicate(const Signature& signature) {
  if constexpr (kind != Predicate::logical_not)
    MUSTER_TRY_VOID(require_floating(name_of(kind), signature.inputs[0]));
  return std::vector<TensorType>{{DType::bool_, signature.inputs[0].shape}};
}

template <Unary kind>
void run(const KernelCall& call) {
  const auto& [dtype, count] = call.setting<Elements>();
  kernels::unary(kind, dtype, call.inputs[0], call.outputs[0], count, call.threads);
}

template <Unary kind>
void run_vector(const KernelCall& call) {
  kernels::vector_unary(kernels::vector_math().front(), kind, call.input<float>(0), call.output<float>(),
                        call.setting<Elements>().count, call.threads);
}

template <Unary kind>
bool stays(const Signature& signature) {
  const DType dtype = signature.inputs[0].dtype;
  return keeps_integers(kind) ? is_whole(dtype) : dtype == DType::bool_;
}

Prepared bytes_of_first(const Signature& signature) {
  return prepared(static_cast<std::int64_t>(signature.inputs[0].size_bytes()));
}

void run_copy(const KernelCall& call) {
  std::memmove(call.outputs[0], call.inputs[0], static_cast<std::size_t>(call.setting<std::int64_t>()));
}

template <Unary kind>
std::vector<Kernel> kernel_list() {
  std::vector<Kernel> list;
  if constexpr (keeps_integers(kind) || kind == Unary::abs)
    list.push_back(for_any_dtype({"same", stays<kind>, bytes_of_first, run_copy}));
  if (kernels::has_vector_math(kind))
    list.push_back(
        {kernels::vector_math().front().name, first_is<float>, elements_of_first, run_vector<kind>});
  list.push_back(taking(arithmetic_and_bfloat16, {"reference", any_signature, elements_of_first, run<kind>}));
  return list;
}

template <Predicate kind>
void run_predicate(const KernelCall& call) {
  const auto& [dtype, count] = call.setting<Elements>();
  kernels::predicate(kind, dtype, call.inputs[0], call.output<bool>(), count, call.threads);
}

// Where scripts written for MindSpore find it; `input` is its name for x there.
struct Names {
  std::string_view primitive;
  std::vector<std::string_view> functions;
  std::vector<Alias> methods = {};
  std::string_view x = "input";
};

Schema schema_of(const Names& names, Promotion promotion) {
  Schema schema{
      .inputs = {"x"}, .promotion = promotion, .methods = names.methods, .primitives = {{names.primitive}}};
  for (const std::string_view name : names.functions) schema.mindspore.push_back({name, {names.x}});
  return schema;
}

constexpr const char* onnx_type(Unary kind) {
  constexpr const char* types[] = {"Neg",        "Abs", "Sign",  "Mul",  "Reciprocal", "Sqrt",
                                   "Reciprocal", "Exp", "Sub",   "Log",  "Log",        "Erf",
                                   "Sin",        "Cos", "Floor", "Ceil", "Round"};
  static_assert(std::size(types) == static_cast<std::size_t>(Unary::round) + 1);
  return types[static_cast<std::size_t>(kind)];
}

template <Unary kind>
Result<> onnx_rule(OnnxCall& call) {
  const std::string& x = call.input();
  const auto one = [&call] { return call.scalar(1, call.in().type.dtype); };
  std::vector<std::string> inputs{x};
  if constexpr (kind == Unary::square) inputs = {x, x};
  if constexpr (kind == Unary::rsqrt) inputs = {call.make("Sqrt", {x})};
  if constexpr (kind == Unary::expm1) inputs = {call.make("Exp", {x}), one()};
  if constexpr (kind == Unary::log1p) inputs = {call.make("Add", {x, one()})};
  return call.give(onnx_type(kind), std::move(inputs));
}

template <Predicate kind>
Result<> onnx_predicate(OnnxCall& call) {
  const std::string& x = call.input();
  if constexpr (kind == Predicate::isnan) return call.give("IsNaN", {x});
  if constexpr (kind == Predicate::isinf) return call.give("IsInf", {x});
  if constexpr (kind == Predicate::isfinite)
    return call.give("Not", {call.make("Or", {call.make("IsNaN", {x}), call.make("IsInf", {x})})});
  return call.give("Not", {call.in().type.dtype == DType::bool_ ? x : call.cast(x, DType::bool_)});
}

template <Unary kind>
Op row(Rule rule, const Names& names, std::string_view documentation) {
  return {.name = name_of(kind),
          .documentation = documentation,
          .infer = infer<kind>,
          .gradient = rule,
          .kernels = kernel_list<kind>(),
          .sharing = Sharing::reuse,
          .precision = loses_digits(kind) ? MixedPrecision::full : MixedPrecision::given,
          .schema = schema_of(
              names, takes_integers(kind) || keeps_integers(kind) ? Promotion::none : Promotion::floating),
          .onnx = onnx_rule<kind>,
          .dimensions = elementwise};
}

template <Predicate kind>
Op row(const Names& names, std::string_view documentation) {
  return {.name = name_of(kind),
          .documentation = documentation,
          .infer = infer_predicate<kind>,
          .kernels = {with_bfloat16({"reference", any_signature, elements_of_first, run_predicate<kind>})},
          .schema = schema_of(names, kind == Predicate::logical_not ? Promotion::none : Promotion::floating),
          .onnx = onnx_predicate<kind>,
          .dimensions = elementwise};
}

const Value& x_of(const GradientQuery& query) { return query.inputs[0]; }
const Value& y_of(const GradientQuery& query) { return query.outputs[0]; }
const Value& dy_of(const GradientQuery& query) { return query.output_gradients[0]; }

// dy f'(x), with f' written as a value.
template <Value (*derivative)(const GradientQuery&)>
std::vector<Value> times_derivative(const GradientQuery& query) {
  return {times(dy_of(query), derivative(query))};
}

// Steps: flat wherever they have a derivative.
std::vector<Value> flat(const GradientQuery&) { return {Value()}; }

std::vector<Value> neg_rule(const GradientQuery& query) { return {negated(dy_of(query))}; }

// dy / x, dy / (1 + x), dy / (2 y)
std::vector<Value> log_rule(const GradientQuery& query) { return {over(dy_of(query), x_of(query))}; }
std::vector<Value> log1p_rule(const GradientQuery& query) {
  return {over(dy_of(query), plus(x_of(query), scalar_like(x_of(query), 1)))};
}
std::vector<Value> sqrt_rule(const GradientQuery& query) {
  return {over(dy_of(query), times(y_of(query), 2))};
}

Value sign_of_x(const GradientQuery& query) { return apply("sign", {x_of(query)}); }
Value two_x(const GradientQuery& query) { return times(x_of(query), 2); }
Value y_itself(const GradientQuery& query) { return y_of(query); }
Value y_plus_one(const GradientQuery& query) { return plus(y_of(query), scalar_like(y_of(query), 1)); }
Value minus_y_squared(const GradientQuery& query) { return negated(apply("square", {y_of(query)})); }
Value minus_half_y_cubed(const GradientQuery& query) {
  return times(times(y_of(query), apply("square", {y_of(query)})), -0.5);
}
Value bell(const GradientQuery& query) {
  constexpr double two_over_root_pi = 1.1283791670955126;
  return times(apply("exp", {negated(apply("square", {x_of(query)}))}), two_over_root_pi);
}
Value cos_of_x(const GradientQuery& query) { return apply("cos", {x_of(query)}); }
Value minus_sin_of_x(const GradientQuery& query) { return negated(apply("sin", {x_of(query)})); }

std::vector<Op> rows() {
  return {
      row<Unary::neg>(neg_rule, {"Neg", {"neg", "negative"}},
                      "-x. x of any shape and of numbers; y like x. The smallest integer "
                      "stays itself."),
      row<Unary::abs>(times_derivative<sign_of_x>, {"Abs", {"abs", "absolute"}, {{"abs"}}},
                      "|x|. x of any shape and of numbers; y like x. The gradient at 0 is 0."),
      row<Unary::sign>(flat, {"Sign", {"sign"}},
                       "-1, 0 or 1, as x is less than, equal to or greater than 0; NaN stays. x of any shape "
                       "and of numbers; y like x. The gradient is 0."),
      row<Unary::square>(times_derivative<two_x>, {"Square", {"square"}, {{"square"}}},
                         "x x. x of any shape and of numbers (whole ones wrap around); y like x."),
      row<Unary::reciprocal>(times_derivative<minus_y_squared>, {"Reciprocal", {"reciprocal"}},
                             "1 / x. x of any shape, float32 or float64; y like x. 1 / 0 is infinite."),
      row<Unary::sqrt>(sqrt_rule, {"Sqrt", {"sqrt"}, {{"sqrt"}}, "x"},
                       "The square root. x of any shape, float32 or float64; y like x; NaN for x < 0. The "
                       "gradient at 0 is infinite."),
      row<Unary::rsqrt>(times_derivative<minus_half_y_cubed>, {"Rsqrt", {"rsqrt"}},
                        "1 / sqrt(x). x of any shape, float32 or float64; y like x; NaN for x < 0."),
      row<Unary::exp>(times_derivative<y_itself>, {"Exp", {"exp"}, {{"exp"}}},
                      "e^x. x of any shape, float32 or float64; y like x."),
      row<Unary::expm1>(times_derivative<y_plus_one>, {"Expm1", {"expm1"}},
                        "e^x - 1, exact also near 0. x of any shape, float32 or float64; y like x."),
      row<Unary::log>(log_rule, {"Log", {"log"}, {{"log"}}},
                      "The natural logarithm. x of any shape, float32 or float64; y like x; -inf at 0, NaN "
                      "below."),
      row<Unary::log1p>(log1p_rule, {"Log1p", {"log1p"}},
                        "log(1 + x), exact also near 0. x of any shape, float32 or float64; y like x."),
      row<Unary::erf>(times_derivative<bell>, {"Erf", {"erf"}},
                      "The error function 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x. x of any "
                      "shape, float32 or float64; y like x."),
      row<Unary::sin>(times_derivative<cos_of_x>, {"Sin", {"sin"}},
                      "The sine of x in radians. x of any shape, float32 or float64; y like x."),
      row<Unary::cos>(times_derivative<minus_sin_of_x>, {"Cos", {"cos"}},
                      "The cosine of x in radians. x of any shape, float32 or float64; y like x."),
      row<Unary::floor>(
          flat, {"Floor", {"floor"}},
          "The greatest whole number that is not above x. x of any shape, float32 or float64; y "
          "like x. The gradient is 0."),
      row<Unary::ceil>(flat, {"Ceil", {"ceil"}},
                       "The smallest whole number that is not below x. x of any shape, float32 or float64; y "
                       "like x. The gradient is 0."),
      row<Unary::round>(
          flat, {"Round", {}},
          "The nearest whole number, halves to the even one (IEEE 754); whole numbers stay. x of any shape "
          "and of numbers; y like x. The gradient is 0."),
      row<Predicate::isnan>({"IsNan", {"isnan"}},
                            "Whether x is not a number, as bool. x of any shape, float32 or float64."),
      row<Predicate::isinf>({"IsInf", {"isinf"}},
                            "Whether x is infinite, as bool. x of any shape, float32 or float64."),
      row<Predicate::isfinite>(
          {"IsFinite", {"isfinite"}},
          "Whether x is neither infinite nor not a number, as bool. x of any shape, float32 or float64."),
      row<Predicate::logical_not>({"LogicalNot", {"logical_not"}},
                                  "x == 0, as bool. x of any shape and dtype."),
  };
}

}  // namespace unary_rows
}  // namespace

std::vector<const Op*> rows_of_unary() {
  using namespace unary_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
