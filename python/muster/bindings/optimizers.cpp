// The built-in optimizers.
#include <nanobind/stl/string.h>

#include <utility>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/parameter.h"

namespace muster::python {
namespace {

void init_sgd(nb::pointer_and_handle<nn::SGD> self, nb::handle params, double learning_rate, double momentum,
              double dampening, double weight_decay, bool nesterov, double loss_scale) {
  new (self.p) Trampoline<nn::SGD>(parameters_from(params, "SGD(params)"),
                                   nn::SGDOptions{.learning_rate = learning_rate,
                                                  .momentum = momentum,
                                                  .dampening = dampening,
                                                  .weight_decay = weight_decay,
                                                  .nesterov = nesterov,
                                                  .loss_scale = loss_scale});
}

void init_momentum(nb::pointer_and_handle<nn::Momentum> self, nb::handle params, double learning_rate,
                   double momentum, double weight_decay, double loss_scale, bool use_nesterov) {
  new (self.p) Trampoline<nn::Momentum>(parameters_from(params, "Momentum(params)"),
                                        nn::MomentumOptions{.learning_rate = learning_rate,
                                                            .momentum = momentum,
                                                            .weight_decay = weight_decay,
                                                            .loss_scale = loss_scale,
                                                            .use_nesterov = use_nesterov});
}

}  // namespace

void bind_optimizers(nb::module_& core) {
  nb::class_<nn::Optimizer, nn::Cell>(core, "Optimizer",
                                      "A cell that is called with the gradients, one for each of "
                                      "`parameters`, in order, and updates all of them.")
      .def_prop_ro(
          "parameters",
          [](const nn::Optimizer& self) { return nb::tuple(parameter_objects(self.updated_parameters())); },
          nb::sig("def parameters(self) -> tuple[Parameter, ...]"), "The parameters that it updates.")
      .def_prop_rw(
          "learning_rate", [](const nn::Optimizer& self) { return parameter_object(self.learning_rate()); },
          [](nn::Optimizer& self, double learning_rate) { self.set_learning_rate(learning_rate); },
          "A parameter; writing a number to it needs no new trace.");
  bind_cell_class<nn::SGD, nn::Optimizer>(
      core, "SGD",
      "g = gradient / loss_scale + weight_decay p; with momentum: v = momentum v + (1 - dampening) g (v = g "
      "at the "
      "first step), g = g + momentum v if nesterov, else v; then p = p - learning_rate g.")
      .def("__init__", &init_sgd, nb::arg("params"), nb::arg("learning_rate") = 0.1,
           nb::arg("momentum") = 0.0, nb::arg("dampening") = 0.0, nb::arg("weight_decay") = 0.0,
           nb::arg("nesterov") = false, nb::arg("loss_scale") = 1.0,
           "`params` are the Parameters to update.");
  bind_cell_class<nn::Momentum, nn::Optimizer>(core, "Momentum",
                                               "g = gradient / loss_scale + weight_decay p; v = momentum v + "
                                               "g; p = p - learning_rate v, or with use_nesterov "
                                               "p - learning_rate (g + momentum v).")
      .def("__init__", &init_momentum, nb::arg("params"), nb::arg("learning_rate"), nb::arg("momentum"),
           nb::arg("weight_decay") = 0.0, nb::arg("loss_scale") = 1.0, nb::arg("use_nesterov") = false,
           "`params` are the Parameters to update.");
}

}  // namespace muster::python
