// Cells in the Python bindings: one C++ object, with a trampoline for `construct` when Python subclasses it.
#pragma once

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/trampoline.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/exceptions.h"
#include "python/muster/bindings/guards.h"
#include "python/muster/bindings/results.h"
#include "python/muster/bindings/traced_function.h"
#include "python/muster/bindings/value.h"

namespace muster::python {

// A call within a trace, which is not kept by it.
struct TracedCall {
  std::weak_ptr<graph::Trace> trace;
  std::size_t node_count = 0;              // of the trace behind the call
  std::size_t own_gradient_count = 0;      // there too
  std::vector<std::uint32_t> inputs = {};  // places of the trace, as those of the outputs
  std::vector<std::pair<graph::TensorType, std::uint32_t>> outputs = {};
  nb::object container = {};  // the class of the result, a tuple or list; unset for a tensor
};

// A call in eager mode whose gradient may be asked for.
struct TapedCall {
  std::shared_ptr<graph::Tape> owned;  // until a gradient goes on with it
  std::weak_ptr<graph::Tape> tape;
  graph::Values inputs = {};
  nb::object result = {};
  std::uint64_t writes = 0;  // to parameters, behind the call
};

// What every cell that Python made has beside its C++ part.
struct PythonPart {
  std::unique_ptr<TracedFunction> outside;  // calls of a Python construct outside of a trace
  std::unique_ptr<TracedCall> last_traced;
  std::unique_ptr<TapedCall> last_taped;
  bool records_calls = false;  // in eager mode
};

// Whether a call of construct is to be noted, since its gradients are those of the class's bprop.
bool notes_bprop(nb::handle self);

// construct(), which is called with (*positional, **keywords), so noted.
nb::object with_python_bprop(nb::handle self, nn::Cell& cell, nb::handle positional, nb::handle keywords,
                             const std::function<nb::object()>& construct);

// Whether functions are registered to be called before or after construct.
bool has_hooks(nb::handle self);

// construct(args, kwargs) between such functions. An Exception in traced code: they are called with elements.
nb::object with_hooks(nb::handle self, const nn::Cell& cell, nb::handle positional, nb::handle keywords,
                      const std::function<nb::object(nb::handle, nb::handle)>& construct);

// What a SequentialCell computes: each of its cells gets what the one before it returned, as one argument.
nb::object call_in_sequence(const nn::Cell& cell, const nb::args& inputs);

// The tensors among `arguments`, of a cell that takes tensors only.
graph::Values tensors_of(const nb::args& arguments, const nn::Cell& cell);

// Cell::call_with_loss, where the network and the loss have constructs in Python; else nothing was done.
std::optional<nn::LossCall> call_with_python_loss(nb::handle self, nn::Cell& network,
                                                  std::span<const graph::Value> inputs, nn::Cell& loss_fn,
                                                  bool add_cast_fp32);

// `Base` as Python makes it. C++ code that calls construct reaches the Python override, if there is one.
template <class Base>
class Trampoline final : public Base, public PythonPart {
 public:
  NB_TRAMPOLINE(Base);

  graph::Values construct(std::span<const graph::Value> inputs) override {
    const nb::gil_scoped_acquire lock;
    const nb::handle own = nb_trampoline.base();
    const nb::detail::ticket override(nb_trampoline, "construct", nb::detail::str_hash("construct"), false);
    const bool is_noted = notes_bprop(own), is_hooked = has_hooks(own);
    const bool in_python = override.key.is_valid() || std::is_same_v<Base, nn::SequentialCell>;
    if constexpr (!std::is_abstract_v<Base>)
      if (!in_python && !is_noted && !is_hooked) return Base::construct(inputs);
    nb::tuple arguments = tuple_of(inputs, &value_object);
    if constexpr (std::is_base_of_v<nn::Optimizer, Base>)
      // construct(self, gradients), as scripts call it
      if (in_python) arguments = nb::make_tuple(arguments);
    const nb::object self = nb::borrow(own);
    const auto constructed = [&](nb::handle positional, nb::handle) -> nb::object {
      const nb::args given = nb::borrow<nb::args>(positional);
      if (in_python) {
        guard_construct(self);
        return self.attr("construct")(*given);
      }
      if constexpr (std::is_abstract_v<Base>)
        throw Exception(Code::invalid_argument,
                        this->description() + " defines no construct, so it cannot be called");
      else
        return values_object(Base::construct(tensors_of(given, *this)));
    };
    const auto hooked = [&] {
      return is_hooked ? with_hooks(self, *this, arguments, nb::dict(), constructed)
                       : constructed(arguments, nb::handle());
    };
    const nb::object result = kept_recoverable([&] {
      return is_noted ? with_python_bprop(self, *this, arguments, nb::handle(), hooked) : hooked();
    });
    if constexpr (std::is_base_of_v<nn::Optimizer, Base>)
      if (in_python) Base::end_own_construct();
    graph::Values values;
    ResultForm::of(result, values, this->description() + ".construct");
    return values;
  }

  nn::LossCall call_with_loss(std::span<const graph::Value> inputs, nn::Cell& loss_fn,
                              bool add_cast_fp32) override {
    const nb::gil_scoped_acquire lock;
    auto call = call_with_python_loss(nb_trampoline.base(), *this, inputs, loss_fn, add_cast_fp32);
    return call ? *std::move(call) : Base::call_with_loss(inputs, loss_fn, add_cast_fp32);
  }

  void set_train(bool training) override {
    const nb::gil_scoped_acquire lock;
    const nb::detail::ticket override(nb_trampoline, "set_train", nb::detail::str_hash("set_train"), false);
    if (!override.key.is_valid()) return Base::set_train(training);
    nb::borrow(nb_trampoline.base()).attr(override.key)(training);
  }

  // MindSpore's name for it.
  std::string settings() const override {
    const nb::gil_scoped_acquire lock;
    const nb::handle self = nb_trampoline.base();
    if (!nb::hasattr(self, "extend_repr")) return Base::settings();
    return nb::cast<std::string>(nb::str(self.attr("extend_repr")()));
  }
};

// What Python gets of what a cell gave: its values, or the loss and the gradients of a step by name.
nb::object result_for_python(const nn::Cell& cell, const graph::Values& values);

// Whether calls of the cell in eager mode are recorded, so that its gradient for the inputs of the last one
// needs no other forward pass.
void record_calls(nn::Cell& cell, bool records);
// The next gradient goes on with the last call of the cell, where that had these inputs.
void resume_call(nn::Cell& cell, nb::handle inputs);

// self(*args, **kwargs).
nb::any call_cell(nb::handle self, const nb::args& positional, const nb::kwargs& keywords);

// Raises ValueError when `parent` is a part of `child`.
void refuse_cycle(const nn::Cell& parent, const nn::Cell& child);

// Makes the cell of an __init__.
template <class Made, class... Arguments>
Made& make_cell(nb::pointer_and_handle<Made> self, Arguments&&... arguments) {
  refuse_abstract(self.h);
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
          return nb::borrow<nb::any>(result_for_python(self, self.Made::construct(tensors_of(inputs, self))));
        },
        nb::arg("inputs"), "What the cell computes.");
  return made;
}

}  // namespace muster::python
