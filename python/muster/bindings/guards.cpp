#include "python/muster/bindings/guards.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/graph/host_function.h"
#include "python/muster/bindings/interpreter_lock.h"
#include "python/muster/bindings/process.h"
#include "python/muster/bindings/results.h"
#include "python/muster/bindings/row_arguments.h"
#include "python/muster/bindings/seen.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

bool is_plain(nb::handle object) {
  return object.is_none() || PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()) ||
         PyUnicode_Check(object.ptr());
}

// A Counter, a defaultdict.
bool is_tally(nb::handle object) {
  if (!PyDict_Check(object.ptr()) || PyDict_CheckExact(object.ptr())) return false;
  for (const auto [key, value] : nb::borrow<nb::dict>(object))
    if (!PyLong_Check(value.ptr()) && !PyFloat_Check(value.ptr())) return false;
  return true;
}

// Numbers and texts, and lists of nothing else: what people count and note with. A plain dict that grows is a
// memo.
bool is_note(nb::handle object) {
  if (!object.is_valid()) return false;
  if (is_tally(object)) return true;
  if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr())) return is_plain(object);
  for (const nb::handle item : nb::iter(object))
    if (!is_note(item)) return false;
  return true;
}

// What is filled in where there was None is a memo, too, and so is an array of another size. A tensor of the
// trace has no elements behind it.
bool is_effect(const std::string& was, nb::handle now) {
  if (graph::may_fall_back() && now.is_valid() && holds_traced(now)) return true;
  if (was == "None") return false;
  const bool is_array = now.is_valid() && PyObject_CheckBuffer(now.ptr()) != 0 && !is_value(now);
  return is_note(now) || (is_array && !was.empty());
}

// Where the code of a trace begins: a callable, or a cell whose construct is called.
struct Root {
  nb::object object;  // strong while it is traced
  bool is_cell = false;
};

// Python's generators before the code ran.
struct RandomGenerator {
  nb::object module, state;
};

bool is_of_python(nb::handle module) { return module.attr("__name__").equal(nb::str("random")); }

nb::object generator_of(nb::handle module) {
  return module.attr("__name__").equal(nb::str("numpy")) ? nb::object(module.attr("random"))
                                                         : nb::borrow(module);
}

nb::object state_of(nb::handle module) {
  if (is_of_python(module)) return module.attr("getstate")();
  const nb::tuple state = nb::borrow<nb::tuple>(generator_of(module).attr("get_state")());
  nb::list made;  // its array as a tuple: two of them are compared
  for (const nb::handle part : state)
    made.append(nb::hasattr(part, "tolist") ? nb::object(nb::tuple(part.attr("tolist")()))
                                            : nb::borrow(part));
  return nb::tuple(made);
}

std::string qualified_name(nb::handle object) {
  const nb::object name = nb::getattr(object, "__qualname__", nb::none());
  return nb::cast<std::string>(nb::str(name.is_none() ? object.type().attr("__qualname__") : name));
}

class PythonGuards final : public graph::Guards {
 public:
  ~PythonGuards() override {
    if (!Py_IsInitialized()) {  // the interpreter took its objects along
      static_cast<void>(objects_.release());
      return;
    }
    const InterpreterLock lock;
    objects_.reset();
  }

  void add(nb::handle object, bool is_cell) {
    for (const Root& root : objects_->roots)
      if (root.object.ptr() == object.ptr()) return;
    objects_->roots.push_back({nb::borrow(object), is_cell});
    objects_->before.push_back(look_at(objects_->look, objects_->roots.back()));
    note_generators();
  }

  bool settle() override {
    const InterpreterLock lock;
    look_for_effects();
    look_again();
    objects_->roots.clear();
    objects_->before.clear();
    objects_->generators.clear();
    objects_->look = Look(true);
    return !objects_->after.empty();
  }

  void undo() override {
    const InterpreterLock lock;
    for (std::size_t i = 0; i < objects_->before.size(); ++i)
      restore(objects_->before[i], objects_->roots[i].object);
    for (const auto& [module, state] : objects_->generators)
      generator_of(module).attr(is_of_python(module) ? "setstate" : "set_state")(state);
  }

