// The places of ops that are objects in Python: mindspore.ops.Primitive.
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>

#include "muster/nn/nn.h"
#include "muster/train/step_planner.h"
#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

struct PrimitivePlace {
  std::string what;
  nn::Place place;
};

PrimitivePlace place_primitive(std::string what, const std::string& role, std::int64_t rank,
                               const std::string& file, std::uint64_t line) {
  nn::Place place =
      unwrap(nn::make_place(nn::Placed::primitive, what, role, rank, nn::code_line(file, line)));
  nn::note_placed_primitive();
  return {std::move(what), std::move(place)};
}

nb::object call_primitive(const PrimitivePlace* placed, const nb::object& compute, const nb::tuple& inputs) {
  nn::watch_primitives();
  std::optional<graph::PlaceScope> scope;
  if (placed != nullptr) {
    if (graph::runs_op_by_op()) unwrap(nn::check_place(placed->what, placed->place));
    scope.emplace(nn::placement_of(placed->what, placed->place));
  }
  nb::object result = nb::steal(PyObject_CallObject(compute.ptr(), inputs.ptr()));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

// `layout` and `mesh` as op `shard` has them.
nb::object shard(nb::handle value, const std::string& mesh, const std::string& layout) {
  const graph::Attributes attributes{
      {"mesh", mesh}, {"layout", layout}, {"rank", static_cast<std::int64_t>(train::rank())}};
  return value_object(graph::apply("shard", {value_from(value)}, attributes));
}

}  // namespace

void bind_place(nb::module_& core) {
  nb::class_<PrimitivePlace>(core, "_PrimitivePlace");
  core.def("_place_primitive", &place_primitive, nb::arg("what"), nb::arg("role"), nb::arg("rank"),
           nb::arg("file"), nb::arg("line"));
  core.def("_call_primitive", &call_primitive, nb::arg("placed").none(), nb::arg("compute"),
           nb::arg("inputs"));
  core.def("_shard", &shard, nb::arg("value"), nb::arg("mesh"), nb::arg("layout"));
  core.def(
      "_divide_parameter",
      [](nb::handle parameter, const std::string& mesh, const std::string& layout) {
        unwrap(
            train::divide_parameter(*nb::cast<const PythonParameter&>(parameter).parameter(), mesh, layout));
      },
      nb::arg("parameter"), nb::arg("mesh"), nb::arg("layout"));
  core.def("_is_divided", [](nb::handle parameter) {
    return nb::cast<const PythonParameter&>(parameter).parameter()->share().has_value();
  });
  core.def(
      "_plan_steps",
      [](std::uint32_t data, std::uint32_t model, std::optional<std::size_t> memory_bytes) {
        unwrap(train::plan_steps(data, model, memory_bytes));
      },
      nb::arg("data"), nb::arg("model"), nb::arg("memory_bytes") = nb::none(),
      "How steps are divided that have no layout; data 0: rank 0 decides at the first step.");
  core.def("_set_shares_batch", &train::set_shares_batch, nb::arg("shares"), nb::arg("mesh"),
           nb::arg("mesh_stages") = 1, "Whether all workers compute one batch together, as parts of a mesh.");
}

}  // namespace muster::python
