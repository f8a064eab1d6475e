// transpose, slice, pad and broadcast_to: the same elements at other places, by one kernel for any dtype.
#include <array>
#include <limits>

#include "muster/graph/ops/array.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace copy_rows {

using kernels::StridedCopy;

struct Settings {
  StridedCopy copy;
  std::size_t element_bytes = 0;
  // pad alone: what the output is full of before the elements come.
  std::int64_t filled = 0;
  std::array<std::byte, 8> value{};
};

Prepared copying(const Signature& signature, const StridedCopy& copy) {
  return prepared(Settings{kernels::simplified(copy), size_bytes(signature.outputs[0].dtype)});
}

void run(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  kernels::fill_elements(settings.value.data(), settings.element_bytes, call.outputs[0], settings.filled);
  kernels::strided_copy(settings.copy, call.inputs[0], call.outputs[0], settings.element_bytes, call.threads);
}

std::int64_t dot(const Sizes& a, const Sizes& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Sizes times(Sizes a, const Sizes& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] *= b[i];
  return a;
}

// ---- transpose -------------------------------------------------------------------------------------------

Types infer_transpose(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const Sizes perm = sizes_of(signature.attributes, "perm");
  const auto rank = static_cast<std::int64_t>(x.shape.rank());
  std::vector<bool> seen(x.shape.rank(), false);
  Sizes sizes;
  bool complete = perm.size() == x.shape.rank();
  for (std::size_t i = 0; complete && i < perm.size(); ++i) {
    complete = perm[i] >= 0 && perm[i] < rank && !seen[static_cast<std::size_t>(perm[i])];
    if (!complete) break;
    seen[static_cast<std::size_t>(perm[i])] = true;
    sizes.push_back(x.shape[static_cast<std::size_t>(perm[i])]);
  }
  if (!complete)
    return bad("transpose: {} needs an order that names each of its {} axes once, not {}",
               muster::to_string(x.shape), rank, graph::to_string(Attribute(perm)));
  return std::vector<TensorType>{{x.dtype, Shape(std::move(sizes))}};
}

