// The built-in cells: layers and losses.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/initializer.h"

namespace muster::python {
namespace {

using nn::CellPtr;

CellPtr activation_from(nb::handle activation) {
  if (activation.is_none()) return nullptr;
  if (nb::isinstance<nn::Cell>(activation)) return nb::cast<CellPtr>(activation);
  const auto name = nb::isinstance<nb::str>(activation) ? nb::cast<std::string>(activation) : "";
  if (name == "relu") return std::make_shared<nn::ReLU>();
  if (name == "tanh") return std::make_shared<nn::Tanh>();
  throw nb::value_error("activation is a cell, 'relu' or 'tanh'");
}

void init_dense(nb::pointer_and_handle<nn::Dense> self, std::int64_t in_channels, std::int64_t out_channels,
                nb::handle weight_init, nb::handle bias_init, bool has_bias, nb::handle activation) {
  if (in_channels < 1 || out_channels < 1)
    throw nb::value_error("Dense: in_channels and out_channels are at least 1");
  nn::DenseOptions options{.has_bias = has_bias, .activation = activation_from(activation)};
  if (!weight_init.is_none())
    options.weight_init = initializer_from(weight_init, Shape{out_channels, in_channels}, "weight_init");
  if (!bias_init.is_none()) options.bias_init = initializer_from(bias_init, Shape{out_channels}, "bias_init");
  new (self.p) Trampoline<nn::Dense>(in_channels, out_channels, std::move(options));
}

void init_sequential(nb::pointer_and_handle<nn::SequentialCell> self, const nb::args& cells) {
  nn::SequentialCell* made = new (self.p) Trampoline<nn::SequentialCell>();
  const bool is_one_list = cells.size() == 1 && !nb::isinstance<nn::Cell>(cells[0]);
  if (is_one_list && nb::isinstance<nb::dict>(cells[0])) {
    for (const auto [name, cell] : nb::borrow<nb::dict>(cells[0]))
      made->insert_child(nb::cast<std::string>(name), nb::cast<CellPtr>(cell));
    return;
  }
  for (const nb::handle cell : nb::iter(is_one_list ? nb::object(cells[0]) : nb::object(cells)))
    made->append(nb::cast<CellPtr>(cell));
}

void append(nn::SequentialCell& self, CellPtr cell) {
  refuse_cycle(self, *cell);
  self.append(std::move(cell));
}

CellPtr child_at(const nn::SequentialCell& self, std::int64_t index) {
  const auto size = static_cast<std::int64_t>(self.children().size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) throw nb::index_error("no cell with this index");
  return self.children()[static_cast<std::size_t>(index)].second;
}

void init_cross_entropy(nb::pointer_and_handle<nn::CrossEntropyLoss> self, nb::handle weight,
                        std::int64_t ignore_index, std::string reduction, double label_smoothing) {
  nn::CrossEntropyOptions options{.reduction = std::move(reduction),
                                  .ignore_index = ignore_index,
                                  .label_smoothing = label_smoothing,
                                  .weight = weight.is_none() ? graph::Value() : value_from(weight)};
  if (options.reduction != "mean" && options.reduction != "sum" && options.reduction != "none")
    throw nb::value_error(("reduction is 'mean', 'sum' or 'none', not '" + options.reduction + "'").c_str());
  new (self.p) Trampoline<nn::CrossEntropyLoss>(std::move(options));
}

template <class Made>
void bind_plain(nb::module_& core, const char* name, const char* doc) {
  bind_cell_class<Made>(core, name, doc).def("__init__", [](nb::pointer_and_handle<Made> self) {
    new (self.p) Trampoline<Made>();
  });
}

}  // namespace

void bind_layers(nb::module_& core) {
  bind_plain<nn::Flatten>(core, "Flatten", "(N, ...) as (N, all the rest).");
  bind_plain<nn::ReLU>(core, "ReLU", "max(x, 0), element by element.");
  bind_plain<nn::Tanh>(core, "Tanh", "tanh(x), element by element.");
  bind_cell_class<nn::Dense>(
      core, "Dense",
      "y = activation(x weight^T + bias): (..., in_channels) to (..., out_channels). Its "
      "parameters are `weight` (out_channels, in_channels) and `bias` (out_channels,).")
      .def("__init__", &init_dense, nb::arg("in_channels"), nb::arg("out_channels"),
           nb::arg("weight_init") = nb::none(), nb::arg("bias_init") = nb::none(), nb::arg("has_bias") = true,
           nb::arg("activation") = nb::none(),
           "`weight_init` and `bias_init` are the name of an initializer ('normal', 'zeros', 'ones', "
           "'uniform', "
           "'xavier_uniform', 'he_uniform'), an Initializer, a number or a tensor. `activation` is a cell, "
           "'relu' "
           "or 'tanh'.");
  bind_cell_class<nn::SequentialCell>(core, "SequentialCell",
                                      "Cells one after another: each gets what the one before returned.")
      .def("__init__", &init_sequential, nb::arg("cells"), "Cells, or one list or dict of cells.")
      .def("append", &append, nb::arg("cell"), "Adds a cell at the end.")
      .def("__len__", [](const nn::SequentialCell& self) { return self.children().size(); })
      .def("__getitem__", &child_at, nb::arg("index"));
}

void bind_losses(nb::module_& core) {
  bind_cell_class<nn::CrossEntropyLoss>(
      core, "CrossEntropyLoss",
      "The cross entropy of softmax(logits): called with logits (N, C) and labels (N,) int32, it gives a "
      "scalar, or "
      "(N,) with reduction='none'. The mean is over the weights of the labels that are not ignored.")
      .def("__init__", &init_cross_entropy, nb::arg("weight") = nb::none(), nb::arg("ignore_index") = -100,
           nb::arg("reduction") = "mean", nb::arg("label_smoothing") = 0.0,
           "`weight` (C,) weighs the classes; labels equal to `ignore_index` count nothing.");
}

}  // namespace muster::python
