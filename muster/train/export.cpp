#include "muster/train/export.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "muster/base/protobuf.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/graph/onnx/onnx.h"
#include "muster/train/activity_scope.h"
#include "muster/train/job.h"
#include "muster/train/network_trace.h"

namespace muster::train {
namespace {

using graph::OnnxModel;
using protobuf::Writer;

// Also of a language above, whose exceptions come with a traceback: the last line says what.
Error last_line_of(const std::exception& exception) {
  const std::string text = exception.what();
  return {Code::invalid_argument, text.substr(text.find_last_of('\n', text.size() - 2) + 1)};
}

// The same inputs with one more sample.
Result<std::vector<graph::TensorType>> with_other_batch(std::span<const graph::TensorType> types) {
  std::vector<graph::TensorType> others(types.begin(), types.end());
  for (graph::TensorType& other : others) {
    if (other.shape.rank() == 0 || other.shape[0] != types.front().shape[0])
      return fail(
          Code::invalid_argument,
          fmt::format("export: dynamic_batch is about axis 0 of all inputs, and they are not alike there: "
                      "{} and {}",
                      to_string(types.front()), to_string(other)));
  }
  for (graph::TensorType& other : others) other.shape[0] += 1;
  return others;
}

// ---- The bytes: onnx.proto, IR version 8 ------------------------------------------------------------------

constexpr std::int64_t ir_version = 8;  // that opset 17 came with
// Fields of the messages, as onnx.proto numbers them.
namespace model_field {
constexpr std::uint64_t ir_version = 1, producer = 2, graph = 7, opset = 8;
}
namespace graph_field {
constexpr std::uint64_t node = 1, name = 2, initializer = 5, input = 11, output = 12;
}
namespace node_field {
constexpr std::uint64_t input = 1, output = 2, name = 3, type = 4, attribute = 5;
}
namespace attribute_field {
constexpr std::uint64_t name = 1, real = 2, integer = 3, text = 4, tensor = 5, integers = 8, type = 20;
}
namespace tensor_field {
constexpr std::uint64_t dims = 1, dtype = 2, name = 8, elements = 9;
}

// A tensor up to its elements, which follow as the content of the last block.
Writer head_of(const std::string& name, const Tensor& tensor) {
  Writer head;
  for (const std::int64_t size : tensor.shape()) head.integer(tensor_field::dims, size);
  head.integer(tensor_field::dtype, graph::onnx_dtype(tensor.dtype()));
  if (!name.empty()) head.text(tensor_field::name, name);
  head.begin_block(tensor_field::elements, tensor.size_bytes());
  return head;
}

std::span<const std::byte> elements_of(const Tensor& tensor) { return {tensor.bytes(), tensor.size_bytes()}; }

std::vector<std::byte> attribute_bytes(const graph::OnnxAttribute& attribute) {
  Writer out;
  out.text(attribute_field::name, attribute.name);
  const auto put = [&out](std::int64_t type, auto write) {
    write();
    out.integer(attribute_field::type, type);
  };
  if (const auto* real = std::get_if<float>(&attribute.value))
    put(1, [&] { out.real(attribute_field::real, *real); });
  if (const auto* integer = std::get_if<std::int64_t>(&attribute.value))
    put(2, [&] { out.integer(attribute_field::integer, *integer); });
  if (const auto* text = std::get_if<std::string>(&attribute.value))
    put(3, [&] { out.text(attribute_field::text, *text); });
  if (const auto* tensor = std::get_if<Tensor>(&attribute.value))
    put(4, [&] {
      Writer whole = head_of("", *tensor);
      whole.append(elements_of(*tensor));
      out.block(attribute_field::tensor, whole.bytes());
    });
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&attribute.value))
    put(7, [&] {
      for (const std::int64_t value : *integers) out.integer(attribute_field::integers, value);
    });
  return out.take();
}

std::vector<std::byte> node_bytes(const graph::OnnxNode& node) {
  Writer out;
  for (const std::string& name : node.inputs) out.text(node_field::input, name);
  for (const std::string& name : node.outputs) out.text(node_field::output, name);
  out.text(node_field::name, node.name);
  out.text(node_field::type, node.type);
  for (const graph::OnnxAttribute& attribute : node.attributes)
    out.block(node_field::attribute, attribute_bytes(attribute));
  return out.take();
}

