// Arithmetic, comparisons and logic of two tensors, with numpy's broadcasting.
#include <optional>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace binary_rows {

using kernels::Binary;
using kernels::Comparison;

constexpr std::string_view name_of(Binary kind) {
  constexpr std::string_view names[] = {"add",     "sub",     "mul",       "div", "pow",
                                        "maximum", "minimum", "floor_div", "mod"};
  static_assert(std::size(names) == static_cast<std::size_t>(Binary::mod) + 1);
  return names[static_cast<std::size_t>(kind)];
}

constexpr std::string_view name_of(Comparison kind) {
  constexpr std::string_view names[] = {"equal",   "not_equal",     "less",        "less_equal",
                                        "greater", "greater_equal", "logical_and", "logical_or"};
  static_assert(std::size(names) == static_cast<std::size_t>(Comparison::logical_or) + 1);
  return names[static_cast<std::size_t>(kind)];
}

Result<Shape> shape_of_pair(std::string_view op, const Signature& signature) {
  MUSTER_TRY_VOID(require_equal_dtypes(op, signature));
  const Shape& a = signature.inputs[0].shape;
  const Shape& b = signature.inputs[1].shape;
  if (const auto shape = broadcast_shape(a, b)) return *shape;
  return bad("{}: {} and {} do not fit together", op, muster::to_string(a), muster::to_string(b));
}

// Of truth values: what the op makes of 0 and 1, and of 1 + 1 and 0 - 1 makes true.
constexpr std::optional<Comparison> of_truth(Binary kind) {
  if (kind == Binary::add || kind == Binary::maximum) return Comparison::logical_or;
  if (kind == Binary::mul || kind == Binary::minimum) return Comparison::logical_and;
  if (kind == Binary::sub) return Comparison::not_equal;
  return std::nullopt;
}

template <Binary kind>
Types infer(const Signature& signature) {
  MUSTER_TRY(Shape shape, shape_of_pair(name_of(kind), signature));
  if (!of_truth(kind)) MUSTER_TRY_VOID(require_number(name_of(kind), signature.inputs[0]));
  return std::vector<TensorType>{{signature.inputs[0].dtype, std::move(shape)}};
}

template <Comparison kind>
Types infer_comparison(const Signature& signature) {
  MUSTER_TRY(Shape shape, shape_of_pair(name_of(kind), signature));
  return std::vector<TensorType>{{DType::bool_, std::move(shape)}};
}

// By a: b a^(b-1), 0 where b is 0 whatever a is. By b: a^b log(a); where a <= 0 the logarithm has nothing to
// say, and for whole numbers it is none.
std::vector<Value> pow_gradients(const Value& a, const Value& b, const Value& y, const Value& g) {
  const Value one = scalar_like(b, 1);
  const Value flat = apply("equal", {b, scalar_like(b, 0)});
  const Value lower = apply("pow", {a, apply("select", {flat, one, minus(b, one)})});
  if (!is_floating(a.dtype())) return {times(g, times(b, lower)), Value()};
  const Value positive = apply("greater", {a, scalar_like(a, 0)});
  const Value log_a = apply("log", {apply("select", {positive, a, scalar_like(a, 1)})});
  return {times(g, times(b, lower)), times(g, times(y, log_a))};
}

// To the one that is chosen; equals share.
std::vector<Value> choice_gradients(std::string_view chosen, const Value& a, const Value& b, const Value& g) {
  const Value equal = apply("equal", {a, b});
  const Value half = times(g, 0.5);
  const auto share = [&](const Value& mine, const Value& other) {
    return apply("select", {equal, half, where(apply(chosen, {mine, other}), g)});
  };
  return {share(a, b), share(b, a)};
}

