// The places of ops that are objects in Python: mindspore.ops.Primitive.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/nn/nn.h"
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
      "_mesh",
      [](const std::vector<std::pair<std::string, std::int64_t>>& axes, std::int64_t stages) {
        std::vector<train::parallel::Axis> made;
        for (const auto& [name, size] : axes) made.push_back({.name = name, .size = size});
        unwrap(train::parallel::mesh(made, stages));
      },
      nb::arg("axes"), nb::arg("stages"));
  core.def(
      "_plan",
      [](std::optional<std::int64_t> data, std::int64_t model, std::int64_t zero_level,
         std::int64_t threshold_bytes, std::optional<std::size_t> memory_bytes) {
        unwrap(train::parallel::plan({.data = data,
                                      .model = model,
                                      .zero = {.level = zero_level, .threshold_bytes = threshold_bytes},
                                      .memory_bytes = memory_bytes}));
      },
      nb::arg("data").none(), nb::arg("model"), nb::arg("zero_level"), nb::arg("threshold_bytes"),
      nb::arg("memory_bytes").none());
}

}  // namespace muster::python
