// Sums, means, extremes and products over axes, and the indices of extremes.
#include <algorithm>

#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace reduce_rows {

using kernels::Reduce;

constexpr std::string_view name_of(Reduce kind) {
  constexpr std::string_view names[] = {"reduce_sum", "reduce_mean", "reduce_max",
                                        "reduce_min", "reduce_prod", "sum_of_squares"};
  return names[static_cast<std::size_t>(kind)];
}

// The axes that are folded: all when none is named. Negative ones count from the end.
Result<std::vector<bool>> folded_axes(std::string_view op, const Shape& shape, const Attributes& attributes) {
  const auto axes = attributes.get("axes", std::vector<std::int64_t>{});
  std::vector<bool> folded(shape.rank(), axes.empty());
  for (const std::int64_t axis : axes) {
    MUSTER_TRY(const std::size_t at, axis_at(op, shape, axis));
    folded[at] = true;
  }
  return folded;
}

// The shape with folded axes kept as 1.
Shape kept(const Shape& shape, const std::vector<bool>& folded) {
  Shape result = shape;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if (folded[axis]) result[axis] = 1;
  return result;
}

template <Reduce kind>
Types infer(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  if (kind != Reduce::mean) MUSTER_TRY_VOID(require_number(name_of(kind), x));
  MUSTER_TRY(const std::vector<bool> folded, folded_axes(name_of(kind), x.shape, signature.attributes));
  std::vector<std::int64_t> sizes;
  bool nothing_folded = false;
  for (std::size_t axis = 0; axis < x.shape.rank(); ++axis) {
    if (!folded[axis]) sizes.push_back(x.shape[axis]);
    nothing_folded = nothing_folded || (folded[axis] && x.shape[axis] == 0);
  }
  if ((kind == Reduce::max || kind == Reduce::min) && nothing_folded)
    return bad("{}: {} has no elements to choose from", name_of(kind), muster::to_string(x.shape));
  const bool keep_dims = signature.attributes.get("keep_dims", false);
  const DType dtype = x.dtype == DType::bool_ ? DType::float32 : x.dtype;  // the part that is true
  return std::vector<TensorType>{{dtype, keep_dims ? kept(x.shape, folded) : Shape(std::move(sizes))}};
}

// `value`, shaped as the result, repeated to the shape of `x`.
Value spread(const Value& value, const Value& x, const Attributes& attributes) {
  const auto folded = folded_axes("reduce", x.shape(), attributes);
  const Value thin = apply("reshape", {value}, {{"shape", kept(x.shape(), *folded).sizes()}});
  return apply("broadcast_to", {thin}, {{"shape", x.shape().sizes()}});
}

std::vector<Value> gradient_sum(const GradientQuery& query) {
  return {spread(query.output_gradients[0], query.inputs[0], query.attributes)};
}

std::vector<Value> gradient_mean(const GradientQuery& query) {
  const double in = static_cast<double>(query.inputs[0].shape().elements());
  const double out = static_cast<double>(std::max<std::int64_t>(1, query.outputs[0].shape().elements()));
  // Scaled before it is spread: there are fewer elements then.
  return {spread(times(query.output_gradients[0], out / in), query.inputs[0], query.attributes)};
}

// Elements that share the extreme share its gradient.
std::vector<Value> gradient_extreme(const GradientQuery& query) {
  const Value& x = query.inputs[0];
  const Value chosen = as_numbers(apply("equal", {x, spread(query.outputs[0], x, query.attributes)}), x);
  const Value share = over(query.output_gradients[0], apply("reduce_sum", {chosen}, query.attributes));
  return {times(chosen, spread(share, x, query.attributes))};
}

std::vector<Value> gradient_prod(const GradientQuery& query) {
  const Value& x = query.inputs[0];
  const auto rule = [&](const Value& dy) {
    const Value floats = is_floating(x.dtype()) ? x : as_numbers(x, dy);
    return apply("reduce_prod_grad", {dy, floats}, query.attributes);
  };
  return {in_floats(query.output_gradients[0], rule)};
}

