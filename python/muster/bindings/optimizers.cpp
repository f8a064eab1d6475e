// The built-in optimizers.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/parameter.h"

namespace muster::python {
namespace {

using nn::LearningRate;
using nn::Optimizer;
using nn::ParameterGroups;
using nn::WeightDecay;

// ---- What Python gives ------------------------------------------------------------------------------------

std::optional<double> number_from(nb::handle object) {
  if (PyBool_Check(object.ptr())) return std::nullopt;
  if (PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr())) return nb::cast<double>(object);
  const bool is_scalar_tensor = is_value(object) && nb::cast<const graph::Value&>(object).shape().rank() == 0;
  if (is_scalar_tensor ||
      (PyNumber_Check(object.ptr()) && !is_value(object) && PySequence_Check(object.ptr()) == 0))
    return nb::cast<double>(nb::float_(object));
  return std::nullopt;
}

LearningRate learning_rate_from(nb::handle object, const std::string& what) {
  if (const auto number = number_from(object)) return *number;
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
  if (const auto number = number_from(object)) return *number;
  if (nb::isinstance<nn::Cell>(object)) return nb::cast<nn::CellPtr>(object);
  const std::string type = class_name(object);
  throw nb::type_error((what + " is a number or a cell, not " + type).c_str());
}

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

// ---- Making them ------------------------------------------------------------------------------------------

void init_optimizer(nb::pointer_and_handle<Optimizer> self, nb::handle learning_rate, nb::handle parameters,
                    nb::handle weight_decay, double loss_scale) {
  const std::string name = class_name(self.h);
  make_cell(self, name, updated_from(parameters, name + "(parameters)"),
            Optimizer::Settings{learning_rate_from(learning_rate, name + "(learning_rate)"),
                                weight_decay_from(weight_decay, name + "(weight_decay)"), loss_scale});
}

void init_sgd(nb::pointer_and_handle<nn::SGD> self, nb::handle params, nb::handle learning_rate,
              double momentum, double dampening, nb::handle weight_decay, bool nesterov, double loss_scale) {
  make_cell(self, updated_from(params, "SGD(params)"),
            nn::SGDOptions{.learning_rate = learning_rate_from(learning_rate, "SGD(learning_rate)"),
                           .momentum = momentum,
                           .dampening = dampening,
                           .weight_decay = weight_decay_from(weight_decay, "SGD(weight_decay)"),
                           .nesterov = nesterov,
                           .loss_scale = loss_scale});
}

void init_momentum(nb::pointer_and_handle<nn::Momentum> self, nb::handle params, nb::handle learning_rate,
                   double momentum, nb::handle weight_decay, double loss_scale, bool use_nesterov) {
  make_cell(self, updated_from(params, "Momentum(params)"),
            nn::MomentumOptions{.learning_rate = learning_rate_from(learning_rate, "Momentum(learning_rate)"),
                                .momentum = momentum,
                                .weight_decay = weight_decay_from(weight_decay, "Momentum(weight_decay)"),
                                .loss_scale = loss_scale,
                                .use_nesterov = use_nesterov});
}

void init_adam(nb::pointer_and_handle<nn::Adam> self, nb::handle params, nb::handle learning_rate,
               double beta1, double beta2, double eps, bool /*use_locking*/, bool use_nesterov,
               nb::handle weight_decay, double loss_scale, bool use_amsgrad, bool use_lazy,
               bool use_offload) {
  if (use_lazy || use_offload)
    raise(Error{Code::not_provided, "Adam: use_lazy and use_offload are not provided"});
  make_cell(self, updated_from(params, "Adam(params)"),
            nn::AdamOptions{.learning_rate = learning_rate_from(learning_rate, "Adam(learning_rate)"),
                            .beta1 = beta1,
                            .beta2 = beta2,
                            .eps = eps,
                            .use_nesterov = use_nesterov,
                            .weight_decay = weight_decay_from(weight_decay, "Adam(weight_decay)"),
                            .loss_scale = loss_scale,
                            .use_amsgrad = use_amsgrad});
}

void init_adam_weight_decay(nb::pointer_and_handle<nn::AdamWeightDecay> self, nb::handle params,
                            nb::handle learning_rate, double beta1, double beta2, double eps,
                            nb::handle weight_decay) {
  make_cell(self, updated_from(params, "AdamWeightDecay(params)"),
            nn::AdamWeightDecayOptions{
                .learning_rate = learning_rate_from(learning_rate, "AdamWeightDecay(learning_rate)"),
                .beta1 = beta1,
                .beta2 = beta2,
                .eps = eps,
                .weight_decay = weight_decay_from(weight_decay, "AdamWeightDecay(weight_decay)")});
}

void init_rms_prop(nb::pointer_and_handle<nn::RMSProp> self, nb::handle params, nb::handle learning_rate,
                   double decay, double momentum, double epsilon, bool /*use_locking*/, bool centered,
                   double loss_scale, nb::handle weight_decay) {
  make_cell(self, updated_from(params, "RMSProp(params)"),
            nn::RMSPropOptions{.learning_rate = learning_rate_from(learning_rate, "RMSProp(learning_rate)"),
                               .decay = decay,
                               .momentum = momentum,
                               .epsilon = epsilon,
                               .centered = centered,
                               .loss_scale = loss_scale,
                               .weight_decay = weight_decay_from(weight_decay, "RMSProp(weight_decay)")});
}

void init_adagrad(nb::pointer_and_handle<nn::Adagrad> self, nb::handle params, double accum,
                  nb::handle learning_rate, bool update_slots, double loss_scale, nb::handle weight_decay) {
  make_cell(self, updated_from(params, "Adagrad(params)"),
            nn::AdagradOptions{.accum = accum,
                               .learning_rate = learning_rate_from(learning_rate, "Adagrad(learning_rate)"),
                               .update_slots = update_slots,
                               .loss_scale = loss_scale,
                               .weight_decay = weight_decay_from(weight_decay, "Adagrad(weight_decay)")});
}

void init_lars(nb::pointer_and_handle<nn::LARS> self, std::shared_ptr<Optimizer> optimizer, double epsilon,
               double coefficient, bool use_clip, nb::object lars_filter) {
  nn::LARSOptions options{.epsilon = epsilon, .coefficient = coefficient, .use_clip = use_clip};
  if (!lars_filter.is_none())
    options.lars_filter = [&](const graph::Parameter& wanted) {
      for (const auto& parameter : optimizer->updated_parameters())
        if (parameter.get() == &wanted)
          return PyObject_IsTrue(lars_filter(parameter_object(parameter)).ptr()) == 1;
      return false;
    };
  make_cell(self, optimizer, std::move(options));
}

// ---- What Python reads ------------------------------------------------------------------------------------

nb::object rate_object(const graph::ParameterPtr& parameter,
                       const std::shared_ptr<nn::LearningRateSchedule>& schedule) {
  return parameter ? parameter_object(parameter) : nb::cast(schedule);
}

nb::object learning_rate_of(const Optimizer& self) {
  if (self.has_one_rate()) return rate_object(self.learning_rate(), self.schedule());
  nb::list rates;
  for (std::size_t i = 0; i < self.updated_parameters().size(); ++i)
    rates.append(rate_object(self.learning_rate(i), self.schedule(i)));
  return nb::tuple(rates);
}

void set_learning_rate(Optimizer& self, nb::handle value) {
  const auto number = number_from(value);
  if (!number) {
    const std::string type = class_name(value);
    throw nb::type_error(("learning_rate is set to a number, not to " + type).c_str());
  }
  unwrap(self.set_learning_rate(*number));
}

// The rates or decays of the next step: one, or one for each parameter.
template <class Of>
nb::object now(const Optimizer& self, bool one, const Of& of) {
  graph::Values values;
  const std::size_t count = one ? 1 : self.updated_parameters().size();
  for (std::size_t i = 0; i < count; ++i) values.push_back(of(i));
  if (one) return value_object(values[0]);
  return tuple_of(values, &value_object);
}

nb::object get_lr(const Optimizer& self) {
  return now(self, self.has_one_rate(), [&](std::size_t i) { return self.rate_of(i); });
}

using Step = graph::Values (Optimizer::*)(std::span<const graph::Value>) const;

template <Step step>
nb::object prepared(const Optimizer& self, const nb::args& gradients) {
  const graph::Values values = (self.*step)(tensors_of(gradients, self));
  return tuple_of(values, &value_object);
}

void bind_optimizer_base(nb::module_& core) {
  bind_cell_class<Optimizer>(
      core, "Optimizer",
      "A cell that is called with the gradients, one for each of `parameters`, in order, "
      "and updates all of them. Subclasses may define construct(self, gradients) with "
      "get_lr(), decay_weight(), gradients_centralization(), scale_grad() and count_step().")
      .def("__init__", &init_optimizer, nb::arg("learning_rate"), nb::arg("parameters"),
           nb::arg("weight_decay") = 0.0, nb::arg("loss_scale") = 1.0,
           "`parameters` are Parameters or groups: dicts with 'params' and of 'lr', 'weight_decay', "
           "'grad_centralization' what differs, and a dict {'order_params': ...} for the order of the "
           "gradients. "
           "`learning_rate` is a number, a list with the rate of each step, or a LearningRateSchedule.")
      .def_prop_ro(
          "parameters",
          [](const Optimizer& self) { return nb::tuple(parameter_objects(self.updated_parameters())); },
          nb::sig("def parameters(self) -> tuple[Parameter, ...]"), "The parameters that it updates.")
      .def_prop_rw(
          "learning_rate", &learning_rate_of, &set_learning_rate,
          nb::for_getter(nb::sig("def learning_rate(self) -> typing.Any")),
          nb::for_setter(nb::sig("def learning_rate(self, value: object) -> None")),
          "A parameter (a scalar, or (steps,) for a list) or the schedule; a tuple with that of each "
          "parameter when groups have their own. Writing a number to a scalar needs no new trace.")
      .def_prop_ro(
          "global_step", [](const Optimizer& self) { return parameter_object(self.global_step()); },
          nb::sig("def global_step(self) -> Parameter"), "The number of steps done, an int32 parameter (1,).")
      .def_prop_ro("loss_scale", &Optimizer::loss_scale, "What gradients are divided by.")
      .def_prop_ro("is_group", &Optimizer::grouped, "Whether it was given groups of parameters.")
      .def("get_lr", &get_lr, nb::sig("def get_lr(self) -> typing.Any"),
           "The learning rate of the next step, a float32 scalar; a tuple when groups have their own.")
      .def("decay_weight", &prepared<&Optimizer::decayed>, nb::arg("gradients"),
           nb::sig("def decay_weight(self, *gradients) -> tuple[Tensor, ...]"),
           "The gradients plus weight_decay * loss_scale * parameter, where that parameter decays.")
      .def("gradients_centralization", &prepared<static_cast<Step>(&Optimizer::centralized)>,
           nb::arg("gradients"),
           nb::sig("def gradients_centralization(self, *gradients) -> tuple[Tensor, ...]"),
           "The gradients less their means over all axes but the first, where a group asks for it.")
      .def("scale_grad", &prepared<&Optimizer::unscaled>, nb::arg("gradients"),
           nb::sig("def scale_grad(self, *gradients) -> tuple[Tensor, ...]"), "The gradients / loss_scale.")
      .def(
          "count_step", [](const Optimizer& self) { return value_object(self.count_step()); },
          nb::sig("def count_step(self) -> Tensor"), "Adds 1 to global_step.");
}

constexpr const char* params_doc =
    "`params` are the Parameters to update, or groups of them (see Optimizer). `learning_rate` is a number, "
    "a "
    "list with the rate of each step, or a LearningRateSchedule; `weight_decay` a number or a cell of the "
    "step.";

}  // namespace

