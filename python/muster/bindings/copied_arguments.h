// A call's arguments with other tensors, for code that is traced or runs op by op; and what that code does to
// the lists, dicts and objects among them.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/pytree.h"

namespace muster::python {

// A container among the arguments.
struct Holder {
  nb::handle object;
  bool holds_tensors = false;  // somewhere below
  bool is_opaque = false;      // too deep or too large to be looked into
};

// Whether it is an input of a graph: a tensor or an array. A parameter is none: it is known by its identity.
bool is_input(nb::handle object);

// Copies arguments in the order in which Arguments looked at them.
class ArgumentCopier {
 public:
  // With what a script has set on the tensors as attributes, or without.
  ArgumentCopier(std::span<const Holder> holders, std::span<const graph::Value> values,
                 bool with_attributes = false)
      : holders_(holders), values_(values), with_attributes_(with_attributes) {}

  nb::object copy(nb::handle argument);

  struct Copy {
    nb::object made = {};
    std::vector<ContainerPart> parts = {};
    bool is_own = false;  // the caller's, for no tensor is in it: code may know it again
    bool is_opaque = false;
  };
  std::vector<Copy> take_copies() { return std::move(copies_); }

 private:
  nb::object of(nb::handle object);
  nb::object of_input(nb::handle object);
  nb::object of_container(nb::handle object, Container container);

  std::span<const Holder> holders_;
  std::span<const graph::Value> values_;
  bool with_attributes_;
  std::size_t next_value_ = 0;
  std::vector<Copy> copies_;                        // as holders_
  std::unordered_map<PyObject*, std::size_t> met_;  // in the argument in progress
};

class CopiedArguments {
 public:
  nb::object positional, keywords;

  CopiedArguments(nb::object positional, nb::object keywords, std::vector<ArgumentCopier::Copy> copies);

  // What code put into a container, or took out of it.
  struct Change {
    std::size_t holder;  // of Arguments::holders()
    ContainerPart part;  // its value is unset where it is gone
  };
  std::vector<Change> changes() const;
  // Takes what code put into the caller's own containers out again.
  void restore() const;
  // Which of Arguments::holders() this list, dict or object stands for.
  std::optional<std::size_t> holder_of(nb::handle object) const;

 private:
  std::vector<ArgumentCopier::Copy> copies_;
  std::unordered_map<PyObject*, std::size_t> holders_of_;  // what was made, tuples apart
};

}  // namespace muster::python
