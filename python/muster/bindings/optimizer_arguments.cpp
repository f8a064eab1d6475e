#include "python/muster/bindings/optimizer_arguments.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <utility>
#include <vector>

#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/row_arguments.h"
#include "python/muster/bindings/value.h"

namespace muster::python {

using nn::LearningRate;
using nn::ParameterGroups;
using nn::WeightDecay;

std::optional<double> scalar_from(nb::handle object) {
  if (PyBool_Check(object.ptr())) return std::nullopt;
  if (PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr())) return nb::cast<double>(object);
  const bool is_scalar_tensor = is_value(object) && nb::cast<const graph::Value&>(object).shape().rank() == 0;
  if (is_scalar_tensor ||
      (PyNumber_Check(object.ptr()) && !is_value(object) && PySequence_Check(object.ptr()) == 0))
    return nb::cast<double>(nb::float_(object));
  return std::nullopt;
}

namespace {

// A rate of True is 1, as in Python's arithmetic; MindSpore takes it, too.
std::optional<double> rate_from(nb::handle object) {
  return PyBool_Check(object.ptr()) ? nb::cast<double>(nb::float_(object)) : scalar_from(object);
}

double decay_number(const nn::RowOptimizer& optimizer, nb::handle value) {
  if (const auto number = rate_from(value)) return *number;
  const std::string type = class_name(value);
  throw nb::type_error((optimizer.class_name() + ": weight_decay is set to a number, not to " + type +
                        ": a schedule is given where the optimizer is made")
                           .c_str());
}

}  // namespace

void set_argument_from(nn::RowOptimizer& optimizer, std::string_view name, nb::handle value) {
  const bool is_decay = name == "weight_decay";
  if (!is_decay && !optimizer.has_argument(name)) return;
  if (nb::isinstance<PythonParameter>(value))
    raise(Error{Code::not_provided, std::string(optimizer.schema().name) + ": " + std::string(name) +
                                        " is set to a number, not to a Parameter, whose later values would "
                                        "not count"});
  const bool is_tensor = is_value(value) && nb::cast<const graph::Value&>(value).shape().elements() == 1;
  const nb::object given = is_tensor ? nb::object(nb::float_(value)) : nb::borrow(value);
  for (const graph::Argument& argument : optimizer.schema().arguments) {
    if (argument.name != name) continue;
    if (is_decay)
      unwrap(optimizer.set_weight_decay(decay_number(optimizer, given)));
    else
      optimizer.set_argument(name, attribute_from(optimizer.schema().name, name, argument, given));
  }
}

LearningRate learning_rate_from(nb::handle object, const std::string& what) {
  if (const auto number = rate_from(object)) return *number;
  if (nb::isinstance<nn::LearningRateSchedule>(object))
    return nb::cast<std::shared_ptr<nn::LearningRateSchedule>>(object);
  const bool is_list = PyObject_HasAttrString(object.ptr(), "__iter__") != 0 || is_value(object);
  if (!is_list || nb::isinstance<nb::str>(object)) {
    const std::string type = class_name(object);
    throw nb::type_error(
        (what + " is a number, a tensor, an iterable of numbers or a LearningRateSchedule, not " + type)
            .c_str());
  }
  nn::Rates rates;
  if (is_value(object)) {
    const Tensor values = tensor_as(elements_of(nb::cast<const graph::Value&>(object)), DType::float64);
    if (values.shape().rank() != 1)
      throw nb::value_error((what + " has shape " + to_string(values.shape()) +
                             ", but a tensor of rates has one dimension at most")
                                .c_str());
    rates.assign(values.span<double>().begin(), values.span<double>().end());
  } else {
    for (const nb::handle rate : nb::iter(object)) rates.push_back(nb::cast<double>(nb::float_(rate)));
  }
  return rates;
}

WeightDecay weight_decay_from(nb::handle object, const std::string& what) {
  if (const auto number = rate_from(object)) return *number;
  if (nb::isinstance<nn::Cell>(object)) return nb::cast<nn::CellPtr>(object);
  const std::string type = class_name(object);
  throw nb::type_error((what + " is a number or a cell, not " + type).c_str());
}

namespace {

constexpr const char* group_keys[] = {"params", "lr", "weight_decay", "grad_centralization", "order_params"};

void check_keys(const nb::dict& group, const std::string& what) {
  for (const auto [key, value] : group) {
    const std::string name = nb::cast<std::string>(nb::str(key));
    bool known = false;
    for (const char* const allowed : group_keys) known = known || name == allowed;
    if (!known)
      throw nb::key_error((what +
                           ": a group has the keys 'params', 'lr', 'weight_decay', "
                           "'grad_centralization' or 'order_params', not '" +
                           name + "'")
                              .c_str());
  }
  if (group.contains("order_params") && group.size() > 1)
    throw nb::value_error((what + ": the group with 'order_params' has no other key").c_str());
  if (!group.contains("order_params") && !group.contains("params"))
    throw nb::key_error((what + ": a group needs the key 'params'").c_str());
}

nn::ParameterGroup group_from(const nb::dict& given, const std::string& what) {
  nn::ParameterGroup group{.parameters = parameters_from(given["params"], what + "['params']")};
  if (group.parameters.empty()) throw nb::value_error((what + "['params'] is empty").c_str());
  if (given.contains("lr")) group.learning_rate = learning_rate_from(given["lr"], what + "['lr']");
  if (given.contains("weight_decay"))
    group.weight_decay = weight_decay_from(given["weight_decay"], what + "['weight_decay']");
  if (given.contains("grad_centralization"))
    group.grad_centralization = nb::cast<bool>(given["grad_centralization"]);
  return group;
}

}  // namespace

// A list of Parameters, or of groups.
ParameterGroups updated_from(nb::handle iterable, const std::string& what) {
  const nb::list items(nb::borrow<nb::object>(iterable));
  if (items.size() == 0) throw nb::value_error((what + " is empty").c_str());
  if (!nb::isinstance<nb::dict>(items[0])) return parameters_from(items, what);
  std::vector<nn::ParameterGroup> groups;
  std::vector<graph::ParameterPtr> order;
  for (const nb::handle item : items) {
    if (!nb::isinstance<nb::dict>(item))
      throw nb::type_error((what + " holds Parameters or dicts, not both").c_str());
    const auto group = nb::borrow<nb::dict>(item);
    check_keys(group, what);
    if (group.contains("order_params"))
      order = parameters_from(group["order_params"], what + "['order_params']");
    else
      groups.push_back(group_from(group, what));
  }
  return ParameterGroups(std::move(groups), std::move(order));
}

std::shared_ptr<nn::Optimizer> optimizer_from(nb::handle object, const std::string& what) {
  nb::object given = nb::borrow(object);
  if (nb::hasattr(given, "_as_optimizer")) given = given.attr("_as_optimizer")();
  if (nb::isinstance<nn::Optimizer>(given)) return nb::cast<std::shared_ptr<nn::Optimizer>>(given);
  const std::string type = class_name(given);
  throw nb::type_error((what + ": optimizer is an Optimizer, not " + type).c_str());
}

}  // namespace muster::python