std::vector<Value> gradient_transpose(const GradientQuery& query) {
  const Sizes perm = sizes_of(query.attributes, "perm");
  Sizes back(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    back[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  return {apply("transpose", {query.output_gradients[0]}, {{"perm", back}})};
}

Prepared prepare_transpose(const Signature& signature) {
  const Shape& out = signature.outputs[0].shape;
  const Sizes strides = kernels::row_major_strides(signature.inputs[0].shape);
  Sizes from;
  for (const std::int64_t axis : sizes_of(signature.attributes, "perm"))
    from.push_back(strides[static_cast<std::size_t>(axis)]);
  return copying(
      signature,
      {.sizes = out.sizes(), .from_strides = std::move(from), .to_strides = kernels::row_major_strides(out)});
}

// ---- slice and pad: each undoes the other ----------------------------------------------------------------

Sizes strides_of(const Attributes& attributes, std::size_t rank) {
  return attributes.get("strides", Sizes(rank, 1));
}

// begin, begin + stride, ... (`count` of them) must be elements of an axis of `size`.
Result<> check_axis(std::string_view op, const Shape& shape, std::size_t axis, std::int64_t begin,
                    std::int64_t count, std::int64_t stride) {
  const std::int64_t last = begin + (count - 1) * stride;
  const bool inside = count == 0 || (begin >= 0 && begin < shape[axis] && last >= 0 && last < shape[axis]);
  if (count >= 0 && stride != 0 && inside) return {};
  return bad("{}: {} elements from {} in steps of {} do not lie in axis {} of {}, which has {}", op, count,
             begin, stride, axis, muster::to_string(shape), shape[axis]);
}

Types infer_slice(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const std::size_t rank = x.shape.rank();
  const Sizes begin = sizes_of(signature.attributes, "begin");
  const Sizes size = sizes_of(signature.attributes, "size");
  const Sizes strides = strides_of(signature.attributes, rank);
  if (begin.size() != rank || size.size() != rank || strides.size() != rank)
    return bad("slice: {} needs begin, size and strides for each of its {} axes", muster::to_string(x.shape),
               rank);
  for (std::size_t axis = 0; axis < rank; ++axis)
    MUSTER_TRY_VOID(check_axis("slice", x.shape, axis, begin[axis], size[axis], strides[axis]));
  return std::vector<TensorType>{{x.dtype, Shape(size)}};
}

Types infer_pad(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const std::size_t rank = x.shape.rank();
  const Shape shape(sizes_of(signature.attributes, "shape"));
  const Sizes begin = sizes_of(signature.attributes, "begin");
  const Sizes strides = strides_of(signature.attributes, rank);
  if (shape.rank() != rank || begin.size() != rank || strides.size() != rank)
    return bad("pad: {} needs shape, begin and strides for each of its {} axes", muster::to_string(x.shape),
               rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (shape[axis] < 0) return bad("pad: {} has a negative size", muster::to_string(shape));
    MUSTER_TRY_VOID(check_axis("pad", shape, axis, begin[axis], x.shape[axis], strides[axis]));
  }
  return std::vector<TensorType>{{x.dtype, shape}};
}

std::vector<Value> gradient_slice(const GradientQuery& query) {
  const Shape& shape = query.inputs[0].shape();
  return {apply("pad", {query.output_gradients[0]},
                {{"shape", shape.sizes()},
                 {"begin", sizes_of(query.attributes, "begin")},
                 {"strides", strides_of(query.attributes, shape.rank())}})};
}

std::vector<Value> gradient_pad(const GradientQuery& query) {
  const Shape& shape = query.inputs[0].shape();
  return {apply("slice", {query.output_gradients[0]},
                {{"size", shape.sizes()},
                 {"begin", sizes_of(query.attributes, "begin")},
                 {"strides", strides_of(query.attributes, shape.rank())}})};
}

Prepared prepare_slice(const Signature& signature) {
  const Shape& out = signature.outputs[0].shape;
  const Sizes steps = kernels::row_major_strides(signature.inputs[0].shape);
  return copying(signature, {.sizes = out.sizes(),
                             .from_strides = times(steps, strides_of(signature.attributes, out.rank())),
                             .to_strides = kernels::row_major_strides(out),
                             .from_begin = dot(steps, sizes_of(signature.attributes, "begin"))});
}

Prepared prepare_pad(const Signature& signature) {
  const TensorType& out = signature.outputs[0];
  const Shape& in = signature.inputs[0].shape;
  const Sizes steps = kernels::row_major_strides(out.shape);
  Settings settings{
      kernels::simplified({.sizes = in.sizes(),
                           .from_strides = kernels::row_major_strides(in),
                           .to_strides = times(steps, strides_of(signature.attributes, in.rank())),
                           .to_begin = dot(steps, sizes_of(signature.attributes, "begin"))}),
      size_bytes(out.dtype), out.shape.elements()};
  const double value = signature.attributes.get("value", 0.0);
  kernels::cast(&value, DType::float64, settings.value.data(), out.dtype, 1);
  return prepared(std::move(settings));
}

// ---- broadcast_to ----------------------------------------------------------------------------------------

Types infer_broadcast_to(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const Shape shape(sizes_of(signature.attributes, "shape"));
  if (!broadcasts_to(x.shape, shape))
    return bad("broadcast_to: {} cannot be repeated to {}", muster::to_string(x.shape),
               muster::to_string(shape));
  return std::vector<TensorType>{{x.dtype, shape}};
}

std::vector<Value> gradient_broadcast_to(const GradientQuery& query) {
  return {summed_like(query.output_gradients[0], query.inputs[0])};
}

Prepared prepare_broadcast_to(const Signature& signature) {
  const Shape& in = signature.inputs[0].shape;
  const Shape& out = signature.outputs[0].shape;
  const Sizes steps = kernels::row_major_strides(in);
  Sizes from(out.rank(), 0);
  for (std::size_t back = 1; back <= in.rank(); ++back)
    if (in[in.rank() - back] != 1) from[out.rank() - back] = steps[in.rank() - back];
  return copying(
      signature,
      {.sizes = out.sizes(), .from_strides = std::move(from), .to_strides = kernels::row_major_strides(out)});
}

// ---- ONNX -------------------------------------------------------------------------------------------------

Result<> onnx_transpose(OnnxCall& call) {
  return call.give("Transpose", {call.input()}, {{"perm", sizes_of(call.attributes(), "perm")}});
}

// The end of an axis, on either side.
constexpr std::int64_t beyond = std::numeric_limits<std::int64_t>::max();

Result<> onnx_slice(OnnxCall& call) {
  const Shape& in = call.in().type.shape;
  const Sizes begin = sizes_of(call.attributes(), "begin");
  const Sizes size = sizes_of(call.attributes(), "size");
  const Sizes strides = strides_of(call.attributes(), in.rank());
  Sizes starts, ends, axes, steps;
  for (std::size_t axis = 0; axis < in.rank(); ++axis) {
    const bool is_whole = begin[axis] == 0 && size[axis] == in[axis] && strides[axis] == 1;
    if (is_whole) continue;
    if (call.in().open[axis]) return call.refuse("it takes a part of the batch, whose size is open");
    const std::int64_t end = begin[axis] + size[axis] * strides[axis];
    starts.push_back(begin[axis]);
    ends.push_back(end < 0 ? -beyond : end);
    axes.push_back(static_cast<std::int64_t>(axis));
    steps.push_back(strides[axis]);
  }
  if (axes.empty()) return call.give("Identity", {call.input()});
  return call.give("Slice",
                   {call.input(), call.list(starts), call.list(ends), call.list(axes), call.list(steps)});
}

Result<> onnx_pad(OnnxCall& call) {
  const Shape& in = call.in().type.shape;
  const Shape& out = call.out().type.shape;
  const Sizes begin = sizes_of(call.attributes(), "begin");
  Sizes pads = begin;
  for (std::size_t axis = 0; axis < in.rank(); ++axis) pads.push_back(out[axis] - begin[axis] - in[axis]);
  if (strides_of(call.attributes(), in.rank()) != Sizes(in.rank(), 1))
    return call.refuse("it leaves gaps between elements");
  if (call.in().open != call.out().open) return call.refuse("it fills up the batch, whose size is open");
  return call.give("Pad", {call.input(), call.list(pads),
                           call.scalar(call.attributes().get("value", 0.0), call.in().type.dtype)});
}

Result<> onnx_broadcast_to(OnnxCall& call) {
  const OnnxCall::End& in = call.in();
  OnnxCall::End out = call.out();
  const std::size_t added = out.type.shape.rank() - in.type.shape.rank();
  // An axis that stays as it is may have any size.
  for (std::size_t axis = added; axis < out.type.shape.rank(); ++axis) {
    if (in.type.shape[axis - added] != out.type.shape[axis]) continue;
    out.type.shape[axis] = 1;
    out.open[axis] = false;
  }
  MUSTER_TRY(const std::string shape, call.shape_of(out));
  return call.give("Expand", {call.input(), shape});
}

}  // namespace copy_rows
}  // namespace