  std::uint64_t tree_version() const override {
    const InterpreterLock lock;
    for (const Guarded& guarded : objects_->after)
      if (!is_same(guarded.seen, guarded.now())) return 1;
    return 0;
  }

  std::string description() const override { return "what the code reads"; }

  std::string change_since(std::uint64_t) const override {
    const InterpreterLock lock;
    for (const Guarded& guarded : objects_->after) {
      Difference difference;
      if (is_same(guarded.seen, guarded.now(), &difference)) continue;
      const std::string what =
          difference.path.empty() ? guarded.name : fmt::format("'{}' in {}", difference.path, guarded.name);
      if (!difference.now.is_valid()) return what + " is gone";
      if (difference.was.empty()) return what + " was changed";
      return fmt::format("{} is {}, was {}", what, shown(difference.now), difference.was);
    }
    return description() + " was changed";
  }

 private:
  struct Guarded {
    Seen seen;
    std::string name;

    nb::object now() const { return referent(seen.object); }
  };

  void note_generators() {
    for (const nb::handle module : objects_->look.random_modules()) {
      const auto is_of = [&](const RandomGenerator& known) { return known.module.is(module); };
      if (std::ranges::none_of(objects_->generators, is_of))
        objects_->generators.push_back({nb::borrow(module), state_of(module)});
    }
  }

  // What the code did while it was traced, and will not do at each call, for people: "Net changes 'calls'".
  std::string effect() const {
    for (std::size_t i = 0; i < objects_->before.size(); ++i) {
      const nb::object& object = objects_->roots[i].object;
      Difference difference;
      difference.counts = &is_effect;
      if (!is_same(objects_->before[i], object, &difference))
        return fmt::format("{} changes '{}'", qualified_name(object), difference.path);
    }
    for (const auto& [module, state] : objects_->generators)
      if (!state.equal(state_of(module)))
        return fmt::format("{} draws random numbers from '{}'",
                           qualified_name(objects_->roots.front().object),
                           nb::cast<std::string>(module.attr("__name__")));
    return {};
  }

  // Op by op the code does it at each call, where that is allowed; else people are told.
  void look_for_effects() const {
    const std::string what = effect();
    if (what.empty()) return;
    if (graph::may_fall_back()) {
      graph::note_untraceable();
      throw Exception(Code::invalid_argument, what);
    }
    const std::string text = fmt::format(
        "{} while it is traced: that happens once for each trace, and not at each call. Give it as an "
        "argument, keep it in a Parameter, or use set_context(mode='eager')",
        what);
    if (process().effects_told.insert(text).second) log::warning(text);
  }

  static Seen look_at(Look& look, const Root& root) {
    return root.is_cell ? look.at_cell(root.object) : look.at_callable(root.object);
  }

  // With the names of attributes that all of the code loads: those of a function that was met late, too.
  void look_again() {
    Look look(false);
    look.take_attributes(objects_->look.attributes());
    for (std::size_t i = 0; i < objects_->roots.size(); ++i) {
      const Root& root = objects_->roots[i];
      Seen seen = look_at(look, root);
      drop_changed(seen, objects_->before[i],
                   root.object);  // two traces that append to one list would end each other
      if (!seen.parts.empty()) objects_->after.push_back({std::move(seen), qualified_name(root.object)});
    }
  }

  struct Objects {
    std::vector<Root> roots;
    Look look{true};
    std::vector<Seen> before;
    std::vector<RandomGenerator> generators;
    std::vector<Guarded> after;
  };
  std::unique_ptr<Objects> objects_ = std::make_unique<Objects>();
};

void add_root(nb::handle object, bool is_cell) {
  graph::Trace& trace = *graph::Trace::current();
  if (trace.guards() == nullptr) trace.set_guards(std::make_shared<PythonGuards>());
  static_cast<PythonGuards&>(*trace.guards()).add(object, is_cell);
}

}  // namespace

void guard(nb::handle callable) {
  if (!graph::is_tracing()) return;
  if (!PyMethod_Check(callable.ptr())) return add_root(callable, false);
  add_root(PyMethod_GET_FUNCTION(callable.ptr()), false);
  add_root(PyMethod_GET_SELF(callable.ptr()), false);
}

void guard_construct(nb::handle self) {
  if (graph::is_tracing()) add_root(self, true);
}

}  // namespace muster::python