// ValueInfoProto: name 1, type 2 { tensor_type 1 { elem_type 1, shape 2 { dim 1 { dim_value 1 | dim_param 2 }
// } } }
std::vector<std::byte> value_bytes(const graph::OnnxValue& value) {
  Writer shape;
  for (std::size_t axis = 0; axis < value.type.shape.rank(); ++axis) {
    const std::int64_t size = value.type.shape[axis];
    Writer dim;
    if (!value.open[axis])
      dim.integer(1, size);
    else
      dim.text(2, axis == 0 ? "batch" : fmt::format("{}_{}", value.name, axis));
    shape.block(1, dim.bytes());
  }
  Writer tensor;
  tensor.integer(1, graph::onnx_dtype(value.type.dtype));
  tensor.block(2, shape.bytes());
  Writer type;
  type.block(1, tensor.bytes());
  Writer out;
  out.text(1, value.name);
  out.block(2, type.bytes());
  return out.take();
}

// A file as pieces that point into `heads` and into the tensors, which are not copied.
checkpoint::Pieces encode(const OnnxModel& model) {
  Writer before, behind;
  for (const graph::OnnxNode& node : model.nodes) before.block(graph_field::node, node_bytes(node));
  before.text(graph_field::name, model.name);
  for (const graph::OnnxValue& value : model.inputs) behind.block(graph_field::input, value_bytes(value));
  for (const graph::OnnxValue& value : model.outputs) behind.block(graph_field::output, value_bytes(value));

  checkpoint::Pieces made;
  made.heads.emplace_back();  // of the model, once the size of the graph is known
  made.heads.push_back(before.take());
  made.pieces = {{}, made.heads.back()};
  std::size_t graph_bytes = made.heads.back().size() + behind.bytes().size();
  for (const auto& [name, tensor] : model.initializers) {
    const Writer head = head_of(name, tensor);
    Writer opening;
    opening.begin_block(graph_field::initializer, head.bytes().size() + tensor.size_bytes());
    opening.append(head.bytes());
    made.heads.push_back(opening.take());
    made.pieces.emplace_back(made.heads.back());
    made.pieces.push_back(elements_of(tensor));
    graph_bytes += made.heads.back().size() + tensor.size_bytes();
  }
  made.heads.push_back(behind.take());
  made.pieces.emplace_back(made.heads.back());

  Writer opset;
  opset.integer(2, graph::onnx_opset);
  Writer head;
  head.integer(model_field::ir_version, ir_version);
  head.text(model_field::producer, "muster");
  head.block(model_field::opset, opset.bytes());
  head.begin_block(model_field::graph, graph_bytes);
  made.heads.front() = head.take();
  made.pieces.front() = made.heads.front();
  return made;
}

// Of protocol buffers.
constexpr std::size_t file_bytes_max = (std::size_t{2} << 30) - 1;

Result<> check_size(const checkpoint::Pieces& file, const std::string& path) {
  std::size_t total = 0;
  for (const auto& piece : file.pieces) total += piece.size();
  if (total <= file_bytes_max) return {};
  return fail(
      Code::not_provided,
      fmt::format("export: '{}' would have {} bytes, and an ONNX file has at most {}: export parts of the "
                  "network, each to a file of its own",
                  path, total, file_bytes_max));
}

}  // namespace

Result<> export_onnx(nn::Cell& cell, std::span<const Tensor> inputs, const std::string& path,
                     const ExportOptions& options, Files& files) {
  if (inputs.empty())
    return fail(Code::invalid_argument,
                "export: inputs are needed, whose shapes and dtypes those of the file will be");
  const ActivityScope computing(cluster::WorkPhase::computing);
  const InferenceScope not_training(cell);
  std::vector<graph::TensorType> types;
  for (const Tensor& input : inputs) types.push_back({input.dtype(), input.shape()});
  MUSTER_TRY(const graph::Graph graph, trace_network(cell, types));
  graph::OnnxOptions wanted{.input_names = options.input_names, .output_names = options.output_names};
  graph::Graph other;
  if (options.dynamic_batch) {
    MUSTER_TRY(const auto other_types, with_other_batch(types));
    const auto traced_again = [&]() -> Result<graph::Graph> {
      try {
        return trace_network(cell, other_types);
      } catch (const std::exception& exception) {
        return fail(last_line_of(exception));
      }
    }();
    if (!traced_again)
      return fail(
          traced_again.error().code,
          fmt::format("export: with a batch of {} instead of {} the network fails: {}. Leave dynamic_batch "
                      "away, and export it for the size that you need",
                      other_types.front().shape[0], types.front().shape[0], traced_again.error().message));
    other = *traced_again;
    wanted.other_batch = &other;
  }
  MUSTER_TRY(const OnnxModel model, graph::to_onnx(graph, seed(), wanted));
  const checkpoint::Pieces file = encode(model);
  MUSTER_TRY_VOID(check_size(file, path));
  return files.write_pieces(path, file.pieces);
}

}  // namespace muster::train
