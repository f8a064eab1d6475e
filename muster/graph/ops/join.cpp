// concat and split: each undoes the other.
#include <algorithm>
#include <string>
#include <utility>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/primitive.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace join_rows {

using kernels::StridedCopy;

Types infer_concat(const Signature& signature) {
  const TensorType& first = signature.inputs[0];
  MUSTER_TRY_VOID(require_equal_dtypes("concat", signature));
  MUSTER_TRY(const std::size_t axis, axis_of("concat", signature.attributes, first.shape));
  Shape out = first.shape;
  out[axis] = 0;
  for (const TensorType& input : signature.inputs) {
    Shape shape = input.shape;
    const std::int64_t size = shape.rank() > axis ? shape[axis] : 0;
    if (shape.rank() > axis) shape[axis] = first.shape[axis];
    if (shape != first.shape)
      return bad("concat: {} and {} differ in more than axis {}", muster::to_string(first.shape),
                 muster::to_string(input.shape), axis);
    out[axis] += size;
  }
  return std::vector<TensorType>{{first.dtype, out}};
}

std::vector<Value> gradient_concat(const GradientQuery& query) {
  const auto axis = axis_of("concat", query.attributes, query.inputs[0].shape());
  Sizes sizes;
  for (const Value& input : query.inputs) sizes.push_back(input.shape()[*axis]);
  return apply_all("split", query.output_gradients.first(1),
                   {{"axis", static_cast<std::int64_t>(*axis)}, {"sizes", sizes}});
}

Types infer_split(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY(const std::size_t axis, axis_of("split", signature.attributes, x.shape));
  const Sizes sizes = sizes_of(signature.attributes, "sizes");
  std::vector<TensorType> types;
  std::int64_t sum = 0;
  bool negative = false;
  for (const std::int64_t size : sizes) {
    Shape part = x.shape;
    part[axis] = size;
    types.push_back({x.dtype, part});
    sum += size;
    negative = negative || size < 0;
  }
  if (negative || types.empty() || sum != x.shape[axis])
    return bad("split: the parts {} do not make up axis {} of {}, which has {}",
               graph::to_string(Attribute(sizes)), axis, muster::to_string(x.shape), x.shape[axis]);
  return types;
}

// Parts without a gradient count as zeros.
std::vector<Value> gradient_split(const GradientQuery& query) {
  std::vector<Value> parts;
  for (std::size_t i = 0; i < query.outputs.size(); ++i) {
    const TensorType& type = query.outputs[i].type();
    parts.push_back(query.output_gradients[i].defined()
                        ? query.output_gradients[i]
                        : apply("fill", std::span<const Value>{},
                                {{"dtype", type.dtype}, {"shape", type.shape.sizes()}}));
  }
  return {apply("concat", parts, {{"axis", query.attributes.get("axis", std::int64_t{0})}})};
}

struct Settings {
  std::vector<StridedCopy> parts;
  std::size_t element_bytes = 0;
};

// "aBcd16b": blocks of 16 channels, and no other blocks. Of such tensors without padding a part of the
// channels of one sample lies together, as in row-major order. 0 for other formats.
std::int64_t channels_in_a_block(const FormatPtr& format) {
  const std::string name = format == nullptr ? "" : format->name();
  const std::size_t digits = name.find_first_of("0123456789");
  if (digits == std::string::npos || (name.substr(0, digits) != "aBcd" && name.substr(0, digits) != "aBcde"))
    return 0;
  std::size_t end = 0;
  const std::int64_t block = std::stoll(name.substr(digits), &end);
  return name.substr(digits + end) == "b" ? block : 0;
}

// The format in blocks of channels in which the most elements come; null where there is none that all parts
// can have without padding.
FormatPtr common_format(std::span<const TensorType> come, std::span<const FormatPtr> formats,
                        std::span<const TensorType> parts, std::size_t axis) {
  if (axis != 1 || formats.empty()) return nullptr;
  std::int64_t in_blocks = 0, all = 0;
  FormatPtr found;
  for (std::size_t i = 0; i < come.size(); ++i) {
    const std::int64_t elements = come[i].shape.elements();
    all += elements;
    if (channels_in_a_block(formats[i]) == 0) continue;
    in_blocks += elements;
    if (found == nullptr) found = formats[i];
  }
  const std::int64_t block = channels_in_a_block(found);
  const auto fits = [&](const TensorType& part) { return block > 0 && part.shape[1] % block == 0; };
  return 2 * in_blocks > all && std::ranges::all_of(parts, fits) ? found : nullptr;
}

