// Dense, and the cells made of cells.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/cell_arguments.h"
#include "python/muster/bindings/initializer.h"

namespace muster::python {
namespace {

using nn::CellPtr;
using nn::CellSequence;

void init_dense(nb::pointer_and_handle<nn::Dense> self, std::int64_t in_channels, std::int64_t out_channels,
                nb::handle weight_init, nb::handle bias_init, bool has_bias, nb::handle activation) {
  nn::DenseOptions options{.has_bias = has_bias, .activation = activation_from(activation)};
  if (in_channels > 0 && out_channels > 0) {  // else the cell refuses them
    options.weight_init = optional_initializer_from(weight_init, {out_channels, in_channels}, "weight_init");
    options.bias_init = optional_initializer_from(bias_init, {out_channels}, "bias_init");
  }
  make_cell(self, in_channels, out_channels, std::move(options));
}

CellPtr cell_from(nb::handle object, const CellSequence& self) {
  if (!nb::isinstance<nn::Cell>(object)) {
    const std::string type = class_name(object);
    throw nb::type_error((self.description() + " holds cells, not " + type).c_str());
  }
  CellPtr cell = nb::cast<CellPtr>(object);
  refuse_cycle(self, *cell);
  return cell;
}

template <class Made>
void init_sequence(nb::pointer_and_handle<Made> self, const nb::args& cells) {
  Made& made = make_cell(self);
  const bool is_one_list = cells.size() == 1 && !nb::isinstance<nn::Cell>(cells[0]);
  if (is_one_list && nb::isinstance<nb::dict>(cells[0])) {
    for (const auto [name, cell] : nb::borrow<nb::dict>(cells[0]))
      made.insert_child(nb::cast<std::string>(name), cell_from(cell, made));
    return;
  }
  for (const nb::handle cell : nb::iter(is_one_list ? nb::object(cells[0]) : nb::object(cells)))
    made.append(cell_from(cell, made));
}

void init_cell_list(nb::pointer_and_handle<nn::CellList> self, const nb::args& cells, bool auto_prefix) {
  nn::CellList& made = make_cell(self);
  made.set_auto_prefix(auto_prefix);
  const bool is_one_list = cells.size() == 1 && !nb::isinstance<nn::Cell>(cells[0]);
  for (const nb::handle cell : nb::iter(is_one_list ? nb::object(cells[0]) : nb::object(cells)))
    made.append(cell_from(cell, made));
}

std::size_t place(const CellSequence& self, std::int64_t index, bool at_end_too = false) {
  const auto size = static_cast<std::int64_t>(self.size());
  const std::int64_t counted = index < 0 ? index + size : index;
  if (counted >= 0 && (counted < size || (at_end_too && counted == size)))
    return static_cast<std::size_t>(counted);
  throw nb::index_error(
      (self.description() + " has " + std::to_string(size) + " cells, none at " + std::to_string(index))
          .c_str());
}

// Parameters keep the names that they have, for a part is a look at the network; in a SequentialCell cells
// keep their keys, too.
nb::object part(nb::handle self, const CellSequence& sequence, nb::slice slice) {
  const auto [start, stop, step, count] = slice.compute(sequence.size());
  nb::object made = self.type()(nb::list());
  auto& cells = nb::cast<CellSequence&>(made);
  cells.set_auto_prefix(false);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(start + static_cast<Py_ssize_t>(i) * step);
    const auto& [key, cell] = sequence.children().at(at);
    cells.insert_child(nb::isinstance<nn::CellList>(self) ? std::to_string(i) : key, cell);
  }
  cells.set_auto_prefix(sequence.state().auto_prefix);
  return made;
}

nb::object get_item(nb::handle self, nb::handle index) {
  const auto& sequence = nb::cast<const CellSequence&>(self);
  if (nb::isinstance<nb::slice>(index)) return part(self, sequence, nb::borrow<nb::slice>(index));
  return nb::cast(sequence.at(place(sequence, nb::cast<std::int64_t>(index))));
}

void extend(CellSequence& self, nb::handle cells) {
  for (const nb::handle cell : nb::iter(cells)) self.append(cell_from(cell, self));
}

void bind_sequence(nb::module_& core) {
  nb::class_<CellSequence, nn::Cell>(
      core, "CellSequence",
      "A list of cells: children are named by their places, '0', '1', ...; the "
      "names of parameters stay those of the first place that their cell had.")
      .def(
          "append", [](CellSequence& self, nb::handle cell) { self.append(cell_from(cell, self)); },
          nb::arg("cell"), nb::sig("def append(self, cell: Cell) -> None"), "Adds a cell at the end.")
      .def(
          "insert",
          [](CellSequence& self, std::int64_t index, nb::handle cell) {
            self.insert(place(self, index, true), cell_from(cell, self));
          },
          nb::arg("index"), nb::arg("cell"), nb::sig("def insert(self, index: int, cell: Cell) -> None"),
          "Adds a cell before the one at `index`.")
      .def(
          "extend",
          [](nb::object self, nb::handle cells) {
            extend(nb::cast<CellSequence&>(self), cells);
            return self;
          },
          nb::arg("cells"), nb::sig("def extend(self, cells: collections.abc.Iterable[Cell]) -> typing.Self"),
          "Adds cells at the end.")
      .def("__len__", &CellSequence::size)
      .def("__bool__", [](const CellSequence& self) { return self.size() > 0; })
      .def("__iter__",
           [](const CellSequence& self) {
             nb::list cells;
             for (const auto& [name, cell] : self.children()) cells.append(cell);
             return nb::iter(cells);
           })
      .def("__iadd__",
           [](nb::object self, nb::handle cells) {
             extend(nb::cast<CellSequence&>(self), cells);
             return self;
           })
      .def("__getitem__", &get_item, nb::arg("index"),
           nb::sig("def __getitem__(self, index: int | slice) -> typing.Any"))
      .def(
          "__setitem__",
          [](CellSequence& self, std::int64_t index, nb::handle cell) {
            self.replace(place(self, index), cell_from(cell, self));
          },
          nb::arg("index"), nb::arg("cell"))
      .def(
          "__delitem__", [](CellSequence& self, std::int64_t index) { self.erase(place(self, index)); },
          nb::arg("index"));
}

}  // namespace

