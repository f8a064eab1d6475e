// What a Python object held when it was looked at, and whether it still does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/code_names.h"

namespace muster::python {

// Values are compared, objects are known again: of those that are let go of meanwhile nothing is kept alive.
struct Seen {
  enum class Kind : std::uint8_t {
    value,     // a number, a text, None, ...: equal
    object,    // the same one, whose parts are as they were
    method,    // of the same object, with the same function
    sequence,  // a list, tuple or deque: the same parts
    mapping,   // a dict: the same keys in the same order, with the same values
    set,       // equal
    bytes,     // an array: the same bytes
    tensor,    // with the same elements in the same place: one that is written to gets others
    size,      // a container with too many elements to look at each: as many
  };
  struct Part;

  Kind kind = Kind::value;
  nb::object type;    // of the object; unset for Kind::object
  nb::object object;  // the value; a weak reference to an object, or itself where there is none; a copy
  std::vector<Part> parts;
  graph::Value tensor = {};
  nb::object array = {};  // itself, of a look whose values may be put back
};

struct Seen::Part {
  enum class Place : std::uint8_t {
    element,
    variable,
    enclosed,
    defaults,
    keyword_defaults,
    attribute,
    type
  };
  Place place;
  nb::object name;  // the key of a dict; of a variable of an enclosing function its index
  Seen seen;
};

// An object that is kept weakly, or strongly where it cannot be; unset once it is gone.
nb::object referent(const nb::object& kept);

// What stands at the place of a part now; unset where nothing does.
nb::object at_place(const Seen::Part& part, nb::handle owner);

// The first difference between what was seen and what is there now.
struct Difference {
  std::string path;  // "config.scale"
  bool is_complete = false;
  std::string was;  // as repr() has it; empty where the object itself is another one
  nb::object now;   // unset: it is gone
  // Others are let pass where it is set.
  bool (*counts)(const std::string& was, nb::handle now) = nullptr;
};

// Whether `now` is what was seen; else `difference` is filled where it is not null.
bool is_same(const Seen& seen, nb::handle now, Difference* difference = nullptr);

// Puts values back that have changed since: numbers, texts and arrays in attributes, variables, lists and
// dicts.
void restore(const Seen& seen, nb::handle now);

// Takes out of a look at `now` what had changed since an earlier one: values, containers, arrays and tensors.
void drop_changed(Seen& after, const Seen& before, nb::handle now);

// Looks at objects, each one once, as deep as names lead that the code it meets loads.
class Look {
 public:
  // Before code runs, with the numbers among the attributes of cells and all that restore() needs; or after
  // it, when nothing is to be kept alive.
  explicit Look(bool is_before) : is_before_(is_before) {}

  // A function, a method or an object that is called, and all that it reads.
  Seen at_callable(nb::handle callable);
  // A cell whose construct is called.
  Seen at_cell(nb::handle cell);

  // Names of attributes that the code loads. With those of an earlier look a look sees at least as much.
  const nb::set& attributes() const { return attributes_; }
  void take_attributes(nb::set names) { attributes_ = std::move(names); }
  // Modules of random numbers that the code reads.
  const nb::list& random_modules() const { return random_modules_; }

 private:
  struct OfClass {
    bool is_of_script = false;  // else the others are empty
    std::vector<std::pair<nb::object, nb::object>> values, code;
  };

  Seen complete(const std::function<Seen()>& look);
  Seen at(nb::handle object);
  Seen at_cell_once(nb::handle cell);
  Seen at_container(nb::handle object);
  Seen at_bytes(nb::handle object);
  Seen at_object(nb::handle object);
  void add_function(Seen& seen, nb::handle function);
  void add_attributes_of(Seen& seen, nb::handle object);
  void add_class(Seen& seen, nb::handle type);
  void add_classes_of(Seen& seen, nb::handle object);
  void add_values_of_classes(Seen& seen, nb::handle object, const nb::dict& own);
  void add_module(Seen& seen, nb::handle module);
  void add(Seen& seen, Seen::Part::Place place, nb::handle name, nb::handle value);
  const OfClass& defined_by(nb::handle type);
  bool enters(nb::handle object);
  bool opens(nb::handle container);

  bool is_before_;
  Libraries libraries_;
  nb::set attributes_;
  nb::list random_modules_;
  std::unordered_map<PyObject*, OfClass> classes_;
  std::unordered_set<PyObject*> entered_;
  std::vector<PyObject*> newly_entered_;  // in the look that goes on
  std::unordered_set<PyObject*> open_;    // containers that are being looked into
  std::size_t looks_ = 0;
  Py_ssize_t kept_bytes_ = 0;
  int depth_ = 0;
};

}  // namespace muster::python
