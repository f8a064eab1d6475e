// A graph as ONNX has it (opset 17), as a value. What each op becomes stands in its row (Op::onnx); the file
// is written by train::export_onnx.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "muster/base/base.h"
#include "muster/graph/nodes.h"

namespace muster::graph {

// LayerNormalization came with it, and every runtime of the last years knows it.
inline constexpr std::int64_t onnx_opset = 17;

// The number of a dtype there.
std::int64_t onnx_dtype(DType dtype);

struct OnnxAttribute {
  std::string name;
  std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, Tensor> value;
};
using OnnxAttributes = std::vector<OnnxAttribute>;

struct OnnxNode {
  std::string type;
  std::string name;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  OnnxAttributes attributes;
};

struct OnnxValue {
  std::string name;
  TensorType type;
  std::vector<bool> open;  // by axis: it may have any size
};

struct OnnxModel {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<std::pair<std::string, Tensor>> initializers;
  std::vector<OnnxValue> inputs;
  std::vector<OnnxValue> outputs;
};

struct OnnxOptions {
  std::vector<std::string> input_names = {};   // "input" or "input_0", "input_1", ... by default
  std::vector<std::string> output_names = {};  // likewise
  // The same code traced with another size of axis 0 of all inputs: what differs between the two is open. The
  // batch may then have any size. Null: all sizes are those of `graph`.
  const Graph* other_batch = nullptr;
};

// The parameters' elements as they are now, made first where they are not yet. An error names the op that
// ONNX has no counterpart for, and what to do.
Result<OnnxModel> to_onnx(const Graph& graph, std::uint64_t seed, const OnnxOptions& options = {});

}  // namespace muster::graph
