// Cells in the Python bindings: one C++ object, with a trampoline for `construct` when Python subclasses it.
#pragma once

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/trampoline.h>

#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/results.h"
#include "python/muster/bindings/traced_function.h"
#include "python/muster/bindings/value.h"

namespace muster::python {

// What every cell that Python made has beside its C++ part.
struct PythonPart {
  std::unique_ptr<TracedFunction> outside;  // calls of a Python construct outside of a trace
};

// `Base` as Python makes it. C++ code that calls construct reaches the Python override, if there is one.
template <class Base>
class Trampoline final : public Base, public PythonPart {
 public:
  NB_TRAMPOLINE(Base);

  graph::Values construct(std::span<const graph::Value> inputs) override {
    const nb::gil_scoped_acquire lock;
    const nb::detail::ticket override(nb_trampoline, "construct", nb::detail::str_hash("construct"), false);
    if (!override.key.is_valid()) {
      if constexpr (std::is_abstract_v<Base>)
        throw Exception(Code::invalid_argument,
                        this->description() + " defines no construct, so it cannot be called");
      else
        return Base::construct(inputs);
    }
    nb::list arguments;
    for (const graph::Value& input : inputs) arguments.append(value_object(input));
    const nb::object result = nb_trampoline.base().attr(override.key)(*nb::tuple(arguments));
    graph::Values values;
    ResultForm::of(result, values, this->description() + ".construct");
    return values;
  }
};

// self(*args, **kwargs).
nb::any call_cell(nb::handle self, const nb::args& positional, const nb::kwargs& keywords);

// Raises ValueError when `parent` is a part of `child`.
void refuse_cycle(const nn::Cell& parent, const nn::Cell& child);

// The tensors among `arguments`, of a cell that takes tensors only.
graph::Values tensors_of(const nb::args& arguments, const nn::Cell& cell);

// Makes the cell of an __init__.
template <class Made, class... Arguments>
Made& make_cell(nb::pointer_and_handle<Made> self, Arguments&&... arguments) {
  return *new (self.p) Trampoline<Made>(std::forward<Arguments>(arguments)...);
}

// Of an __init__: keeps its arguments with the object, from which copies are made (muster/_copies.py).
struct KeepsArguments {
  static void precall(PyObject**, std::size_t, nb::detail::cleanup_list*) {}
  static void postcall(PyObject** args, std::size_t count, nb::handle);
};
inline constexpr nb::call_policy<KeepsArguments> keeps_arguments{};

// A class for `Made`, which Python may subclass. Its __init__ is bound by the caller.
template <class Made, class Parent = nn::Cell>
nb::class_<Made, Parent, Trampoline<Made>> bind_cell_class(nb::module_& core, const char* name,
                                                           const char* doc) {
  nb::class_<Made, Parent, Trampoline<Made>> made(core, name, doc);
  if constexpr (!std::is_abstract_v<Made>)
    made.def(
        "construct",
        [](Made& self, const nb::args& inputs) {  // not virtual: this is what super().construct(...) calls
          return nb::borrow<nb::any>(values_object(self.Made::construct(tensors_of(inputs, self))));
        },
        nb::arg("inputs"), "What the cell computes.");
  return made;
}

}  // namespace muster::python
