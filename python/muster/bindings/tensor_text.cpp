#include "python/muster/bindings/tensor_text.h"

#include <nanobind/stl/string.h>

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
  }
  return {};
}

}  // namespace

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
  }
  return nb::none();
}

std::string text_of(const Tensor& tensor, nb::handle self) {
  if (tensor.shape().rank() == 0) return scalar_text(tensor);
  return nb::cast<std::string>(nb::str(self.attr("asnumpy")()));
}

std::string representation_of(const Tensor& tensor, nb::handle self) {
  std::string text;
  if (tensor.shape().rank() == 0)
    text = scalar_text(tensor);
  else
    text = nb::cast<std::string>(nb::module_::import_("numpy").attr("array2string")(
        self.attr("asnumpy")(), nb::arg("separator") = ", ", nb::arg("prefix") = "Tensor("));
  return "Tensor(" + text + ", shape=" + to_string(tensor.shape()) +
         ", dtype=" + std::string(to_string(tensor.dtype())) + ")";
}

}  // namespace muster::python