std::vector<Value> gradient_sum_of_squares(const GradientQuery& query) {
  const Value& x = query.inputs[0];
  return {times(x, spread(times(query.output_gradients[0], 2), x, query.attributes))};
}

struct Settings {
  DType dtype = DType::float32;
  kernels::ReduceLoops loops;
};

Settings settings_for(const TensorType& x, const Attributes& attributes) {
  return {x.dtype, kernels::reduce_loops(x.shape, *folded_axes("reduce", x.shape, attributes))};
}

Prepared prepare(const Signature& signature) {
  return prepared(settings_for(signature.inputs[0], signature.attributes));
}

template <Reduce kind>
void run(const KernelCall& call) {
  const auto& [dtype, loops] = call.setting<Settings>();
  kernels::reduce(kind, dtype, loops, call.inputs[0], call.outputs[0], call.threads);
}

template <Reduce kind>
void run_reference(const KernelCall& call) {
  const auto& [dtype, loops] = call.setting<Settings>();
  kernels::reduce_reference(kind, dtype, loops, call.inputs[0], call.outputs[0]);
}

// Of truth values, as 0 and 1 in float32.
struct TruthSettings {
  std::int64_t count = 0;
  kernels::ReduceLoops loops;
};

Prepared prepare_truth(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const std::int64_t count = x.shape.elements();
  return prepared(TruthSettings{count, settings_for(x, signature.attributes).loops},
                  static_cast<std::size_t>(count) * sizeof(float));
}

void run_truth(const KernelCall& call) {
  const auto& [count, loops] = call.setting<TruthSettings>();
  kernels::cast(call.inputs[0], DType::bool_, call.scratch, DType::float32, count, call.threads);
  kernels::reduce(Reduce::mean, DType::float32, loops, call.scratch, call.outputs[0], call.threads);
}

template <Reduce kind>
std::vector<Kernel> kernel_list() {
  std::vector<Kernel> list{
      taking(arithmetic_and_bfloat16, {"runs", any_signature, prepare, run<kind>}),
      taking(arithmetic_and_bfloat16, {"reference", any_signature, prepare, run_reference<kind>})};
  if (kind == Reduce::mean) list.insert(list.begin(), reference<bool>(prepare_truth, run_truth));
  return list;
}

// In Python the axes are one argument `axis`.
Schema schema_of(Promotion promotion, Alias method, std::vector<Alias> functions,
                 std::string_view primitive) {
  Schema schema{.inputs = {"x"},
                .attributes = {{.name = "axes", .otherwise = std::vector<std::int64_t>{}, .python = "axis"},
                               {.name = "keep_dims", .otherwise = false}},
                .promotion = promotion,
                .methods = {std::move(method)},
                .mindspore = std::move(functions)};
  if (!primitive.empty()) schema.primitives = {{primitive, {"keep_dims"}, {"x", "axis"}}};
  return schema;
}

template <Reduce kind>
Result<> onnx_rule(OnnxCall& call) {
  constexpr const char* types[] = {"ReduceSum", "ReduceMean", "ReduceMax",
                                   "ReduceMin", "ReduceProd", "ReduceSumSquare"};
  const auto axes = call.attributes().get("axes", std::vector<std::int64_t>{});
  OnnxAttributes attributes{{"keepdims", std::int64_t{call.attributes().get("keep_dims", false)}}};
  std::vector<std::string> inputs{call.input()};
  // In opset 17 the axes are an input of the sum, and attributes of the others; without them all are folded.
  if (kind == Reduce::sum && !axes.empty()) inputs.push_back(call.list(axes));
  if (kind != Reduce::sum && !axes.empty()) attributes.push_back({"axes", axes});
  return call.give(types[static_cast<std::size_t>(kind)], std::move(inputs), std::move(attributes));
}

