// Explanation: what a plan is made of.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <string>

#include "muster/graph/explanation.h"
#include "muster/graph/graph.h"
#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {
namespace {

using graph::Explanation;

nb::object text(std::string_view value) { return nb::str(value.data(), value.size()); }

nb::typed<nb::list, nb::dict> steps_of(const Explanation& self) {
  nb::list made;
  for (const graph::PlanStep& step : self.steps) {
    nb::dict entry;
    entry["op"] = text(step.op);
    entry["kernel"] = text(step.kernel);
    entry["result"] = text(step.result);
    entry["format"] = text(step.format);
    entry["flops"] = step.flops;
    entry["bytes"] = step.bytes;
    made.append(entry);
  }
  return made;
}

nb::typed<nb::dict, nb::str, nb::str> parameter_types_of(const Explanation& self) {
  nb::dict made;
  for (const auto& [name, type] : self.parameters) made[name.c_str()] = text(to_string(type));
  return made;
}

nb::typed<nb::list, nb::dict> workers_of(const Explanation& self) {
  nb::list made;
  for (const graph::Stage& part : self.partition.stages) {
    nb::dict entry;
    entry["rank"] = part.rank;
    entry["placed"] = part.placed;
    entry["parameters"] = part.parameters;
    entry["nodes"] = part.nodes;
    entry["flops"] = part.flops;
    entry["parameters_bytes"] = part.parameters_bytes;
    entry["activations_bytes"] = part.activations_bytes;
    made.append(entry);
  }
  return made;
}

nb::typed<nb::list, nb::dict> value_transfers_of(const Explanation& self) {
  nb::list made;
  for (const graph::ValueTransfer& value_transfer : self.partition.value_transfers) {
    nb::dict entry;
    entry["from"] = value_transfer.from;
    entry["to"] = value_transfer.to;
    entry["what"] = value_transfer.what;
    entry["type"] = text(to_string(value_transfer.type));
    entry["bytes"] = static_cast<std::size_t>(value_transfer.type.shape.elements()) *
                     size_bytes(value_transfer.type.dtype);
    entry["message"] = value_transfer.message;
    made.append(entry);
  }
  return made;
}

std::string picture_of(const Explanation& self) {
  if (!self.partition.stages.empty()) return graph::to_svg(self.partition);
  if (self.mesh.mesh != nullptr) return graph::to_svg(self.mesh);
  throw nb::value_error(
      "there is no picture: nothing of the network is placed on a worker (Cell.place), or lies on a mesh "
      "(parallel.mesh)");
}

}  // namespace

void bind_explanation(nb::module_& core) {
  core.def("_report_use", [] { train::report_use(real_environment()); });
  train::explain_mode();  // begins to watch, where `muster explain` has started this process
  nb::class_<Explanation>(core, "Explanation",
                          "What one plan is made of; str() of it is what `muster explain` prints.")
      .def("__str__", [](const Explanation& self) { return to_string(self); })
      .def_prop_ro(
          "name", [](const Explanation& self) { return self.name; }, "Of the function or cell.")
      .def_prop_ro(
          "steps", &steps_of,
          "A dict for each kernel call: op, kernel, result (the type of its first output), format "
          "('' where it is plain), flops (0 where the op does not count) and bytes read and written.")
      .def_prop_ro("parameters", &parameter_types_of, "The types of the parameters by their names.")
      .def_prop_ro(
          "arena_bytes", [](const Explanation& self) { return self.arena_bytes; },
          "Memory of all values between steps; those whose lives do not meet share it.")
      .def_prop_ro(
          "buckets_bytes", [](const Explanation& self) { return self.buckets_bytes; },
          "Memory of the gradients that are reduced over all workers.")
      .def_prop_ro(
          "workers", &workers_of,
          "How a placed network is divided: a dict for each worker with its rank, what is placed there, its "
          "parameters, nodes, flops, parameters_bytes and activations_bytes. Empty where nothing is placed.")
      .def_prop_ro("crossings", &value_transfers_of,
                   "A dict for each value that travels between workers, in the order of a run: from, to, "
                   "what, type, bytes, and message: those with the same number travel together.")
      .def("svg", &picture_of,
           "The workers and what travels between them as a picture in SVG. ValueError where nothing is "
           "placed.")
      .def_prop_ro("parameters_bytes", &Explanation::parameters_bytes)
      .def_prop_ro("peak_bytes", &Explanation::peak_bytes,
                   "Arena, buckets, parameters, inputs and outputs: all that one run needs at once.")
      .def_prop_ro("flops", &Explanation::flops, "Floating-point operations of the steps that count them.");
}

}  // namespace muster::python
