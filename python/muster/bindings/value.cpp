#include "python/muster/bindings/value.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <string>
#include <typeinfo>
#include <utility>

#include "muster/train/train.h"
#include "python/muster/bindings/convert.h"

namespace muster::python {
namespace {

using graph::Value;

// The dtype that a Python number takes beside a tensor: the tensor's, but a fraction does not become a whole
// number, nor a whole number a truth value.
std::optional<DType> dtype_beside(nb::handle number, const Value* like) {
  if (like == nullptr || (PyFloat_Check(number.ptr()) && !is_floating(like->dtype()))) return std::nullopt;
  if (like->dtype() == DType::bool_ && !PyBool_Check(number.ptr())) return std::nullopt;
  return like->dtype();
}

// A number in `dtype`; whole ones wrap around, as in arithmetic: -1 is 255 beside uint8.
Tensor number_in(nb::handle number, DType dtype) {
  int beyond = 0;
  const bool is_whole = PyLong_Check(number.ptr());
  const long long whole = is_whole ? PyLong_AsLongLongAndOverflow(number.ptr(), &beyond) : 0;
  if (!is_whole || beyond != 0) return tensor_copied(number, dtype);
  return Tensor::scalar(static_cast<std::int64_t>(whole)).cast(dtype);
}

}  // namespace

nb::object value_object(Value value) {
  if (!value.defined()) return nb::none();
  return nb::cast(std::move(value));
}

nb::object values_object(const graph::Values& values) {
  if (values.empty()) return nb::none();
  if (values.size() == 1) return value_object(values.front());
  return tuple_of(values, &value_object);
}

bool is_value_pointer(const PyObject* object) { return is_value(nb::handle(object)); }

TensorObject tensor_result(Value value) {
  return nb::steal<TensorObject>(value_object(std::move(value)).release());
}

TensorObject tensor_object(Tensor tensor) { return tensor_result(Value(std::move(tensor))); }

namespace {

// In their place is a row of zeros, which is no part of them.
void require_rows_here(const graph::Parameter& parameter) {
  if (!parameter.served_rows()) return;
  raise(
      Error{Code::not_provided,
            fmt::format("the rows of table '{}' are on parameter servers, and this worker has no elements of "
                        "it to read or copy: its cell looks rows up, and save_checkpoint() writes them all",
                        parameter.name())});
}

}  // namespace

Tensor elements_of(const Value& value) {
  if (value.is_parameter()) {
    require_rows_here(*value.parameter());
    const std::string* absence = value.parameter()->absence();
    if (absence != nullptr) raise(Error{Code::invalid_argument, *absence});
    if (const std::string divided = value.parameter()->division_text(); !divided.empty())
      raise(Error{Code::invalid_argument, divided});
    if (!graph::is_tracing()) return value.parameter()->materialize(train::seed());
  }
  Result<Tensor> elements = value.read();
  if (!elements && graph::is_tracing()) {
    Error error = elements.error();
    if (const std::string place = python_place(); !place.empty())
      error.message = place + ": " + error.message;
    raise(error);
  }
  return unwrap(std::move(elements));
}

Value value_from(nb::handle object, const Value* like) {
  if (is_value(object)) return nb::cast<const Value&>(object);
  const bool is_number = PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr());
  const auto dtype = is_number ? dtype_beside(object, like) : std::nullopt;
  return dtype ? number_in(object, *dtype) : tensor_copied(object, std::nullopt);
}

bool is_value(nb::handle object) { return nb::isinstance<Value>(object); }

// Neither a parameter nor another class of the library's.
bool is_of_derived_class(nb::handle tensor) {
  const nb::handle type = tensor.type();
  return is_value(tensor) && !type.is(nb::type<Value>()) && nb::type_info(type) == typeid(Value);
}

nb::object value_object_like(nb::handle like, Value value) {
  if (!value.defined() || !is_of_derived_class(like)) return value_object(std::move(value));
  nb::object made = nb::inst_alloc(like.type());
  new (nb::inst_ptr<Value>(made)) Value(std::move(value));
  nb::inst_mark_ready(made);
  return made;
}

nb::object attributes_on(nb::handle tensor) {
  if (!is_value(tensor) || nb::cast<const Value&>(tensor).is_parameter()) return {};
  PyObject* const* const attributes = _PyObject_GetDictPtr(tensor.ptr());
  if (attributes == nullptr || *attributes == nullptr || PyDict_GET_SIZE(*attributes) == 0) return {};
  return nb::steal(PyDict_Copy(*attributes));
}

void put_attributes(nb::handle tensor, nb::handle attributes) {
  const nb::object own = nb::steal(PyObject_GenericGetDict(tensor.ptr(), nullptr));
  if (!own.is_valid() || PyDict_Update(own.ptr(), attributes.ptr()) != 0) throw nb::python_error();
}

std::string python_place() {
  PyFrameObject* frame = PyEval_GetFrame();  // borrowed
  if (frame == nullptr) return {};
  const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const auto file = nb::cast<std::string>(code.attr("co_filename"));
  return file + ":" + std::to_string(PyFrame_GetLineNumber(frame));
}

namespace {

bool is_of_library(nb::handle frame) {
  const nb::object name = nb::borrow<nb::dict>(frame.attr("f_globals")).get("__name__", nb::str(""));
  const auto module = nb::cast<std::string>(nb::str(name));
  const std::string package = module.substr(0, module.find('.'));
  return package == "muster" || package == "mindspore";
}

}  // namespace

std::string line_of_script() {
  const nb::gil_scoped_acquire lock;
  PyFrameObject* const running = PyEval_GetFrame();  // borrowed
  if (running == nullptr) return {};
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(running));
  while (frame.is_valid() && !frame.is_none() && is_of_library(frame)) frame = frame.attr("f_back");
  if (!frame.is_valid() || frame.is_none()) return {};
  const auto file = nb::cast<std::string>(frame.attr("f_code").attr("co_filename"));
  const auto line = nb::cast<std::int64_t>(frame.attr("f_lineno"));
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(line);
}

std::string caller_line() {
  const std::string line = line_of_script();
  return line.empty() ? "?" : line;
}

}  // namespace muster::python