// A product has no rule.
template <Reduce kind>
constexpr auto dimensions_of() -> void (*)(DimensionMap&) {
  if (kind == Reduce::mean) return reduce_mean_dimensions;
  if (kind == Reduce::max) return reduce_max_dimensions;
  if (kind == Reduce::min) return reduce_min_dimensions;
  return kind == Reduce::prod ? nullptr : reduce_dimensions;
}

template <Reduce kind>
Op row(std::vector<Value> (*gradient)(const GradientQuery&), Schema schema, std::string_view documentation) {
  return {.name = name_of(kind),
          .documentation = documentation,
          .infer = infer<kind>,
          .gradient = gradient,
          .kernels = kernel_list<kind>(),
          .precision = kind == Reduce::prod ? MixedPrecision::full : MixedPrecision::given,
          .schema = std::move(schema),
          .onnx = onnx_rule<kind>,
          .dimensions = dimensions_of<kind>()};
}

Types infer_prod_grad(const Signature& signature) {
  MUSTER_TRY_VOID(require_floating("reduce_prod_grad", signature.inputs[1]));
  const auto product = infer<Reduce::prod>({signature.inputs.subspan(1), {}, signature.attributes});
  if (!product) return product;
  if (signature.inputs[0] != (*product)[0])
    return bad("reduce_prod_grad: dy must be {}, not {}", to_string((*product)[0]),
               to_string(signature.inputs[0]));
  return std::vector<TensorType>{signature.inputs[1]};
}

Prepared prepare_prod_grad(const Signature& signature) {
  return prepared(settings_for(signature.inputs[1], signature.attributes));
}

void run_prod_grad(const KernelCall& call) {
  const auto& [dtype, loops] = call.setting<Settings>();
  kernels::prod_grad(dtype, loops, call.inputs[0], call.inputs[1], call.outputs[0], call.threads);
}

Op prod_grad_row() {
  return {
      .name = "reduce_prod_grad",
      .documentation =
          "dx = dy times the product of the other elements, for y = reduce_prod(x) with the same `axes` and "
          "keep_dims; right also where elements are 0.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer_prod_grad,
      .kernels = {{"reference", any_signature, prepare_prod_grad, run_prod_grad}}};
}

// argmax and argmin.
template <bool greatest>
Types infer_arg(const Signature& signature) {
  constexpr std::string_view name = greatest ? "argmax" : "argmin";
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY(const std::size_t axis,
             axis_at(name, x.shape, signature.attributes.get("axis", std::int64_t{-1})));
  if (x.shape[axis] == 0) return bad("{}: {} has an axis without elements", name, muster::to_string(x.shape));
  std::vector<std::int64_t> sizes = x.shape.sizes();
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis));
  return std::vector<TensorType>{{DType::int32, Shape(std::move(sizes))}};
}

struct ArgSettings {
  DType dtype = DType::float32;
  kernels::LineSize lines;
};

Prepared prepare_arg(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const auto axis = axis_at("argmax", x.shape, signature.attributes.get("axis", std::int64_t{-1}));
  return prepared(ArgSettings{x.dtype, kernels::line_size(x.shape, *axis)});
}

template <bool greatest>
void run_arg(const KernelCall& call) {
  const auto& [dtype, lines] = call.setting<ArgSettings>();
  kernels::arg_extreme(greatest, dtype, lines, call.inputs[0], call.output<std::int32_t>(), call.threads);
}

// Of truth values, as 0 and 1.
Prepared prepare_arg_truth(const Signature& signature) {
  Prepared made = prepare_arg(signature);
  made.scratch_bytes = static_cast<std::size_t>(signature.inputs[0].shape.elements()) * sizeof(std::int32_t);
  return made;
}