template <Binary kind>
std::vector<Value> unreduced_gradients(const Value& a, const Value& b, const Value& y, const Value& g) {
  if constexpr (kind == Binary::add) return {g, g};
  if constexpr (kind == Binary::sub) return {g, negated(g)};
  if constexpr (kind == Binary::mul) return {times(g, b), times(g, a)};
  if constexpr (kind == Binary::div) return {over(g, b), negated(times(g, over(y, b)))};
  if constexpr (kind == Binary::pow) return pow_gradients(a, b, y, g);
  if constexpr (kind == Binary::mod) return {g, negated(times(g, apply("floor_div", {a, b})))};
  if constexpr (kind == Binary::maximum) return choice_gradients("greater", a, b, g);
  if constexpr (kind == Binary::minimum) return choice_gradients("less", a, b, g);
  return {Value(), Value()};  // floor_div is flat
}

template <Binary kind>
std::vector<Value> gradient(const GradientQuery& query) {
  const Value& a = query.inputs[0];
  const Value& b = query.inputs[1];
  std::vector<Value> made = unreduced_gradients<kind>(a, b, query.outputs[0], query.output_gradients[0]);
  if (made[0].defined()) made[0] = summed_like(made[0], a);
  if (made[1].defined()) made[1] = summed_like(made[1], b);
  return made;
}

struct Settings {
  DType dtype = DType::float32;
  kernels::BroadcastLoops loops;
};

// What is zero in the padding of a format stays zero.
template <auto kind>
constexpr bool keeps_formats() {
  if constexpr (std::is_same_v<decltype(kind), Binary>)
    return kind == Binary::add || kind == Binary::sub || kind == Binary::mul;
  return false;
}

template <auto kind>
Prepared prepare(const Signature& signature) {
  const DType dtype = signature.inputs[0].dtype;
  if (const FormatPtr format = common_format(signature); format != nullptr && keeps_formats<kind>()) {
    const Shape flat{elements_in(format, signature)};
    const Shape both[] = {flat, flat};
    return in_format(prepared(Settings{dtype, kernels::broadcast_loops(flat, both)}), signature, format);
  }
  const Shape operands[] = {signature.inputs[0].shape, signature.inputs[1].shape};
  return prepared(Settings{dtype, kernels::broadcast_loops(signature.outputs[0].shape, operands)});
}

struct ReferenceSettings {
  DType dtype = DType::float32;
  std::array<Shape, 3> shapes;
};

Prepared prepare_reference(const Signature& signature) {
  return prepared(
      ReferenceSettings{signature.inputs[0].dtype,
                        {signature.inputs[0].shape, signature.inputs[1].shape, signature.outputs[0].shape}});
}

kernels::Pair pair_of(const KernelCall& call) { return {call.inputs[0], call.inputs[1], call.outputs[0]}; }

template <auto kind>
void run(const KernelCall& call) {
  const auto& [dtype, loops] = call.setting<Settings>();
  if constexpr (std::is_same_v<decltype(kind), Binary>) {
    if (dtype == DType::bool_)
      return kernels::compare(*of_truth(kind), dtype, loops, pair_of(call), call.threads);
    kernels::binary(kind, dtype, loops, pair_of(call), call.threads);
  } else {
    kernels::compare(kind, dtype, loops, pair_of(call), call.threads);
  }
}

template <auto kind>
void run_reference(const KernelCall& call) {
  const auto& [dtype, shapes] = call.setting<ReferenceSettings>();
  if constexpr (std::is_same_v<decltype(kind), Binary>) {
    if (dtype == DType::bool_)
      return kernels::compare_reference(*of_truth(kind), dtype, shapes, pair_of(call));
    kernels::binary_reference(kind, dtype, shapes, pair_of(call));
  } else {
    kernels::compare_reference(kind, dtype, shapes, pair_of(call));
  }
}

constexpr DTypes dtypes_of(Binary) { return arithmetic_and_bfloat16 | DTypes{DType::uint64, DType::bool_}; }
constexpr DTypes dtypes_of(Comparison) { return Kernel{}.takes | DTypes{DType::bfloat16, DType::uint64}; }