void bind_optimizers(nb::module_& core) {
  bind_optimizer_base(core);
  bind_cell_class<nn::SGD, Optimizer>(
      core, "SGD",
      "g = gradient / loss_scale + weight_decay p; with momentum: v = momentum v + (1 - dampening) g (v = g "
      "at the first step), g = g + momentum v if nesterov, else v; then p = p - learning_rate g.")
      .def("__init__", &init_sgd, nb::arg("params"), nb::arg("learning_rate") = 0.1,
           nb::arg("momentum") = 0.0, nb::arg("dampening") = 0.0, nb::arg("weight_decay") = 0.0,
           nb::arg("nesterov") = false, nb::arg("loss_scale") = 1.0, params_doc);
  bind_cell_class<nn::Momentum, Optimizer>(core, "Momentum",
                                           "g = gradient / loss_scale + weight_decay p; v = momentum v + "
                                           "g; p = p - learning_rate v, or with use_nesterov "
                                           "p - learning_rate (g + momentum v).")
      .def("__init__", &init_momentum, nb::arg("params"), nb::arg("learning_rate"), nb::arg("momentum"),
           nb::arg("weight_decay") = 0.0, nb::arg("loss_scale") = 1.0, nb::arg("use_nesterov") = false,
           params_doc);
  bind_cell_class<nn::Adam, Optimizer>(core, "Adam",
                                       "g = gradient / loss_scale + weight_decay p; m = beta1 m + (1 - "
                                       "beta1) g; v = beta2 v + (1 - beta2) g^2; "
                                       "p = p - learning_rate sqrt(1 - beta2^t) / (1 - beta1^t) u / (sqrt(v) "
                                       "+ eps), t counts the steps from 1; "
                                       "u = m, with use_nesterov beta1 m + (1 - beta1) g; with use_amsgrad "
                                       "the greatest v takes the place of v. "
                                       "Kingma and Ba, ICLR 2015.")
      .def("__init__", &init_adam, nb::arg("params"), nb::arg("learning_rate") = 1e-3, nb::arg("beta1") = 0.9,
           nb::arg("beta2") = 0.999, nb::arg("eps") = 1e-8, nb::arg("use_locking") = false,
           nb::arg("use_nesterov") = false, nb::arg("weight_decay") = 0.0, nb::arg("loss_scale") = 1.0,
           nb::arg("use_amsgrad") = false, nb::kw_only(), nb::arg("use_lazy") = false,
           nb::arg("use_offload") = false, params_doc);
  bind_cell_class<nn::AdamWeightDecay, Optimizer>(
      core, "AdamWeightDecay",
      "m = beta1 m + (1 - beta1) gradient; v = beta2 v + (1 - beta2) gradient^2; p = p - learning_rate (m / "
      "(sqrt(v) + eps) + weight_decay p). The moments are not corrected.")
      .def("__init__", &init_adam_weight_decay, nb::arg("params"), nb::arg("learning_rate") = 1e-3,
           nb::arg("beta1") = 0.9, nb::arg("beta2") = 0.999, nb::arg("eps") = 1e-6,
           nb::arg("weight_decay") = 0.0, params_doc);
  bind_cell_class<nn::RMSProp, Optimizer>(
      core, "RMSProp",
      "g = gradient / loss_scale + weight_decay p; s = decay s + (1 - decay) g^2, 1 at first; centered: n = "
      "decay "
      "n + (1 - decay) g, else n = 0; v = momentum v + learning_rate g / sqrt(s - n^2 + epsilon); p = p - v.")
      .def("__init__", &init_rms_prop, nb::arg("params"), nb::arg("learning_rate") = 0.1,
           nb::arg("decay") = 0.9, nb::arg("momentum") = 0.0, nb::arg("epsilon") = 1e-10,
           nb::arg("use_locking") = false, nb::arg("centered") = false, nb::arg("loss_scale") = 1.0,
           nb::arg("weight_decay") = 0.0, params_doc);
  bind_cell_class<nn::Adagrad, Optimizer>(
      core, "Adagrad",
      "g = gradient / loss_scale + weight_decay p; s = s + g^2 if update_slots, `accum` at first; p = p - "
      "learning_rate g / sqrt(s). Duchi, Hazan and Singer, JMLR 2011.")
      .def("__init__", &init_adagrad, nb::arg("params"), nb::arg("accum") = 0.1,
           nb::arg("learning_rate") = 0.001, nb::arg("update_slots") = true, nb::arg("loss_scale") = 1.0,
           nb::arg("weight_decay") = 0.0, params_doc);
  bind_cell_class<nn::LARS, Optimizer>(
      core, "LARS",
      "Another optimizer whose gradients become r (g + weight_decay p), r = coefficient |p| / (|g| + "
      "weight_decay "
      "|p| + epsilon); with use_clip r = min(r / learning_rate, 1). You, Gitman and Ginsburg, 2017.")
      .def("__init__", &init_lars, nb::arg("optimizer"), nb::arg("epsilon") = 1e-5,
           nb::arg("coefficient") = 0.001, nb::arg("use_clip") = false, nb::arg("lars_filter") = nb::none(),
           "`lars_filter` is called with each Parameter and says whether it gets r; without, those with "
           "'LayerNorm' or 'bias' in their names get none, and no decay.");
}

}  // namespace muster::python
