// What a copy of a cell is given beside its arguments, children and parameters (muster/_copies.py).
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/process.h"

namespace muster::python {
namespace {

using nn::Cell;

// Rule, low, inputs, outputs, automatic; dtypes by name.
using PrecisionParts =
    std::tuple<int, std::string, std::optional<std::string>, std::optional<std::string>, bool>;
using PlaceParts = std::tuple<std::uint32_t, std::string>;
using Parts =
    std::tuple<std::string, bool, bool, bool, std::optional<PrecisionParts>, std::optional<PlaceParts>, bool>;

std::optional<std::string> name_of(const std::optional<DType>& dtype) {
  return dtype ? std::optional(std::string(to_string(*dtype))) : std::nullopt;
}

DType dtype_named(const std::string& name) {
  const auto found = dtype_from_string(name);
  if (!found) throw nb::value_error(("there is no dtype '" + name + "'").c_str());
  return *found;
}

std::optional<DType> dtype_named(const std::optional<std::string>& name) {
  return name ? std::optional(dtype_named(*name)) : std::nullopt;
}

Parts cell_state(const Cell& cell) {
  const nn::CellState state = cell.state();
  std::optional<PrecisionParts> precision;
  if (state.precision)
    precision.emplace(static_cast<int>(state.precision->ops.rule), to_string(state.precision->ops.low),
                      name_of(state.precision->inputs), name_of(state.precision->outputs),
                      state.precision->automatic);
  std::optional<PlaceParts> place;
  if (state.place) place.emplace(state.place->rank, state.place->where);
  return {state.path, state.has_parent, state.auto_prefix, state.training, precision,
          place,      state.recomputes};
}

void restore_cell(Cell& cell, const Parts& parts) {
  const auto& [path, has_parent, auto_prefix, training, precision, place, recomputes] = parts;
  nn::CellState state{.path = path,
                      .has_parent = has_parent,
                      .auto_prefix = auto_prefix,
                      .training = training,
                      .recomputes = recomputes};
  if (precision) {
    const auto& [rule, low, inputs, outputs, automatic] = *precision;
    state.precision =
        nn::CellPrecision{.ops = {.rule = static_cast<graph::Precision::Rule>(rule), .low = dtype_named(low)},
                          .inputs = dtype_named(inputs),
                          .outputs = dtype_named(outputs),
                          .automatic = automatic};
  }
  cell.restore(std::move(state));
  if (place) unwrap(cell.place_at("MS_WORKER", std::get<0>(*place), std::get<1>(*place)));
}

}  // namespace

void bind_cell_state(nb::module_& core) {
  core.def("_cell_state", &cell_state, nb::arg("cell"), "Modes, path and place of this cell alone.");
  core.def(
      "_watch", [](const Cell& cell) { graph::watch(cell); }, nb::arg("cell"),
      "What is being traced depends on the cell as it is now.");
  core.def("_set_without_gradient", &graph::set_without_gradient, nb::arg("without"),
           "Whether what runs now counts as constant; gives what it was before.");
  core.def("_is_without_gradient", &graph::is_without_gradient);
  core.def("_record_calls", &record_calls, nb::arg("cell"), nb::arg("records"),
           "Whether eager calls are recorded, so that a gradient for the same inputs needs no other pass.");
  core.def("_resume_call", &resume_call, nb::arg("cell"), nb::arg("inputs"),
           "The next gradient goes on with the last call of the cell, where that had these inputs.");
  core.def(
      "_merge_calls", [](bool merges) { process().merges_calls = merges; }, nb::arg("merges"),
      "Whether a cell whose gradient is taken in a trace is not computed again where the trace has called it "
      "with the same inputs.");
  core.def(
      "_order_inputs_by", [](nb::object order) { process().input_order = order.release(); }, nb::arg("order"),
      "Called with a cell, a tuple and a dict before a cell is called with inputs by name: gives all by "
      "place, or None where the cell takes names itself.");
  core.def(
      "_replicate_outputs", [](bool replicates) { process().replicates_outputs = replicates; },
      nb::arg("replicates"),
      "Whether cells and functions that are first called from now on return to all workers what they "
      "return.");
  core.def("_is_tracing", &graph::is_tracing, "Whether a graph is being made.");
  core.def(
      "_traced_cost",
      [] {
        const graph::Trace* const trace = graph::Trace::current();
        return trace == nullptr ? 0.0 : trace->cost();
      },
      "What the graph that is being made costs so far, in nanoseconds of some machine.");
  core.def(
      "_notes_gradients", [] { return graph::is_tracing() || graph::is_taping(); },
      "Whether gradients may be asked of what runs now.");
  core.def("_restore_cell", &restore_cell, nb::arg("cell"), nb::arg("state"), "Sets what _cell_state gave.");
}

}  // namespace muster::python
