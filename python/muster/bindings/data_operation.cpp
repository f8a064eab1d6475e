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
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/exceptions.h"
#include "python/muster/bindings/process.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

nb::object numpy_array(const Tensor& tensor) { return tensor_object(tensor).attr("asnumpy")(); }

// A Python function between built-in operations.
class FunctionOperation final : public data::Operation {
 public:
  explicit FunctionOperation(nb::callable function) : function_(std::move(function)) {}
  FunctionOperation(const FunctionOperation&) = delete;
  FunctionOperation& operator=(const FunctionOperation&) = delete;
  ~FunctionOperation() override {
    if (!Py_IsInitialized()) {  // the interpreter took its objects along
      function_.release();
      return;
    }
    const nb::gil_scoped_acquire lock;
    function_ = nb::callable();
  }

  std::string name() const override {
    const nb::gil_scoped_acquire lock;
    return nb::cast<std::string>(nb::str(nb::getattr(function_, "__name__", nb::str("a Python function"))));
  }

  Result<std::vector<Tensor>> apply(std::span<const Tensor> values, data::Draw) const override {
    const nb::gil_scoped_acquire lock;
    try {
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

  nb::callable function_;
};

data::OperationPtr operation_from(nb::handle object) {
  if (nb::isinstance<Transform>(object)) return nb::cast<const Transform&>(object).operation;
  if (PyCallable_Check(object.ptr()) != 0)
    return std::make_shared<FunctionOperation>(nb::borrow<nb::callable>(object));
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

struct Rescale : Transform {};
struct Normalize : Transform {};
struct HWC2CHW : Transform {};
struct TypeCast : Transform {};
struct OneHot : Transform {};
struct ToTensor : Transform {};

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
      .def("__repr__", [](const Transform& self) { return self.operation->name(); });
  nb::class_<Rescale, Transform>(core, "Rescale",
                                 "float32(value) * rescale + shift, for any dtype and shape.")
      .def(
          "__init__",
          [](Rescale* self, float rescale, float shift) {
            new (self) Rescale{data::rescale(rescale, shift)};
          },
          nb::arg("rescale"), nb::arg("shift"));
  nb::class_<Normalize, Transform>(
      core, "Normalize",
      "(float32(value) - mean) / std for each channel of an image (H, W, C), or (C, H, W) with is_hwc=False. "
      "`mean` and `std` hold one number for each channel, or one for all.")
      .def(
          "__init__",
          [](Normalize* self, std::vector<float> mean, std::vector<float> std, bool is_hwc) {
            new (self) Normalize{
                data::normalize({.mean = std::move(mean), .std = std::move(std), .is_hwc = is_hwc})};
          },
          nb::arg("mean"), nb::arg("std"), nb::arg("is_hwc") = true);
  nb::class_<HWC2CHW, Transform>(core, "HWC2CHW", "An image (H, W, C) as (C, H, W).")
      .def("__init__", [](HWC2CHW* self) { new (self) HWC2CHW{data::hwc2chw()}; });
  nb::class_<TypeCast, Transform>(
      core, "TypeCast",
      "Elements as another dtype; floats outside of an integer's range become its "
      "nearest bound.")
      .def(
          "__init__",
          [](TypeCast* self, nb::handle output_type) {
            new (self) TypeCast{data::type_cast(dtype_from(output_type))};
          },
          nb::arg("output_type"));
  nb::class_<OneHot, Transform>(
      core, "OneHot",
      "A label as `num_classes` numbers: 1 at its place, else 0. With a `smoothing_rate` above 0 the 1 loses "
      "it to all classes alike, and the numbers are float64. ValueError for a label out of range.")
      .def(
          "__init__",
          [](OneHot* self, std::int64_t num_classes, double smoothing_rate) {
            new (self) OneHot{data::one_hot(num_classes, smoothing_rate)};
          },
          nb::arg("num_classes"), nb::arg("smoothing_rate") = 0.0);
  nb::class_<ToTensor, Transform>(core, "ToTensor",
                                  "float32(value) * (1 / 255), then an image (H, W, C) as (C, H, W).")
      .def(
          "__init__",
          [](ToTensor* self, nb::handle output_type) {
            new (self)
                ToTensor{data::to_tensor(output_type.is_none() ? DType::float32 : dtype_from(output_type))};
          },
          nb::arg("output_type") = nb::none());
  nb::class_<Compose>(core, "Compose", "Operations one after the other, for Dataset.map or to be called.")
      .def(
          "__init__", [](Compose* self, nb::handle transforms) { new (self) Compose(compose(transforms)); },
          nb::arg("transforms"))
      .def("__call__", &call_compose, nb::arg("inputs"));
  bind_vision(core);
}

}  // namespace muster::python