// The same order of elements for tensors of other types.
std::vector<FormatPtr> like(const FormatPtr& format, std::span<const TensorType> types) {
  std::vector<FormatPtr> made;
  for (const TensorType& type : types)
    made.push_back(primitive_library()->format_named(type.shape, type.dtype, format->name()));
  return made;
}

// Copies that are the same in that format.
Prepared in_format(Prepared copies, std::vector<FormatPtr> inputs, std::vector<FormatPtr> outputs) {
  const auto is_missing = [](const FormatPtr& format) { return format == nullptr; };
  if (std::ranges::any_of(inputs, is_missing) || std::ranges::any_of(outputs, is_missing)) return copies;
  copies.input_formats = std::move(inputs);
  copies.output_formats = std::move(outputs);
  return copies;
}

// The copies between the parts and the whole, in the direction that `to_whole` says.
Prepared prepare_parts(std::span<const TensorType> parts, const TensorType& whole, std::size_t axis,
                       bool to_whole) {
  Settings settings{{}, size_bytes(whole.dtype)};
  const Sizes steps = kernels::row_major_strides(whole.shape);
  std::int64_t at = 0;
  for (const TensorType& part : parts) {
    const Sizes own = kernels::row_major_strides(part.shape);
    settings.parts.push_back(kernels::simplified({.sizes = part.shape.sizes(),
                                                  .from_strides = to_whole ? own : steps,
                                                  .to_strides = to_whole ? steps : own,
                                                  .from_begin = to_whole ? 0 : at,
                                                  .to_begin = to_whole ? at : 0}));
    at += part.shape[axis] * steps[axis];
  }
  return prepared(std::move(settings));
}

Prepared prepare_concat(const Signature& signature) {
  const auto axis = axis_of("concat", signature.attributes, signature.inputs[0].shape);
  Prepared copies = prepare_parts(signature.inputs, signature.outputs[0], *axis, true);
  const FormatPtr format = common_format(signature.inputs, signature.formats, signature.inputs, *axis);
  if (format == nullptr) return copies;
  return in_format(std::move(copies), like(format, signature.inputs), like(format, signature.outputs));
}

Prepared prepare_split(const Signature& signature) {
  const auto axis = axis_of("split", signature.attributes, signature.inputs[0].shape);
  Prepared copies = prepare_parts(signature.outputs, signature.inputs[0], *axis, false);
  const FormatPtr format = common_format(signature.inputs, signature.formats, signature.outputs, *axis);
  if (format == nullptr) return copies;
  return in_format(std::move(copies), like(format, signature.inputs), like(format, signature.outputs));
}

template <bool to_whole>
void run(const KernelCall& call) {
  const auto& [parts, element_bytes] = call.setting<Settings>();
  for (std::size_t i = 0; i < parts.size(); ++i)
    kernels::strided_copy(parts[i], call.inputs[to_whole ? i : 0], call.outputs[to_whole ? 0 : i],
                          element_bytes, call.threads);
}

}  // namespace join_rows
}  // namespace

namespace {
namespace join_rows {

Result<> onnx_concat(OnnxCall& call) {
  return call.give("Concat", call.all_inputs(), {{"axis", call.attributes().get("axis", std::int64_t{0})}});
}

Result<> onnx_split(OnnxCall& call) {
  const Sizes sizes = sizes_of(call.attributes(), "sizes");
  return call.give("Split", {call.input(), call.list(sizes)},
                   {{"axis", call.attributes().get("axis", std::int64_t{0})}}, sizes.size());
}

}  // namespace join_rows
}  // namespace

const Op& concat_op() {
  using namespace join_rows;
  static const Op op{
      .name = "concat",
      .documentation =
          "The inputs one behind the other along `axis` (negative ones count from the end); they agree in "
          "dtype, which is any, and in all other axes.",
      .inputs_min = 1,
      .inputs_max = 65536,
      .infer = infer_concat,
      .gradient = gradient_concat,
      .kernels = {for_any_dtype({"reference", any, prepare_concat, run<true>})},
      .precision = MixedPrecision::widest,
      .onnx = onnx_concat,
      .dimensions = along_first_axis,
  };
  return op;
}

const Op& split_op() {
  using namespace join_rows;
  static const Op op{
      .name = "split",
      .documentation =
          "x cut along `axis` (negative ones count from the end) into parts of `sizes`, one output each; any "
          "dtype.",
      .infer = infer_split,
      .gradient = gradient_split,
      .kernels = {for_any_dtype({"reference", any, prepare_split, run<false>})},
      .onnx = onnx_split,
      .dimensions = along_first_axis,
  };
  return op;
}

std::vector<const Op*> rows_of_join() { return {&concat_op(), &split_op()}; }

}  // namespace muster::graph
