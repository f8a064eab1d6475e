#include "python/muster/bindings/tensor_text.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>

#include "muster/graph/graph.h"
#include "muster/graph/host_function.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

std::string scalar_text(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::float32:
      return number_text(*tensor.data<float>());
    case DType::float64:
      return number_text(*tensor.data<double>());
    case DType::int32:
      return std::to_string(*tensor.data<std::int32_t>());
    case DType::int64:
      return std::to_string(*tensor.data<std::int64_t>());
    case DType::uint8:
      return std::to_string(*tensor.data<std::uint8_t>());
    case DType::uint32:
      return std::to_string(*tensor.data<std::uint32_t>());
    case DType::int8:
      return std::to_string(*tensor.data<std::int8_t>());
    case DType::bool_:
      return *tensor.data<bool>() ? "True" : "False";
    case DType::bfloat16:
      return number_text(static_cast<float>(*tensor.data<bfloat16>()));
    case DType::float16:
      return number_text(static_cast<float>(*tensor.data<float16>()));
    case DType::int16:
      return std::to_string(*tensor.data<std::int16_t>());
    case DType::uint16:
      return std::to_string(*tensor.data<std::uint16_t>());
    case DType::uint64:
      return std::to_string(*tensor.data<std::uint64_t>());
  }
  return {};
}

// Whether it has no elements yet: a plan would keep those that a parameter has while it is made.
bool is_noted(const graph::Value& value) {
  return value.is_traced() || (value.is_parameter() && graph::is_tracing());
}

}  // namespace

void leave_trace(const std::string& what) {
  if (!graph::may_fall_back()) return;
  graph::note_untraceable();
  throw Exception(Code::invalid_argument, what + " has no value while its graph is made");
}

nb::object element_object(const Tensor& tensor, std::int64_t index) {
  switch (tensor.dtype()) {
    case DType::float32:
      return nb::float_(static_cast<double>(tensor.data<float>()[index]));
    case DType::float64:
      return nb::float_(tensor.data<double>()[index]);
    case DType::int32:
      return nb::int_(tensor.data<std::int32_t>()[index]);
    case DType::int64:
      return nb::int_(tensor.data<std::int64_t>()[index]);
    case DType::uint8:
      return nb::int_(static_cast<int>(tensor.data<std::uint8_t>()[index]));
    case DType::uint32:
      return nb::int_(tensor.data<std::uint32_t>()[index]);
    case DType::int8:
      return nb::int_(static_cast<int>(tensor.data<std::int8_t>()[index]));
    case DType::bool_:
      return nb::bool_(tensor.data<bool>()[index]);
    case DType::bfloat16:
      return nb::float_(static_cast<double>(tensor.data<bfloat16>()[index]));
    case DType::float16:
      return nb::float_(static_cast<double>(tensor.data<float16>()[index]));
    case DType::int16:
      return nb::int_(static_cast<int>(tensor.data<std::int16_t>()[index]));
    case DType::uint16:
      return nb::int_(static_cast<int>(tensor.data<std::uint16_t>()[index]));
    case DType::uint64:
      return nb::int_(tensor.data<std::uint64_t>()[index]);
  }
  return nb::none();
}

std::string text_of(const graph::Value& value, nb::handle self) {
  if (is_noted(value)) return representation_of(value, self);
  if (value.is_parameter() && value.parameter()->served_rows()) return nb::cast<std::string>(nb::repr(self));
  const Tensor tensor = elements_of(value);
  // Of float16 numpy knows the shortest text.
  if (tensor.shape().rank() == 0 && tensor.dtype() != DType::float16) return scalar_text(tensor);
  return nb::cast<std::string>(nb::str(self.attr("asnumpy")()));
}

std::string representation_of(const graph::Value& value, nb::handle self) {
  const std::string kind = class_name(self);
  const std::string type =
      "shape=" + to_string(value.shape()) + ", dtype=" + std::string(to_string(value.dtype())) + ")";
  if (is_noted(value)) {
    leave_trace("the text of a tensor");
    return kind + "(being traced, " + type;
  }
  const bool is_absent =
      value.is_parameter() ? value.parameter()->absence() != nullptr : value.tensor().absence() != nullptr;
  const bool is_declared =
      std::ranges::any_of(value.shape().sizes(), [](std::int64_t size) { return size < 0; });
  const bool in_mindspore_words = mindspore_words().is_valid() && kind == "Tensor";
  if (is_absent && !(is_declared && in_mindspore_words))
    return kind + (is_declared ? "(declared, " : "(on another worker, ") + type;
  if (in_mindspore_words) return nb::cast<std::string>(mindspore_words()(self));
  const Tensor tensor = elements_of(value);
  if (tensor.shape().rank() == 0) return kind + "(" + scalar_text(tensor) + ", " + type;
  const nb::object array = self.attr("asnumpy")();
  const nb::object text = nb::module_::import_("numpy").attr("array2string")(
      array, nb::arg("separator") = ", ", nb::arg("prefix") = kind + "(");
  return kind + "(" + nb::cast<std::string>(text) + ", " + type;
}

}  // namespace muster::python
