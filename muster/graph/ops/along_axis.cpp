// topk and cumsum.
#include "muster/graph/ops/array.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace along_axis_rows {

// ---- topk ------------------------------------------------------------------------------------------------

Types infer_topk(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const std::int64_t k = signature.attributes.get("k", std::int64_t{0});
  if (x.dtype == DType::bool_) return bad("topk: bool has no order: cast it");
  if (x.shape.rank() == 0) return bad("topk: a scalar has no axis to search");
  if (k < 0 || k > x.shape.sizes().back())
    return bad("topk: {} of the last axis of {} were asked for", k, muster::to_string(x.shape));
  Shape out = x.shape;
  out[out.rank() - 1] = k;
  return std::vector<TensorType>{{x.dtype, out}, {DType::int32, out}};
}

std::vector<Value> gradient_topk(const GradientQuery& query) {
  const Shape& x = query.inputs[0].shape();
  const std::int64_t rows = elements_between(x, 0, x.rank() - 1);
  const std::int64_t columns = x.sizes().back();
  const std::int64_t k = query.outputs[0].shape().sizes().back();
  const auto flat = [&](const Value& value) {
    return apply("reshape", {value}, {{"shape", Sizes{rows, k}}});
  };
  const Value spread =
      apply("scatter_add", {flat(query.outputs[1]), flat(query.output_gradients[0])},
            {{"shape", Sizes{rows, columns}}, {"axis", std::int64_t{1}}, {"batch_dims", std::int64_t{1}}});
  return {apply("reshape", {spread}, {{"shape", x.sizes()}})};
}

Prepared prepare_topk(const Signature& signature) {
  const Shape& x = signature.inputs[0].shape;
  return prepared(kernels::TopkSize{.rows = elements_between(x, 0, x.rank() - 1),
                                    .columns = x.sizes().back(),
                                    .k = signature.outputs[0].shape.sizes().back(),
                                    .largest = signature.attributes.get("largest", true)});
}

template <class T>
void run_topk(const KernelCall& call) {
  kernels::topk(call.setting<kernels::TopkSize>(), call.input<T>(0), call.output<T>(0),
                call.output<std::int32_t>(1));
}

template <class... T>
std::vector<Kernel> topk_kernels() {
  return {reference<T>(prepare_topk, run_topk<T>)...};
}

// ---- cumsum ----------------------------------------------------------------------------------------------

Types infer_cumsum(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY_VOID(require_number("cumsum", x));
  MUSTER_TRY_VOID(axis_of("cumsum", signature.attributes, x.shape));
  return same_as_first(signature);
}

// Element j of x is in the sums from j on: the same sum from the other end.
std::vector<Value> gradient_cumsum(const GradientQuery& query) {
  Attributes attributes = query.attributes;
  attributes.set("reverse", !attributes.get("reverse", false));
  return {apply("cumsum", {query.output_gradients[0]}, attributes)};
}

Prepared prepare_cumsum(const Signature& signature) {
  const Shape& x = signature.inputs[0].shape;
  const auto axis = axis_of("cumsum", signature.attributes, x);
  return prepared(kernels::CumsumSize{.outer = elements_between(x, 0, *axis),
                                      .size = x[*axis],
                                      .inner = elements_between(x, *axis + 1, x.rank()),
                                      .exclusive = signature.attributes.get("exclusive", false),
                                      .reverse = signature.attributes.get("reverse", false)});
}

template <class T>
void run_cumsum(const KernelCall& call) {
  kernels::cumsum(call.setting<kernels::CumsumSize>(), call.input<T>(0), call.output<T>());
}

template <class... T>
std::vector<Kernel> cumsum_kernels() {
  return {reference<T>(prepare_cumsum, run_cumsum<T>)...};
}

// ---- ONNX -------------------------------------------------------------------------------------------------

Result<> onnx_topk(OnnxCall& call) {
  const std::string k = call.list({call.out().type.shape.sizes().back()});
  return call.give_with_indices(
      "TopK", {call.input(), k},
      {{"axis", std::int64_t{-1}}, {"largest", std::int64_t{call.attributes().get("largest", true)}}});
}

Result<> onnx_cumsum(OnnxCall& call) {
  const Shape& x = call.in().type.shape;
  MUSTER_TRY(const std::size_t axis, axis_of("cumsum", call.attributes(), x));
  return call.give("CumSum", {call.input(), call.list({static_cast<std::int64_t>(axis)})},
                   {{"exclusive", std::int64_t{call.attributes().get("exclusive", false)}},
                    {"reverse", std::int64_t{call.attributes().get("reverse", false)}}});
}

}  // namespace along_axis_rows
}  // namespace

const Op& topk_op() {
  using namespace along_axis_rows;
  static const Op op{
      .name = "topk",
      .documentation =
          "The `k` greatest elements of each row (the last axis of x), the greatest first, and their places "
          "(int32); the smallest with largest=false. Of equal ones that with the smaller index comes first, "
          "NaN counts as greatest. Any dtype but bool.",
      .outputs = 2,
      .infer = infer_topk,
      .gradient = gradient_topk,
      .kernels =
          topk_kernels<float, double, std::int32_t, std::int64_t, std::uint8_t, std::uint32_t, std::int8_t>(),
      .onnx = onnx_topk,
      .dimensions = along_axis,
  };
  return op;
}

const Op& cumsum_op() {
  using namespace along_axis_rows;
  static const Op op{
      .name = "cumsum",
      .documentation =
          "Running sums along `axis` (0, negative ones count from the end): y[i] = x[0] + ... + x[i], "
          "without x[i] when `exclusive`, from the other end when `reverse`. Numbers of any "
          "dtype; whole ones wrap around.",
      .infer = infer_cumsum,
      .gradient = gradient_cumsum,
      .kernels = cumsum_kernels<float, double, std::int32_t, std::int64_t>(),
      .precision = MixedPrecision::full,
      .schema =
          {.inputs = {"x"},
           .attributes = {{.name = "axis", .otherwise = std::int64_t{0}, .required = true},
                          {.name = "dtype", .otherwise = DType::float32, .optional = true, .casts = true},
                          {.name = "exclusive", .otherwise = false},
                          {.name = "reverse", .otherwise = false}},
           .mindspore = {{"cumsum", {"x", "axis", "dtype"}}},
           .primitives = {{"CumSum", {"exclusive", "reverse"}, {"input", "axis"}}}},
      .onnx = onnx_cumsum,
      .dimensions = along_first_axis,
  };
  return op;
}

std::vector<const Op*> rows_of_along_axis() { return {&topk_op(), &cumsum_op()}; }

}  // namespace muster::graph
