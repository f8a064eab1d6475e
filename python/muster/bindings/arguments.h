// The arguments of a traced call: tensors are inputs of the graph, everything else is a part of its
// signature.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"

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

  // The same arguments with `values` instead of the tensors: (args, kwargs).
  std::pair<nb::object, nb::object> with(std::span<const graph::Value> values) const;

 private:
  void collect(nb::handle object, std::size_t depth);
  void collect_sequence(nb::handle object, std::size_t depth);
  void collect_mapping(nb::handle object, std::size_t depth);
  void collect_keywords();
  bool collect_plain(nb::handle object);

  nb::handle positional_;
  nb::handle keywords_;
  std::vector<graph::Value> tensors_;
  std::vector<std::size_t> first_tensor_;  // of each positional argument
  std::size_t positional_tensors_ = 0;     // how many they hold together
  std::string signature_;
  std::vector<nb::object> identities_;
};

}  // namespace muster::python