void bind_containers(nb::module_& core) {
  bind_cell_class<nn::Dense>(
      core, "Dense",
      "y = activation(x weight^T + bias): (..., in_channels) to (..., out_channels). Its "
      "parameters are `weight` (out_channels, in_channels) and `bias` (out_channels,).")
      .def("__init__", &init_dense, keeps_arguments, nb::arg("in_channels"), nb::arg("out_channels"),
           nb::arg("weight_init") = nb::none(), nb::arg("bias_init") = nb::none(), nb::arg("has_bias") = true,
           nb::arg("activation") = nb::none(),
           "`weight_init` and `bias_init` are the name of an initializer ('normal', 'zeros', "
           "'xavier_uniform', ...), an Initializer, a number or a tensor; without, HeUniform(sqrt(5)) and "
           "Uniform(1 / sqrt(in_channels)). `activation` is a cell or a name that get_activation knows.");
  bind_sequence(core);
  nb::class_<nn::SequentialCell, CellSequence, Trampoline<nn::SequentialCell>>(
      core, "SequentialCell",
      "Cells one after another: each gets what the one before returned, a tuple as one argument.")
      .def("__init__", &init_sequence<nn::SequentialCell>, keeps_arguments, nb::arg("cells"),
           "Cells, or one list or dict of cells.")
      .def(
          "construct",
          [](const nn::SequentialCell& self, const nb::args& inputs) {
            return nb::borrow<nb::any>(call_in_sequence(self, inputs));
          },
          nb::arg("inputs"), "What the cells compute one after another.");
  bind_cell_class<nn::CellList, CellSequence>(core, "CellList",
                                              "Cells in a list, which another cell calls one by one.")
      .def("__init__", &init_cell_list, keeps_arguments, nb::arg("cells"), nb::arg("auto_prefix") = true,
           "Cells, or one list of cells. Without `auto_prefix` parameters keep their names.");
  bind_cell_class<nn::Identity>(core, "Identity", "x as it is.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::Identity> self, const nb::args&, const nb::kwargs&) {
            make_cell(self);
          },
          keeps_arguments, nb::arg("args"), nb::arg("kwargs"),
          "Takes any arguments, so that it may stand for another cell.");
  bind_cell_class<nn::Flatten>(core, "Flatten",
                               "(N, ...) as (N, all the rest), or the axes `start_dim` to `end_dim` as one.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::Flatten> self, std::int64_t start_dim, std::int64_t end_dim) {
            make_cell(self, start_dim, end_dim);
          },
          keeps_arguments, nb::arg("start_dim") = 1, nb::arg("end_dim") = -1);
}

}  // namespace muster::python
