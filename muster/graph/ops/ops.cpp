#include "muster/graph/ops/ops.h"

namespace muster::graph {

std::vector<const Op*> addresses(const std::vector<Op>& family) {
  std::vector<const Op*> made;
  for (const Op& op : family) made.push_back(&op);
  return made;
}

Types same_as_first(const Signature& signature) { return std::vector<TensorType>{signature.inputs[0]}; }

FormatPtr common_format(const Signature& signature) {
  FormatPtr format;
  for (std::size_t i = 0; i < signature.formats.size(); ++i) {
    if (signature.inputs[i] != signature.outputs[0]) return nullptr;
    if (format == nullptr) format = signature.formats[i];
  }
  return format;
}

std::int64_t elements_in(const FormatPtr& format, const Signature& signature) {
  const TensorType& out = signature.outputs[0];
  if (format == nullptr) return out.shape.elements();
  return static_cast<std::int64_t>(format->size_bytes() / muster::size_bytes(out.dtype));
}

Prepared in_format(Prepared made, const Signature& signature, const FormatPtr& format) {
  if (format == nullptr) return made;
  made.input_formats.assign(signature.inputs.size(), format);
  made.output_formats = {format};
  return made;
}

Prepared count_alike(const Signature& signature) {
  const FormatPtr format = common_format(signature);
  return in_format(prepared(elements_in(format, signature)), signature, format);
}

Result<> require_floating(std::string_view op, const TensorType& type) {
  if (is_floating(type.dtype)) return {};
  return bad("{}: floating numbers are needed, not {}", op, muster::to_string(type.dtype));
}

Result<> require_number(std::string_view op, const TensorType& type) {
  if (type.dtype != DType::bool_) return {};
  return bad("{}: numbers are needed, not {}", op, muster::to_string(type.dtype));
}

Result<> require_equal_dtypes(std::string_view op, const Signature& signature) {
  for (std::size_t i = 1; i < signature.inputs.size(); ++i)
    if (signature.inputs[i].dtype != signature.inputs[0].dtype)
      return bad("{}: {} and {} differ in dtype: cast one of them", op, to_string(signature.inputs[0]),
                 to_string(signature.inputs[i]));
  return {};
}

}  // namespace muster::graph
