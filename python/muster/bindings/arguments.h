// The arguments of a traced call: tensors are inputs of the graph, everything else is a part of its
// signature.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/copied_arguments.h"

namespace muster::python {

// One call's arguments, taken apart. Borrows `positional` and `keywords`, which must outlive it.
class Arguments {
 public:
  Arguments(nb::handle positional, nb::handle keywords);

  // The tensors in order of appearance: concrete ones, or traced ones inside of a trace.
  std::span<const graph::Value> tensors() const { return tensors_; }
  // What a positional argument is made of: a parameter, or `count` of the tensors from `first` on.
  struct Position {
    graph::ParameterPtr parameter;
    std::size_t first = 0;
    std::size_t count = 0;
  };
  // Raises ValueError when argument `position` is no tensor and holds none.
  Position of_position(std::size_t position) const;
  // That argument, with `values` instead of its tensors.
  nb::object argument_with(std::size_t position, std::span<const graph::Value> values) const;
  // Everything else as text, one line for each argument, equal exactly when a graph made for one call serves
  // the other. Empty when all arguments are tensors in positions.
  const std::string& signature() const { return signature_; }
  // The first argument that differs between two signatures, for people: "argument 1 is int 5, was int 4".
  static std::string difference(std::string_view signature, std::string_view before);
  // Objects that the signature names by their address and that must therefore live as long as it is kept.
  const std::vector<nb::object>& identities() const { return identities_; }

  // Why a graph cannot take them; empty when it can. Code that runs op by op takes whatever there is.
  const std::string& refusal() const { return refusal_; }

  // The same arguments with `values` instead of the tensors.
  CopiedArguments with(std::span<const graph::Value> values) const;

  // The containers among them, in order of appearance; one that stands twice in one argument is there once.
  std::span<const Holder> holders() const { return holders_; }

 private:
  // Each of these says whether tensors are in it.
  bool collect_argument(nb::handle object);
  bool collect(nb::handle object, std::size_t depth);
  bool collect_container(nb::handle object, Container container, std::size_t depth);
  bool collect_parts(nb::handle object, Container container, std::size_t depth);
  void open_container(nb::handle object, Container container);
  void write_key(const ContainerPart& part, Container container);
  void collect_leaf(nb::handle object);
  void collect_attributes(nb::handle input);
  void write_identity(nb::handle object);
  void collect_keywords();
  void refuse(std::string text);

  nb::handle positional_;
  nb::handle keywords_;
  std::vector<graph::Value> tensors_;
  std::vector<Holder> holders_;
  std::unordered_map<PyObject*, std::size_t> met_;  // containers of the argument in progress
  std::size_t parts_in_objects_ = 0;                // of that argument
  std::size_t open_objects_ = 0;
  std::string refusal_;
  std::vector<std::size_t> first_tensor_, first_holder_;  // of each positional argument
  std::size_t positional_tensors_ = 0;                    // how many they hold together
  std::string signature_;
  std::vector<nb::object> identities_;
};

}  // namespace muster::python
