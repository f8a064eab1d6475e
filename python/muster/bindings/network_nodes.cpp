// What code computes, as lists and dicts, and computing it again: for file formats that Python writes and
// reads.
#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/train/network_trace.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

// None for a graph of its own: a branch or the turn of a loop.
nb::object attribute_object(const graph::Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> nb::object {
        using Kind = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Kind, DType>) {
          return dtype_object(value);
        } else if constexpr (std::is_same_v<Kind, graph::GraphPtr>) {
          return nb::none();
        } else if constexpr (std::is_same_v<Kind, std::vector<std::int64_t>>) {
          nb::list sizes;
          for (const std::int64_t size : value) sizes.append(size);
          return nb::tuple(sizes);
        } else {
          return nb::cast(value);
        }
      },
      attribute);
}

nb::list ids_of(const std::vector<graph::ValueId>& ids) {
  nb::list made;
  for (const graph::ValueId id : ids) made.append(id);
  return made;
}

nb::dict node_of(const graph::Node& node) {
  nb::dict attributes;
  for (const auto& [name, value] : node.attributes.entries())
    attributes[nb::str(name.c_str(), name.size())] = attribute_object(value);
  nb::dict made;
  made["op"] = nb::str(node.op->name.data(), node.op->name.size());
  made["attributes"] = attributes;
  made["inputs"] = ids_of(node.inputs);
  made["outputs"] = ids_of(node.outputs);
  made["has_effect"] = node.op->has_effect();
  made["cell"] = node.origin == nullptr ? std::string() : node.origin->cell;
  made["line"] = node.origin == nullptr ? std::string() : node.origin->line;
  return made;
}

nb::dict network_of(const graph::Graph& graph) {
  nb::list values, nodes, parameters, constants;
  for (const graph::TensorType& type : graph.values) {
    nb::list sizes;
    for (const std::int64_t size : type.shape.sizes()) sizes.append(size);
    values.append(nb::make_tuple(dtype_object(type.dtype), nb::tuple(sizes)));
  }
  for (const graph::Node& node : graph.nodes) nodes.append(node_of(node));
  for (const auto& [id, parameter] : graph.parameters)
    parameters.append(nb::make_tuple(id, parameter_object(parameter)));
  for (const auto& [id, tensor] : graph.captured) constants.append(nb::make_tuple(id, tensor_object(tensor)));
  nb::dict made;
  made["values"] = values;
  made["nodes"] = nodes;
  made["inputs"] = ids_of(graph.inputs);
  made["outputs"] = ids_of(graph.outputs);
  made["parameters"] = parameters;
  made["constants"] = constants;
  return made;
}

nb::dict traced_network(const nb::callable& call, const nb::list& inputs, const std::string& name) {
  const train::OriginScope origins;
  const auto trace = graph::Trace::begin(name);
  nb::list given;
  for (const nb::handle input : inputs) {
    const Tensor elements = elements_of(value_from(input));
    given.append(value_object(trace->input({elements.dtype(), elements.shape()})));
  }
  const graph::Trace::Scope scope(*trace);
  graph::Values outputs;
  for (const nb::handle output : nb::list(call(*given))) outputs.push_back(value_from(output));
  return network_of(trace->finish(outputs));
}

graph::Attribute attribute_from_python(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) return nb::cast<std::int64_t>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::tuple>(value) || nb::isinstance<nb::list>(value)) {
    std::vector<std::int64_t> sizes;
    for (const nb::handle each : nb::borrow<nb::object>(value)) sizes.push_back(nb::cast<std::int64_t>(each));
    return sizes;
  }
  return dtype_from(value);
}

nb::list applied(const std::string& op, const nb::list& inputs, const nb::dict& attributes) {
  if (graph::find_op(op) == nullptr) throw nb::value_error(("there is no op '" + op + "'").c_str());
  graph::Values values;
  for (const nb::handle input : inputs) values.push_back(value_from(input));
  graph::Attributes given;
  for (const auto& [name, value] : attributes)
    given.set(nb::cast<std::string>(name), attribute_from_python(value));
  nb::list made;
  for (graph::Value& value : graph::apply_all(op, values, given)) made.append(value_object(std::move(value)));
  return made;
}

nb::list texts_of(const std::vector<std::string_view>& texts) {
  nb::list made;
  for (const std::string_view text : texts) made.append(nb::str(text.data(), text.size()));
  return made;
}

// Of each row that has one: the class of mindspore.ops, its settings, and the arguments of its calls.
nb::dict primitives_of_rows() {
  nb::dict made;
  for (const graph::Op* const op : graph::ops()) {
    if (op->schema.primitives.empty()) continue;
    const graph::PrimitiveAlias& alias = op->schema.primitives.front();
    nb::dict defaults;
    for (const graph::Argument& argument : op->schema.attributes)
      if (!argument.required && !argument.optional)
        defaults[nb::str(argument.name.data(), argument.name.size())] = attribute_object(argument.otherwise);
    made[nb::str(op->name.data(), op->name.size())] =
        nb::make_tuple(nb::str(alias.name.data(), alias.name.size()), texts_of(alias.settings),
                       texts_of(alias.arguments.empty() ? op->schema.inputs : alias.arguments),
                       texts_of(op->schema.inputs), defaults);
  }
  return made;
}

}  // namespace

void bind_network_nodes(nb::module_& core) {
  core.def("_traced_network", &traced_network, nb::arg("call"), nb::arg("inputs"), nb::arg("name"),
           "What `call` computes of tensors like `inputs`; it gives a list of tensors. A dict: the types of "
           "values, nodes with the rows of their ops, and which values are inputs, outputs, parameters and "
           "constants.");
  core.def(
      "_op_names",
      [] {
        std::vector<std::string_view> names;
        for (const graph::Op* const op : graph::ops()) names.push_back(op->name);
        return texts_of(names);
      },
      "The names of all rows.");
  core.def("_apply_row", &applied, nb::arg("op"), nb::arg("inputs"), nb::arg("attributes"),
           "The outputs of one row.");
  core.def("_primitives_of_rows", &primitives_of_rows,
           "By row: the class of mindspore.ops, the names of its settings and of the arguments of its calls, "
           "the inputs of the row, and its defaults.");
}

}  // namespace muster::python