const Op& transpose_op() {
  using namespace copy_rows;
  static const Op op{
      .name = "transpose",
      .documentation = "y[i...] with axis j of y being axis perm[j] of x (not negative); any dtype.",
      .infer = infer_transpose,
      .gradient = gradient_transpose,
      .kernels = {for_any_dtype({"reference", any, prepare_transpose, run})},
      .onnx = onnx_transpose,
      .dimensions = transpose_dimensions,
  };
  return op;
}

const Op& slice_op() {
  using namespace copy_rows;
  static const Op op{
      .name = "slice",
      .documentation =
          "Along each axis the `size` elements at begin, begin + stride, ...; strides are 1 when not given "
          "and may be negative, begins count from the front. y has shape `size`; any dtype. Its gradient is "
          "pad.",
      .infer = infer_slice,
      .gradient = gradient_slice,
      .kernels = {for_any_dtype({"reference", any, prepare_slice, run})},
      .onnx = onnx_slice,
      .dimensions = slice_dimensions,
  };
  return op;
}

const Op& pad_op() {
  using namespace copy_rows;
  static const Op op{
      .name = "pad",
      .documentation =
          "A tensor of `shape` full of `value` (0), with x in it: along each axis its elements go to begin, "
          "begin + stride, ... (strides are 1 when not given). Any dtype. Its gradient is slice.",
      .infer = infer_pad,
      .gradient = gradient_pad,
      .kernels = {for_any_dtype({"reference", any, prepare_pad, run})},
      .onnx = onnx_pad,
      .dimensions = pad_dimensions,
  };
  return op;
}

const Op& broadcast_to_op() {
  using namespace copy_rows;
  static const Op op{
      .name = "broadcast_to",
      .documentation = "x repeated along axes of size 1, and along new leading axes, to `shape`; any dtype.",
      .infer = infer_broadcast_to,
      .gradient = gradient_broadcast_to,
      .kernels = {for_any_dtype({"reference", any, prepare_broadcast_to, run})},
      .onnx = onnx_broadcast_to,
      .dimensions = broadcast_to_dimensions,
  };
  return op;
}

std::vector<const Op*> rows_of_copy() {
  return {&transpose_op(), &slice_op(), &pad_op(), &broadcast_to_op()};
}

}  // namespace muster::graph
