// Results of traced code: its tensors are outputs of the graph, its form is kept beside.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/copied_arguments.h"
#include "python/muster/bindings/pytree.h"

namespace muster::python {

// The form of a result: a tensor, something constant, a container of forms, or a container that was given.
class ResultForm {
 public:
  // Takes `result` apart: appends its tensors to `values`. `name` is the code's, for errors. Lists, dicts and
  // objects among `given` are those of the call again.
  static ResultForm of(nb::handle result, graph::Values& values, const std::string& name,
                       const CopiedArguments* given = nullptr);

  // A result of this form. `values` starts at its first tensor and moves behind its last; `holders` are
  // those of the call's arguments.
  nb::object build(std::span<const graph::Value>& values, std::span<const Holder> holders = {}) const;

  // The same form around other tensors, with the same constants.
  bool operator==(const ResultForm& other) const;

 private:
  enum class Kind { tensor, constant, container, given };
  struct Source {
    const std::string& name;
    const CopiedArguments* given;
  };

  static ResultForm of_part(nb::handle result, graph::Values& values, const Source& source,
                            std::size_t depth);

  nb::object build_container(std::span<const graph::Value>& values, std::span<const Holder> holders) const;

  Kind kind_ = Kind::tensor;
  nb::object constant_;                // or the class of a container, or what was set on a tensor
  std::vector<ContainerPart> places_;  // of the parts of a container; their values are unset
  std::vector<ResultForm> parts_;
  std::size_t holder_ = 0;
};

// What code returned and what it changed among the arguments, at each call of one plan.
class CallForm {
 public:
  // Takes both apart: the tensors of the result come first, `result_count` of them.
  static CallForm of(nb::handle result, const CopiedArguments& given, graph::Values& values,
                     const std::string& name);

  // The result, once the arguments are changed. `values` moves behind the last one of the form.
  nb::object build(std::span<const graph::Value>& values, std::span<const Holder> holders) const;

  std::size_t result_count() const { return result_count_; }

 private:
  struct Change {
    std::size_t holder;
    ContainerPart place;
    std::optional<ResultForm> part;  // none: it is gone
  };

  ResultForm result_;
  std::size_t result_count_ = 0;
  std::vector<Change> changes_;
};

// Whether it is a tensor that is traced, or a container or function that holds one.
bool holds_traced(nb::handle value);

}  // namespace muster::python
