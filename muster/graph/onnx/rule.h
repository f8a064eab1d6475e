// Private to graph: argument of the ONNX rule of a row (Op::onnx).
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/graph/onnx/onnx.h"
#include "muster/graph/op.h"

namespace muster::graph {

// What the calls of one model share.
struct OnnxBuilder {
  OnnxModel model;
  std::set<std::string> names;  // taken
  std::string batch;            // the size of axis 0 of the inputs, once a node has asked

  // `wanted`, or with a number behind it where that is taken.
  std::string unique(const std::string& wanted);
};

// One node of a graph on its way into a model.
class OnnxCall {
 public:
  struct End {
    std::string name;
    TensorType type;
    std::vector<bool> open;  // by axis: it has the size of the batch, which may be any
  };

  OnnxCall(OnnxBuilder& builder, const Node& node, std::vector<End> inputs, std::vector<End> outputs)
      : builder_(builder), node_(node), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  const Attributes& attributes() const { return node_.attributes; }
  std::size_t inputs() const { return inputs_.size(); }
  const std::string& input(std::size_t index = 0) const { return inputs_[index].name; }
  std::vector<std::string> all_inputs() const;
  const End& in(std::size_t index = 0) const { return inputs_[index]; }
  const End& out(std::size_t index = 0) const { return outputs_[index]; }
  std::size_t outputs() const { return outputs_.size(); }

  // A node whose output other nodes of this rule take; its name.
  std::string make(std::string_view type, std::vector<std::string> inputs, OnnxAttributes attributes = {});
  // The node that gives the first output, or the first `count`. Outputs that no node gives must not be used.
  Result<> give(std::string_view type, std::vector<std::string> inputs, OnnxAttributes attributes = {},
                std::size_t count = 1);
  // Of an operator with int64 indices as its second output, where the op gives another dtype.
  Result<> give_with_indices(std::string_view type, std::vector<std::string> inputs,
                             OnnxAttributes attributes);
  std::size_t given() const { return given_; }

  std::string constant(const Tensor& value);
  std::string scalar(double value, DType dtype);
  std::string list(const std::vector<std::int64_t>& values);
  // `type`.shape, of which open axes have the size of the batch, as an int64 (rank,).
  Result<std::string> shape_of(const End& end);
  std::string cast(std::string value, DType dtype);

  // "the ONNX export of 'pad': why"
  tl::unexpected<Error> refuse(std::string_view why) const;

 private:
  OnnxBuilder& builder_;
  const Node& node_;
  std::vector<End> inputs_;
  std::vector<End> outputs_;
  std::size_t given_ = 0;
};

// A rule: the op is the ONNX operator of this type, with the same inputs and no attributes.
template <std::size_t size>
struct OnnxType {
  char text[size] = {};
  constexpr OnnxType(const char (&type)[size]) {  // NOLINT: implicit by design
    for (std::size_t i = 0; i < size; ++i) text[i] = type[i];
  }
};
template <OnnxType type>
Result<> onnx_as(OnnxCall& call) {
  return call.give(type.text, call.all_inputs());
}

}  // namespace muster::graph
