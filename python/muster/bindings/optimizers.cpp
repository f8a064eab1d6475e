// The built-in optimizers: their base, the classes that rows describe, and LARS.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/optimizer_arguments.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/process.h"
#include "python/muster/bindings/row_arguments.h"

namespace muster::python {
namespace {

using nn::Optimizer;

// ---- Making them ------------------------------------------------------------------------------------------

void init_optimizer(nb::pointer_and_handle<Optimizer> self, nb::handle learning_rate, nb::handle parameters,
                    nb::handle weight_decay, double loss_scale) {
  const std::string name = class_name(self.h);
  make_cell(self, name, updated_from(parameters, name + "(parameters)"),
            Optimizer::Settings{learning_rate_from(learning_rate, name + "(learning_rate)"),
                                weight_decay_from(weight_decay, name + "(weight_decay)"), loss_scale});
}

double scalar_of(const std::string& what, nb::handle object) {
  if (const auto number = scalar_from(object)) return *number;
  const std::string type = class_name(object);
  throw nb::type_error((what + " is a number, not " + type).c_str());
}

void init_lars(nb::pointer_and_handle<nn::LARS> self, std::shared_ptr<Optimizer> optimizer,
               nb::handle epsilon, nb::handle coefficient, bool use_clip, nb::object lars_filter) {
  const nb::handle check = process().optimizer_check;
  if (check.is_valid()) {
    nb::dict settings;
    settings["epsilon"] = epsilon;
    settings["coefficient"] = coefficient;
    check("LARS", settings);
  }
  nn::LARSOptions options{.epsilon = scalar_of("LARS(epsilon)", epsilon),
                          .coefficient = scalar_of("LARS(coefficient)", coefficient),
                          .use_clip = use_clip};
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
  const auto number = scalar_from(value);
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

nb::object decay_object(const nn::WeightDecay& decay) {
  return decay.cell() ? nb::cast(decay.cell()) : nb::float_(decay.decay());
}

// As they were given: with groups those of all parameters.
nb::object weight_decay_of(const Optimizer& self) {
  if (!self.grouped()) return decay_object(self.weight_decay());
  nb::list decays;
  for (std::size_t i = 0; i < self.updated_parameters().size(); ++i)
    decays.append(decay_object(self.weight_decay(i)));
  return nb::tuple(decays);
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
           "gradients. `learning_rate` is a number, a list with the rate of each step, or a "
           "LearningRateSchedule.")
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
      .def_prop_ro("_given_weight_decay", &weight_decay_of)
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

// ---- Classes of the rows ----------------------------------------------------------------------------------

// The arguments by name, but for the parameters, kept with the object.
constexpr const char* settings_attribute = "_settings";

constexpr const char* params_doc =
    "`params` are the Parameters to update, or groups of them (see Optimizer). `learning_rate` is a number, "
    "a list with the rate of each step, or a LearningRateSchedule; `weight_decay` a number or a cell of the "
    "step.";

bool is_of_any_type(const graph::Argument& argument) {
  return argument.name == "learning_rate" || argument.name == "weight_decay";
}

ClassParameters parameters_of(const graph::OptimizerSchema& schema) {
  ClassParameters made{{.name = "params", .type = "object"}};
  for (const graph::Argument& argument : schema.arguments)
    made.push_back({.name = std::string(argument.name),
                    .type = is_of_any_type(argument) ? "object" : python_type(argument),
                    .otherwise = argument.required ? nb::object() : default_of(argument),
                    .by_name_only = argument.by_name_only});
  return made;
}

// The arguments of one call, read as the schema says.
struct Given {
  Optimizer::Settings settings;
  graph::Attributes attributes;

  void read(const graph::OptimizerSchema& schema, const graph::Argument& argument, nb::handle object) {
    const std::string what = std::string(schema.name) + "(" + std::string(argument.name) + ")";
    if (argument.name == "learning_rate") {
      settings.learning_rate = learning_rate_from(object, what);
    } else if (argument.name == "weight_decay") {
      settings.weight_decay = weight_decay_from(object, what);
    } else {
      graph::Attribute value = attribute_from(schema.name, argument.name, argument, object);
      if (argument.name == "loss_scale")
        settings.loss_scale = std::get<double>(value);
      else if (argument.effect == graph::Effect::passed)
        attributes.set(argument.name, std::move(value));
      else if (argument.effect == graph::Effect::refused && value != argument.otherwise)
        raise(Error{Code::not_provided, std::string(schema.name) + ": " + std::string(argument.name) + "=" +
                                            shown(object) + " is not provided"});
    }
  }
};

template <class Made>
void bind_row(nb::module_& core, nb::dict& classes) {
  const graph::OptimizerSchema& schema = Made::row().optimizer;
  const std::string name(schema.name), documentation(schema.documentation);
  auto* parameters = new ClassParameters(parameters_of(schema));  // for as long as the process runs
  classes[name.c_str()] =
      bind_cell_class<Made, Optimizer>(core, name.c_str(), documentation.c_str())
          .def(
              "__init__",
              [&schema, parameters](nb::pointer_and_handle<Made> self, const nb::args& positional,
                                    const nb::kwargs& keywords) {
                const auto objects = placed(schema.name, *parameters, positional, keywords);
                auto updated = updated_from(objects[0], std::string(schema.name) + "(params)");
                nb::dict settings;
                for (std::size_t i = 1; i < objects.size(); ++i)
                  settings[nb::str((*parameters)[i].name.c_str())] = objects[i];
                if (const nb::handle check = process().optimizer_check; check.is_valid())
                  check(nb::str(std::string(schema.name).c_str()), settings);
                Given given;
                for (std::size_t i = 1; i < objects.size(); ++i)
                  given.read(schema, schema.arguments[i - 1], objects[i]);
                make_cell(self, updated, given.settings, std::move(given.attributes));
                self.h.attr("__dict__")[settings_attribute] = settings;
              },
              nb::sig(init_signature(*parameters).c_str()), params_doc);
}

template <class... Made>
nb::dict bind_rows(nb::module_& core, nn::OptimizerClasses<Made...>) {
  nb::dict classes;
  (bind_row<Made>(core, classes), ...);
  return classes;
}

}  // namespace

void bind_optimizers(nb::module_& core) {
  bind_optimizer_base(core);
  core.attr("_optimizers") = bind_rows(core, nn::RowOptimizers());
  core.def(
      "_check_settings_of_optimizers", [](nb::object check) { process().optimizer_check = check.release(); },
      nb::arg("check"), "From now on check(class, settings) is called before an optimizer is made.");
  bind_cell_class<nn::LARS, Optimizer>(
      core, "LARS",
      "Another optimizer whose gradients become r (g + weight_decay p), r = coefficient |p| / (|g| + "
      "weight_decay |p| + epsilon); with use_clip r = min(r / learning_rate, 1). You, Gitman and Ginsburg, "
      "2017.")
      .def("__init__", &init_lars, nb::arg("optimizer"), nb::arg("epsilon") = 1e-5,
           nb::arg("coefficient") = 0.001, nb::arg("use_clip") = false, nb::arg("lars_filter") = nb::none(),
           "`lars_filter` is called with each Parameter and says whether it gets r; without, those with "
           "'LayerNorm' or 'bias' in their names get none, and no decay.");
}

}  // namespace muster::python
