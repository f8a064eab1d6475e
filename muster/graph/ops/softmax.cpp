// softmax and log_softmax along an axis.
#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace softmax_rows {

constexpr std::string_view name_of(bool logarithm) { return logarithm ? "log_softmax" : "softmax"; }
constexpr std::string_view grad_name_of(bool logarithm) {
  return logarithm ? "log_softmax_grad" : "softmax_grad";
}

Result<std::size_t> axis_of(std::string_view op, const Signature& signature) {
  return axis_at(op, signature.inputs[0].shape, signature.attributes.get("axis", std::int64_t{-1}));
}

template <bool logarithm>
Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(require_floating(name_of(logarithm), signature.inputs[0]));
  MUSTER_TRY_VOID(axis_of(name_of(logarithm), signature));
  return same_as_first(signature);
}

template <bool logarithm>
Types infer_grad(const Signature& signature) {
  if (signature.inputs[0] != signature.inputs[1])
    return bad("{}: dy {} and y {} must be alike", grad_name_of(logarithm), to_string(signature.inputs[0]),
               to_string(signature.inputs[1]));
  return infer<logarithm>(signature);
}

template <bool logarithm>
std::vector<Value> gradient(const GradientQuery& query) {
  return {apply(grad_name_of(logarithm), {query.output_gradients[0], query.outputs[0]}, query.attributes)};
}

// The sum along the axis, which stays as 1.
Value line_sum(const Value& x, const Attributes& attributes) {
  const std::int64_t axis = attributes.get("axis", std::int64_t{-1});
  return apply("reduce_sum", {x}, {{"axes", std::vector<std::int64_t>{axis}}, {"keep_dims", true}});
}

// Of dx = y (dy - sum(dy y)): the map from dy is its own transpose.
std::vector<Value> gradient_of_softmax_grad(const GradientQuery& query) {
  const Value& g = query.output_gradients[0];
  const Value& dy = query.inputs[0];
  const Value& y = query.inputs[1];
  const auto along_y = [&](const Value& x) { return line_sum(times(x, y), query.attributes); };
  return {apply("softmax_grad", {g, y}, query.attributes),
          minus(times(g, minus(dy, along_y(dy))), times(dy, along_y(g)))};
}

// Of dx = dy - e^y sum(dy).
std::vector<Value> gradient_of_log_softmax_grad(const GradientQuery& query) {
  const Value& g = query.output_gradients[0];
  const Value weighted = times(g, apply("exp", {query.inputs[1]}));
  return {minus(g, line_sum(weighted, query.attributes)),
          negated(times(weighted, line_sum(query.inputs[0], query.attributes)))};
}

struct Settings {
  DType dtype = DType::float32;
  kernels::LineSize lines;
};

Prepared prepare(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  return prepared(Settings{x.dtype, kernels::line_size(x.shape, *axis_of("softmax", signature))});
}

// Of the vector functions: lines of neighbours.
Prepared prepare_vector(const Signature& signature) {
  const auto [outer, size, inner] =
      kernels::line_size(signature.inputs[0].shape, *axis_of("softmax", signature));
  Prepared made = prepared(kernels::VectorLines{.rows = outer, .columns = size});
  made.declined = inner != 1;
  return made;
}

template <bool logarithm>
void run_vector(const KernelCall& call) {
  kernels::vector_softmax(kernels::vector_math().front(), logarithm, call.setting<kernels::VectorLines>(),
                          call.input<float>(0), call.output<float>(), call.threads);
}

template <bool logarithm>
void run_vector_grad(const KernelCall& call) {
  kernels::vector_softmax_grad(kernels::vector_math().front(), logarithm,
                               call.setting<kernels::VectorLines>(), call.input<float>(0),
                               call.input<float>(1), call.output<float>(), call.threads);
}

std::vector<Kernel> kernel_list(void (*run_vector)(const KernelCall&), void (*run)(const KernelCall&)) {
  return {{kernels::vector_math().front().name, first_is<float>, prepare_vector, run_vector},
          {"reference", any_signature, prepare, run}};
}

template <bool logarithm>
void run(const KernelCall& call) {
  const auto& [dtype, lines] = call.setting<Settings>();
  kernels::softmax(logarithm, dtype, lines, call.inputs[0], call.outputs[0], call.threads);
}

template <bool logarithm>
void run_grad(const KernelCall& call) {
  const auto& [dtype, lines] = call.setting<Settings>();
  kernels::softmax_grad(logarithm, dtype, lines, call.inputs[0], call.inputs[1], call.outputs[0],
                        call.threads);
}

Schema schema_of(bool logarithm) {
  Schema schema{.inputs = {"x"},
                .attributes = {{.name = "axis", .otherwise = std::int64_t{-1}}},
                .promotion = Promotion::floating,
                .primitives = {{logarithm ? "LogSoftmax" : "Softmax", {"axis"}}}};
  if (logarithm) schema.mindspore = {{"log_softmax", {"logits", "axis"}}};
  return schema;
}

template <bool logarithm>
Result<> onnx_rule(OnnxCall& call) {
  return call.give(logarithm ? "LogSoftmax" : "Softmax", {call.input()},
                   {{"axis", call.attributes().get("axis", std::int64_t{-1})}});
}

template <bool logarithm>
Op row(std::string_view documentation) {
  return {.name = name_of(logarithm),
          .documentation = documentation,
          .infer = infer<logarithm>,
          .gradient = gradient<logarithm>,
          .kernels = kernel_list(run_vector<logarithm>, run<logarithm>),
          .sharing = Sharing::reuse,
          .precision = MixedPrecision::full,
          .schema = schema_of(logarithm),
          .onnx = onnx_rule<logarithm>,
          .dimensions = along_axis};
}

template <bool logarithm>
Op grad_row(std::string_view documentation) {
  return {.name = grad_name_of(logarithm),
          .documentation = documentation,
          .inputs_min = 2,
          .inputs_max = 2,
          .infer = infer_grad<logarithm>,
          .gradient = logarithm ? gradient_of_log_softmax_grad : gradient_of_softmax_grad,
          .kernels = kernel_list(run_vector_grad<logarithm>, run_grad<logarithm>),
          .sharing = Sharing::reuse,
          .dimensions = along_axis};
}

std::vector<Op> rows() {
  return {
      row<false>("y = e^x / sum(e^x) along `axis` (-1 unless set); at least one axis, float32 or float64; y "
                 "like x."),
      row<true>("y = x - log(sum(e^x)) along `axis` (-1 unless set); at least one axis, float32 or float64; "
                "y like x."),
      grad_row<false>("dx = y (dy - sum(dy y)) along `axis`, for y = softmax(x)."),
      grad_row<true>("dx = dy - e^y sum(dy) along `axis`, for y = log_softmax(x).")};
}

}  // namespace softmax_rows
}  // namespace

std::vector<const Op*> rows_of_softmax() {
  using namespace softmax_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
