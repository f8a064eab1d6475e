// Activation cells.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <string>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/cell_arguments.h"

namespace muster::python {
namespace {

template <class Made>
void bind_plain(nb::module_& core, const char* name, const char* doc) {
  bind_cell_class<Made>(core, name, doc)
      .def(
          "__init__", [](nb::pointer_and_handle<Made> self) { make_cell(self); }, keeps_arguments);
}

template <class Made>
void bind_alpha(nb::module_& core, const char* name, double alpha, const char* doc) {
  bind_cell_class<Made>(core, name, doc)
      .def(
          "__init__", [](nb::pointer_and_handle<Made> self, double given) { make_cell(self, given); },
          keeps_arguments, nb::arg("alpha") = alpha);
}

template <class Made>
void bind_axis(nb::module_& core, const char* name, const char* doc) {
  bind_cell_class<Made>(core, name, doc)
      .def(
          "__init__", [](nb::pointer_and_handle<Made> self, std::int64_t axis) { make_cell(self, axis); },
          keeps_arguments, nb::arg("axis") = -1, "`axis` may count from the end.");
}

}  // namespace

void bind_activations(nb::module_& core) {
  bind_plain<nn::ReLU>(core, "ReLU", "max(x, 0), element by element; float32 or float64.");
  bind_plain<nn::ReLU6>(core, "ReLU6", "min(max(x, 0), 6), element by element; float32 or float64.");
  bind_alpha<nn::LeakyReLU>(core, "LeakyReLU", 0.2,
                            "x where x >= 0, else alpha x, element by element; float32 or float64.");
  bind_alpha<nn::ELU>(
      core, "ELU", 1.0,
      "x where x >= 0, else alpha (exp(x) - 1), element by element; float32 or float64. Clevert "
      "et al., ICLR 2016.");
  bind_cell_class<nn::GELU>(
      core, "GELU",
      "x P(X < x) for a standard normal X, element by element; float32 or float64. With "
      "`approximate` by tanh: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). Hendrycks "
      "and Gimpel, 2016.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::GELU> self, bool approximate) { make_cell(self, approximate); },
          keeps_arguments, nb::arg("approximate") = true);
  bind_plain<nn::SiLU>(core, "SiLU", "x sigmoid(x), element by element; float32 or float64.");
  bind_plain<nn::Sigmoid>(core, "Sigmoid", "1 / (1 + exp(-x)), element by element; float32 or float64.");
  bind_plain<nn::Tanh>(core, "Tanh", "tanh(x), element by element; float32 or float64.");
  bind_axis<nn::Softmax>(core, "Softmax", "exp(x) / sum(exp(x)) along `axis`; float32 or float64.");
  bind_axis<nn::LogSoftmax>(core, "LogSoftmax", "log(softmax(x)) along `axis`; float32 or float64.");
  core.def(
      "get_activation", [](nb::handle name, nb::handle) { return activation_from(name); },
      nb::arg("name").none(), nb::arg("prim_name") = nb::none(),
      "The cell that `name` means: 'relu', 'relu6', 'leakyrelu', 'elu', 'gelu', 'silu', 'sigmoid', 'tanh', "
      "'softmax' or 'logsoftmax'; None for None. ValueError for another name.");
}

}  // namespace muster::python
