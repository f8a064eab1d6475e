// Case files: what an op must give for given inputs, as text.
//
//   # a comment
//   case the first rows and columns match        a sentence that begins a case
//   set transpose_b true                         an attribute: true, 3, 0.5, [2, 3], float32 or a word
//   in float (2, 2) 1 2 3 4                      an input; "float" stands for float32 and float64 in turn
//   out float (2, 2) 1 2 3 4                     an output
//   after 3 0 0                                  the elements of a written input afterwards
//   gradient 0 1                                 inputs whose gradients are checked by finite differences
//   error must be alike                          instead of outputs: part of the message
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/graph/graph.h"

namespace muster::graph {

struct CaseTensor {
  std::string dtype;  // "float" or a DType's name
  Shape shape;
  std::vector<double> values;
};

struct CaseAfter {
  std::size_t input = 0;
  std::vector<double> values;
};

struct Case {
  std::string sentence;
  Attributes attributes;
  std::vector<CaseTensor> inputs;
  std::vector<CaseTensor> outputs;
  std::vector<CaseAfter> after;
  std::vector<std::size_t> gradients;
  std::string error;

  // The dtypes that "float" stands for here.
  std::vector<DType> floats() const;
};

// Names the line of what it cannot read.
Result<std::vector<Case>> read_cases(const std::string& text);

Tensor to_tensor(const CaseTensor& given, DType floating);

}  // namespace muster::graph