template <bool greatest>
void run_arg_truth(const KernelCall& call) {
  const auto& lines = call.setting<ArgSettings>().lines;
  kernels::cast(call.inputs[0], DType::bool_, call.scratch, DType::int32,
                lines.outer * lines.size * lines.inner, call.threads);
  kernels::arg_extreme(greatest, DType::int32, lines, call.scratch, call.output<std::int32_t>(),
                       call.threads);
}

template <bool greatest>
Result<> onnx_arg(OnnxCall& call) {
  const std::string found =
      call.make(greatest ? "ArgMax" : "ArgMin", {call.input()},
                {{"axis", call.attributes().get("axis", std::int64_t{-1})}, {"keepdims", std::int64_t{0}}});
  return call.give("Cast", {found}, {{"to", onnx_dtype(DType::int32)}});
}

template <bool greatest>
Op arg_row(std::string_view documentation) {
  return {.name = greatest ? "argmax" : "argmin",
          .documentation = documentation,
          .infer = infer_arg<greatest>,
          .kernels = {reference<bool>(prepare_arg_truth, run_arg_truth<greatest>),
                      taking(arithmetic, {"reference", any_signature, prepare_arg, run_arg<greatest>})},
          .schema = {.inputs = {"x"}, .attributes = {{.name = "axis", .otherwise = std::int64_t{-1}}}},
          .onnx = onnx_arg<greatest>,
          .dimensions = without_axis_dimensions};
}

std::vector<Op> rows() {
  return {
      row<Reduce::sum_of_squares>(
          gradient_sum_of_squares, {},
          "The sum of the squares over `axes` (all when empty; negative ones count from the end), added in "
          "double; summed axes stay as 1 with keep_dims. What clipping by a norm is made from."),
      row<Reduce::sum>(
          gradient_sum, schema_of(Promotion::counting, {"sum", {"axis", "keepdims:keep_dims"}}, {}, ""),
          "The sum over `axes` (all when empty; negative ones count from the end); summed axes stay as "
          "1 with keep_dims. Floating numbers are added in double, whole ones wrap "
          "around; int64 is the sum of bool, uint8 and those with a sign."),
      row<Reduce::mean>(
          gradient_mean, schema_of(Promotion::none, {"mean"}, {{"mean"}, {"reduce_mean"}}, "ReduceMean"),
          "The mean over `axes` (all when empty); averaged axes stay as 1 with keep_dims. Of whole numbers "
          "it is one too, rounded towards zero; of bool float32. The mean of nothing is NaN, or 0."),
      row<Reduce::max>(
          gradient_extreme,
          schema_of(Promotion::none, {"max", {"axis", "keepdims:keep_dims"}}, {{"reduce_max"}}, "ReduceMax"),
          "The greatest element over `axes` (all when empty), NaN if one is; folded axes stay as 1 with "
          "keep_dims. float32, float64, int32, int64. Equal extremes share the gradient."),
      row<Reduce::min>(
          gradient_extreme,
          schema_of(Promotion::none, {"min", {"axis", "keepdims:keep_dims"}}, {{"reduce_min"}}, "ReduceMin"),
          "The smallest element over `axes` (all when empty), NaN if one is; folded axes stay as 1 "
          "with keep_dims. float32, float64, int32, int64. Equal extremes share the gradient."),
      row<Reduce::prod>(
          gradient_prod, schema_of(Promotion::none, {"prod"}, {}, "ReduceProd"),
          "The product over `axes` (all when empty); folded axes stay as 1 with keep_dims. float32, "
          "float64 (multiplied in double), int32, int64 (they wrap around)."),
      prod_grad_row(),
      arg_row<true>(
          "The first index of the greatest element along `axis` (-1 unless set), int32, without that "
          "axis; NaN is greatest. Numbers of any dtype, or bool."),
      arg_row<false>(
          "The first index of the smallest element along `axis` (-1 unless set), int32, without that "
          "axis; NaN is smallest. Numbers of any dtype, or bool."),
  };
}

}  // namespace reduce_rows
}  // namespace

std::vector<const Op*> rows_of_reduce() {
  using namespace reduce_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
