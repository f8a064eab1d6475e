#include "python/muster/bindings/data_operation.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "muster/train/train.h"
#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/dataset.h"
#include "python/muster/bindings/exceptions.h"
#include "python/muster/bindings/interpreter_lock.h"
#include "python/muster/bindings/process.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

nb::object numpy_array(const Tensor& tensor) { return tensor_object(tensor).attr("asnumpy")(); }

// A Python function between built-in operations.
class FunctionOperation final : public data::Operation {
 public:
  explicit FunctionOperation(nb::callable function)
      : begin_row_(nb::getattr(function, "_begin_row", nb::none())), function_(std::move(function)) {}
  FunctionOperation(const FunctionOperation&) = delete;
  FunctionOperation& operator=(const FunctionOperation&) = delete;
  ~FunctionOperation() override {
    if (!Py_IsInitialized()) {  // the interpreter took its objects along
      function_.release();
      begin_row_.release();
      return;
    }
    const nb::gil_scoped_acquire lock;
    function_ = nb::callable();
    begin_row_.reset();
  }

  std::string name() const override {
    const nb::gil_scoped_acquire lock;
    return nb::cast<std::string>(nb::str(nb::getattr(function_, "__name__", nb::str("a Python function"))));
  }

  Result<std::vector<Tensor>> apply(std::span<const Tensor> values, data::Draw draw) const override {
    const InterpreterLock lock;
    try {
      if (!begin_row_.is_none()) begin_row_(hash_bytes(&draw.operation, sizeof draw.operation, draw.row));
      return call(values);
    } catch (nb::python_error& exception) {
      return fail(error_of(exception));
    } catch (const std::exception& exception) {
      return fail(Code::invalid_argument, exception.what());
    }
  }

 private:
  std::vector<Tensor> call(std::span<const Tensor> values) const {
    nb::list arguments;
    for (const Tensor& value : values) arguments.append(numpy_array(value));
    const nb::object answer = function_(*nb::tuple(arguments));
    std::vector<Tensor> results;
    if (nb::isinstance<nb::tuple>(answer))
      for (const nb::handle part : nb::borrow<nb::tuple>(answer)) results.push_back(tensor_copied(part, {}));
    else
      results.push_back(tensor_copied(answer, {}));
    return results;
  }

  nb::object begin_row_;  // told what to draw random numbers from, where the function asks for it
  nb::callable function_;
};

// A job that recovers tells of functions that draw what no recovery point holds; one that is told of its rows
// draws by them.
nb::callable told(nb::callable function) {
  if (nb::hasattr(function, "_begin_row")) return function;
  return nb::cast<nb::callable>(nb::module_::import_("muster._draws").attr("told")(function));
}

data::OperationPtr operation_from(nb::handle object) {
  if (nb::isinstance<Transform>(object)) return nb::cast<const Transform&>(object).operation;
  if (PyCallable_Check(object.ptr()) != 0)
    return std::make_shared<FunctionOperation>(told(nb::borrow<nb::callable>(object)));
  const auto type = class_name(object);
  throw nb::type_error(("map takes transforms and functions, not " + type).c_str());
}

// A transform on its own, outside a dataset: every call draws new random numbers.
nb::object call_transform(const Transform& self, nb::handle input) {
  const std::uint64_t row[] = {train::data_options(0).seed, hash_text("muster.data.call"),
                               process().transform_calls++};
  const Tensor value = tensor_copied(input, {});
  return numpy_array(unwrap(self.operation->apply({&value, 1}, {.row = hash_bytes(row, sizeof row)})).at(0));
}

// The same for a row of a pass in Python, which tells what to draw from.
nb::object apply_row(const Transform& self, nb::handle input, std::uint64_t number) {
  const Tensor value = tensor_copied(input, {});
  return numpy_array(unwrap(self.operation->apply({&value, 1}, {.row = number})).at(0));
}

// Several operations under one name, called or given to map.
struct Compose {
  std::vector<nb::object> operations;
};

Compose compose(nb::handle operations) {
  Compose composed;
  for (const nb::handle operation : nb::borrow<nb::object>(operations)) {
    if (PyCallable_Check(operation.ptr()) == 0)
      throw nb::type_error(("Compose takes transforms and functions, not " + class_name(operation)).c_str());
    composed.operations.push_back(nb::borrow(operation));
  }
  if (composed.operations.empty()) throw nb::value_error("Compose needs at least one operation");
  return composed;
}

nb::object call_compose(const Compose& self, nb::args inputs) {
  nb::object values = std::move(inputs);
  for (const nb::object& operation : self.operations)
    values =
        nb::isinstance<nb::tuple>(values) ? operation(*nb::borrow<nb::tuple>(values)) : operation(values);
  return values;
}

}  // namespace

std::vector<data::OperationPtr> operations_from(nb::handle object) {
  std::vector<data::OperationPtr> operations;
  const auto append = [&](nb::handle part) {
    const auto more = operations_from(part);
    operations.insert(operations.end(), more.begin(), more.end());
  };
  if (nb::isinstance<Compose>(object))
    for (const nb::object& part : nb::cast<const Compose&>(object).operations) append(part);
  else if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object))
    for (const nb::handle part : nb::borrow<nb::object>(object)) append(part);
  else
    operations.push_back(operation_from(object));
  return operations;
}

void bind_transforms(nb::module_& core) {
  nb::class_<Transform>(core, "Transform", "A built-in operation for Dataset.map.")
      .def("__call__", &call_transform, nb::arg("input"),
           "Applies the transform to one array or tensor and returns a numpy array.")
      .def("_apply_row", &apply_row)
      .def("__repr__", [](const Transform& self) { return self.operation->name(); });
  nb::class_<Compose>(core, "Compose", "Operations one after the other, for Dataset.map or to be called.")
      .def(
          "__init__", [](Compose* self, nb::handle transforms) { new (self) Compose(compose(transforms)); },
          nb::arg("transforms"))
      .def("__call__", &call_compose, nb::arg("inputs"));
  bind_data_rows(core);
}

}  // namespace muster::python
