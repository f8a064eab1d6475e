// Arguments of functions and classes that rows describe: what Python gives as what the row takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// "int | tuple[int, ...] | None"
std::string python_type(const graph::Argument& argument);
nb::object default_of(const graph::Argument& argument);
// Raises TypeError, "elu: alpha must be float, not str ('1')", where `object` is of another type.
graph::Attribute attribute_from(std::string_view owner, std::string_view name,
                                const graph::Argument& argument, nb::handle object);
// The repr of `object`, cut where it is long.
std::string shown(nb::handle object);

// A parameter of a class's constructor.
struct ClassParameter {
  std::string name;
  std::string type;           // in stubs
  nb::object otherwise = {};  // the default; invalid where there is none
  bool by_name_only = false;
};
using ClassParameters = std::vector<ClassParameter>;

// What a call gives for each parameter. Raises TypeError, "Adam: there is no argument rate=1; it is called as
// Adam(params, learning_rate=0.001, ...)", where it does not fit.
std::vector<nb::object> placed(std::string_view owner, const ClassParameters& parameters,
                               const nb::args& positional, const nb::kwargs& keywords);
// "def __init__(self, params: object, learning_rate: object = 0.1) -> None", for stubs and help().
std::string init_signature(const ClassParameters& parameters);

}  // namespace muster::python
