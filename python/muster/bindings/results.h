// Results of traced code: its tensors are outputs of the graph, its form is kept beside.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// The form of a result: a tensor, something constant, or a tuple, list or dict of forms.
class ResultForm {
 public:
  // Takes `result` apart: appends its tensors to `values`. `name` is the code's, for errors.
  static ResultForm of(nb::handle result, graph::Values& values, const std::string& name);

  // A result of this form. `values` starts at its first tensor and moves behind its last.
  nb::object build(std::span<const graph::Value>& values) const;

  // The same form around other tensors, with the same constants.
  bool operator==(const ResultForm& other) const;

 private:
  enum class Kind { tensor, constant, tuple, list, dict };
  Kind kind_ = Kind::tensor;
  nb::object constant_;  // or the keys of a dict
  std::vector<ResultForm> parts_;
};

// Whether it is a tensor that is traced, or a tuple, list or dict that holds one.
bool holds_traced(nb::handle value);

}  // namespace muster::python
