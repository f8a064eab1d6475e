// Callbacks in the Python bindings.
#pragma once

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/trampoline.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/foreign.h"
#include "python/muster/bindings/state.h"

namespace muster::python {

// Every method of a callback, for what is done with each. clang-format never settles on one form of the list.
// clang-format off
#define MUSTER_CALLBACK_METHODS(METHOD) \
  METHOD(begin)                         \
  METHOD(epoch_begin)                   \
  METHOD(step_begin)                    \
  METHOD(step_end)                      \
  METHOD(epoch_end)                     \
  METHOD(end)                           \
  METHOD(on_train_begin)                \
  METHOD(on_train_epoch_begin)          \
  METHOD(on_train_step_begin)           \
  METHOD(on_train_step_end)             \
  METHOD(on_train_epoch_end)            \
  METHOD(on_train_end)                  \
  METHOD(on_eval_begin)                 \
  METHOD(on_eval_epoch_begin)           \
  METHOD(on_eval_step_begin)            \
  METHOD(on_eval_step_end)              \
  METHOD(on_eval_epoch_end)             \
  METHOD(on_eval_end)
// clang-format on

// `Base` as Python makes it: methods that a Python subclass overrides are called there.
template <class Base>
class CallbackTrampoline final : public Base {
 public:
  NB_TRAMPOLINE(Base);

#define MUSTER_OVERRIDE(method)                               \
  Result<> method(train::CallbackContext& context) override { \
    const auto answer = overridden(#method, context);         \
    return answer ? *answer : Base::method(context);          \
  }
  MUSTER_CALLBACK_METHODS(MUSTER_OVERRIDE)
#undef MUSTER_OVERRIDE

  // A state_dict in Python is the whole state; with it, load_state_dict is one's own too.
  Result<train::State> state() override {
    return with_python([&]() -> Result<train::State> {
      const nb::object method = override_of("state_dict");
      if (!method.is_valid()) return Base::state();
      return called_state_dict(nb_trampoline.base(), method);
    });
  }
  Result<> load_state(const train::State& state) override {
    return with_python([&]() -> Result<> {
      if (!override_of("state_dict").is_valid()) return Base::load_state(state);
      return call_load_state_dict(nb_trampoline.base(), override_of("load_state_dict"), state);
    });
  }
  // A state_dict in Python is each worker's own unless the class says that it is not.
  bool shares_state() const override {
    const nb::gil_scoped_acquire lock;
    if (!override_of("state_dict").is_valid()) return Base::shares_state();
    const nb::object said = nb::getattr(nb_trampoline.base(), "state_is_shared", nb::bool_(false));
    return nb::cast<bool>(said);
  }
  Result<> load_state_of_another(const train::State& state) override {
    if (!override_of_state_dict()) return Base::load_state_of_another(state);
    return load_state(state);
  }
  // Attributes that a subclass in Python has set.
  std::optional<std::string> forgets() const override {
    const nb::gil_scoped_acquire lock;
    const nb::handle self = nb_trampoline.base();
    if (self.type().is(nb::type<Base>()) || override_of("state_dict").is_valid() ||
        !nb::hasattr(self, "__dict__") || nb::len(nb::object(self.attr("__dict__"))) == 0)
      return std::nullopt;
    return class_name(self);
  }

 private:
  bool override_of_state_dict() const {
    const nb::gil_scoped_acquire lock;
    return override_of("state_dict").is_valid();
  }
  nb::object override_of(const char* name) const {
    const nb::detail::ticket override(nb_trampoline, name, nb::detail::str_hash(name), false);
    if (!override.key.is_valid()) return {};
    return nb_trampoline.base().attr(override.key);
  }
  // A function that was set on the object itself: callback.step_end = print.
  nb::object own_attribute(const char* name) const {
    const nb::object attributes = nb::steal(PyObject_GenericGetDict(nb_trampoline.base().ptr(), nullptr));
    if (attributes.is_valid()) return nb::borrow(PyDict_GetItemString(attributes.ptr(), name));
    PyErr_Clear();
    return {};
  }
  // What the Python override of `method` answered; nothing when there is none.
  std::optional<Result<>> overridden(const char* method, train::CallbackContext& context) {
    std::optional<Result<>> answer;
    const Result<> called = with_python([&]() -> Result<> {
      const nb::detail::ticket override(nb_trampoline, method, nb::detail::str_hash(method), false);
      const nb::object hook = override.key.is_valid() ? nb::object(nb_trampoline.base().attr(override.key))
                                                      : own_attribute(method);
      if (!hook.is_valid()) return {};
      answer.emplace();
      hook(nb::cast(&context, nb::rv_policy::reference));
      return {};
    });
    if (!called) answer = called;
    return answer;
  }
};

// In a loop by hand a script may make the context itself: on_train_begin then calls begin, which does
// nothing.
void call_with_own_context(nb::handle callback, std::string_view method, nb::handle context);
// Callbacks of the library read what the context of a Model has.
[[noreturn]] void refuse_own_context(nb::handle callback, std::string_view method);

// The methods of `Made` for Python. Not virtual: these are what super().step_end(...) calls.
template <class Made, class Class>
void bind_callback_methods(Class& made) {
#define MUSTER_BIND(method)                                          \
  made.def(                                                          \
      #method,                                                       \
      [](nb::handle_t<Made> self, nb::handle context) {              \
        train::CallbackContext* known = nullptr;                     \
        if (nb::try_cast(context, known) && known != nullptr)        \
          return unwrap(nb::cast<Made&>(self).Made::method(*known)); \
        if constexpr (std::is_same_v<Made, train::Callback>)         \
          return call_with_own_context(self, #method, context);      \
        refuse_own_context(self, #method);                           \
      },                                                             \
      nb::arg("run_context"), nb::sig("def " #method "(self, run_context: CallbackContext) -> None"));
  MUSTER_CALLBACK_METHODS(MUSTER_BIND)
#undef MUSTER_BIND
  bind_state<Made>(made);
}

// A class for `Made`, which Python may subclass. Its __init__ is bound by the caller.
template <class Made>
nb::class_<Made, train::Callback, CallbackTrampoline<Made>> bind_callback_class(nb::module_& core,
                                                                                const char* name,
                                                                                const char* doc) {
  nb::class_<Made, train::Callback, CallbackTrampoline<Made>> made(core, name, doc);
  bind_callback_methods<Made>(made);
  return made;
}

// None, one callback, or a list or tuple of them.
std::vector<train::CallbackPtr> callbacks_from(nb::handle object);

}  // namespace muster::python