template <auto kind>
std::vector<Kernel> kernel_list() {
  return {taking(dtypes_of(kind), {"runs", any_signature, prepare<kind>, run<kind>}),
          taking(dtypes_of(kind), {"reference", any_signature, prepare_reference, run_reference<kind>})};
}

// Where scripts written for MindSpore find it.
struct Names {
  std::vector<std::string_view> primitives;
  std::vector<Alias> functions;
  std::vector<Alias> methods = {};
};

Schema schema_of(const Names& names, Promotion promotion) {
  Schema schema{
      .inputs = {"a", "b"}, .promotion = promotion, .methods = names.methods, .mindspore = names.functions};
  for (const std::string_view name : names.primitives) schema.primitives.push_back({name});
  return schema;
}

// Functions of `input` and `other`.
std::vector<Alias> named(std::initializer_list<std::string_view> names) {
  std::vector<Alias> made;
  for (const std::string_view name : names) made.push_back({name, {"input", "other"}});
  return made;
}

constexpr const char* onnx_type(Binary kind) {
  constexpr const char* types[] = {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Floor", "Mod"};
  static_assert(std::size(types) == static_cast<std::size_t>(Binary::mod) + 1);
  return types[static_cast<std::size_t>(kind)];
}

template <Binary kind>
Result<> onnx_rule(OnnxCall& call) {
  const bool is_whole = !is_floating(call.in().type.dtype);
  const auto floor_of_quotient = [&call] {
    return call.make("Floor", {call.make("Div", call.all_inputs())});
  };
  if (kind == Binary::floor_div && is_whole)
    return call.refuse(
        "whole numbers are rounded towards zero by ONNX's Div, not down: cast them to float32");
  if (kind == Binary::floor_div) return call.give("Floor", {call.make("Div", call.all_inputs())});
  // ONNX's Mod has the sign of the divisor for whole numbers only.
  if (kind == Binary::mod && !is_whole)
    return call.give("Sub", {call.input(0), call.make("Mul", {call.input(1), floor_of_quotient()})});
  return call.give(onnx_type(kind), call.all_inputs());
}

constexpr const char* onnx_type(Comparison kind) {
  constexpr const char* types[] = {"Equal",          "Not", "Less", "LessOrEqual", "Greater",
                                   "GreaterOrEqual", "And", "Or"};
  static_assert(std::size(types) == static_cast<std::size_t>(Comparison::logical_or) + 1);
  return types[static_cast<std::size_t>(kind)];
}

template <Comparison kind>
Result<> onnx_comparison(OnnxCall& call) {
  std::vector<std::string> inputs = call.all_inputs();
  if constexpr (kind == Comparison::not_equal) return call.give("Not", {call.make("Equal", inputs)});
  if constexpr (kind == Comparison::logical_and || kind == Comparison::logical_or)
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (call.in(i).type.dtype != DType::bool_) inputs[i] = call.cast(inputs[i], DType::bool_);
  return call.give(onnx_type(kind), std::move(inputs));
}

template <Binary kind>
Op row(const Names& names, std::string_view documentation) {
  return {.name = name_of(kind),
          .documentation = documentation,
          .inputs_min = 2,
          .inputs_max = 2,
          .infer = infer<kind>,
          .gradient = gradient<kind>,
          .kernels = kernel_list<kind>(),
          .sharing = Sharing::reuse,
          .precision = kind == Binary::pow ? MixedPrecision::full : MixedPrecision::given,
          .schema = schema_of(names, kind == Binary::div ? Promotion::common_floating : Promotion::common),
          .onnx = onnx_rule<kind>,
          .dimensions = elementwise};
}

template <Comparison kind>
Op row(const Names& names, std::string_view documentation) {
  return {.name = name_of(kind),
          .documentation = documentation,
          .inputs_min = 2,
          .inputs_max = 2,
          .infer = infer_comparison<kind>,
          .kernels = kernel_list<kind>(),
          .schema = schema_of(names, Promotion::common),
          .onnx = onnx_comparison<kind>,
          .dimensions = elementwise};
}

const std::vector<Op>& family() {
  static const std::vector<Op> rows = {
      row<Binary::add>({{"Add"}, named({"add"})},
                       "a + b, shapes broadcast; numbers of any dtype; of bool whether one is true."),
      row<Binary::sub>({{"Sub"}, named({"sub"})},
                       "a - b, shapes broadcast; numbers of any dtype; of bool whether they differ."),
      row<Binary::mul>({{"Mul"}, named({"mul", "multiply"})},
                       "a b, shapes broadcast; numbers of any dtype; of bool whether both are true."),
      row<Binary::div>(
          {{"Div"}, {{"true_divide", {"dividend", "divisor"}}}},
          "a / b, shapes broadcast; numbers of any dtype. Integers round towards zero, x / 0 is 0."),
      row<Binary::pow>({{"Pow"}, {{"pow", {"input", "exponent"}}}, {{"pow", {"exponent"}}}},
                       "a^b, shapes broadcast; numbers of any dtype. Negative powers of integers round "
                       "towards zero. Where a <= 0 the gradient by b is 0."),
      row<Binary::maximum>({{"Maximum"}, named({"maximum"})},
                           "The greater of a and b, NaN if one is; shapes broadcast; numbers of any dtype. "
                           "Equals share the gradient."),
      row<Binary::minimum>({{"Minimum"}, named({"minimum"})},
                           "The smaller of a and b, NaN if one is; shapes broadcast; numbers of any dtype. "
                           "Equals share the gradient."),
      row<Binary::floor_div>(
          {{"FloorDiv"}, {{"floor_divide", {"input", "other"}}, {"floor_div", {"x", "y"}}}},
          "a / b rounded down, shapes broadcast; numbers of any dtype. Integers by 0 "
          "give 0. The gradient is 0."),
      row<Binary::mod>({{"FloorMod"}, {{"remainder", {"input", "other"}}, {"floor_mod", {"x", "y"}}}},
                       "a - b floor(a / b), with the sign of b; shapes broadcast; numbers of any dtype. "
                       "Integers by 0 give 0. Source: Knuth, The Art of Computer Programming, 1.2.4."),
      row<Comparison::equal>(
          {{"Equal"}, named({"equal", "eq"})},
          "a == b as bool, shapes broadcast, any dtype that both have. NaN equals nothing."),
      row<Comparison::not_equal>(
          {{"NotEqual"}, named({"not_equal", "ne"})},
          "a != b as bool, shapes broadcast, any dtype that both have. NaN equals nothing."),
      row<Comparison::less>({{"Less"}, named({"less", "lt"})},
                            "a < b as bool, shapes broadcast, any dtype that both have. False with NaN."),
      row<Comparison::less_equal>(
          {{"LessEqual"}, named({"less_equal", "le"})},
          "a <= b as bool, shapes broadcast, any dtype that both have. False with NaN."),
      row<Comparison::greater>({{"Greater"}, named({"greater", "gt"})},
                               "a > b as bool, shapes broadcast, any dtype that both have. False with NaN."),
      row<Comparison::greater_equal>(
          {{"GreaterEqual"}, named({"greater_equal", "ge"})},
          "a >= b as bool, shapes broadcast, any dtype that both have. False with NaN."),
      row<Comparison::logical_and>(
          {{"LogicalAnd"}, named({"logical_and"})},
          "Whether both a and b are true (not 0), as bool; shapes broadcast, any dtype that both have."),
      row<Comparison::logical_or>(
          {{"LogicalOr"}, named({"logical_or"})},
          "Whether a or b is true (not 0), as bool; shapes broadcast, any dtype that both have."),
  };
  return rows;
}

}  // namespace binary_rows
}  // namespace

std::vector<const Op*> rows_of_binary() {
  using namespace binary_rows;
  return addresses(family());
}
const Op& add_op() {
  using namespace binary_rows;
  return family()[0];
}

}  // namespace muster::graph
