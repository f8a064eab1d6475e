// cond and while_loop.
#include <nanobind/stl/string.h>

#include <optional>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/results.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Value;
using graph::Values;

// Python numbers, in tuples, lists and dicts too, as tensors.
nb::object numbers_as_tensors(nb::handle object) {
  if (PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr())) return value_object(value_from(object));
  if (nb::isinstance<nb::tuple>(object)) {
    const nb::tuple items = nb::borrow<nb::tuple>(object);
    return tuple_of(items, [](nb::handle item) { return numbers_as_tensors(item); });
  }
  if (nb::isinstance<nb::list>(object)) {
    nb::list made;
    for (const nb::handle item : nb::iter(object)) made.append(numbers_as_tensors(item));
    return made;
  }
  if (nb::isinstance<nb::dict>(object)) {
    nb::dict made;
    for (const auto [key, item] : nb::borrow<nb::dict>(object)) made[key] = numbers_as_tensors(item);
    return made;
  }
  return nb::borrow(object);
}

// Calls code and takes its result apart.
Values call(const nb::object& code, nb::handle arguments, const std::string& name, ResultForm& form) {
  const nb::object result = nb::steal(PyObject_Call(code.ptr(), arguments.ptr(), nullptr));
  if (!result.is_valid()) throw nb::python_error();
  Values values;
  form = ResultForm::of(numbers_as_tensors(result), values, name);
  return values;
}

nb::any built(const ResultForm& form, const Values& values) {
  std::span<const Value> rest = values;
  return nb::borrow<nb::any>(form.build(rest));
}

nb::any cond(nb::handle pred, const nb::object& true_fn, const nb::object& false_fn,
             const nb::args& operands) {
  std::optional<ResultForm> form;
  const auto branch = [&](const nb::object& code, const char* name) {
    return [&form, &code, &operands, name]() -> Values {
      ResultForm own;
      Values values = call(code, operands, name, own);
      if (form && *form != own)
        throw nb::value_error("cond: true_fn and false_fn must return results of one structure");
      form = std::move(own);
      return values;
    };
  };
  const Values values =
      graph::cond(value_from(pred), branch(true_fn, "true_fn"), branch(false_fn, "false_fn"));
  return built(*form, values);
}

nb::any while_loop(const nb::object& cond_fn, const nb::object& body_fn, nb::handle init) {
  Values first;
  const ResultForm form = ResultForm::of(numbers_as_tensors(init), first, "init");
  const auto arguments = [&](std::span<const Value> state) { return nb::make_tuple(form.build(state)); };
  const graph::Body test = [&](std::span<const Value> state) -> Values {
    ResultForm of_test;
    return call(cond_fn, arguments(state), "cond_fn", of_test);
  };
  const graph::Body body = [&](std::span<const Value> state) -> Values {
    ResultForm of_body;
    Values values = call(body_fn, arguments(state), "body_fn", of_body);
    if (of_body != form) throw nb::value_error("while_loop: body_fn must return a state like init");
    return values;
  };
  return built(form, graph::while_loop(test, body, first));
}

struct MicroBatches {
  std::optional<graph::MicroBatchScope> scope{std::in_place};
};

}  // namespace

void bind_control(nb::module_& core) {
  core.def(
      "recompute",
      [](const nb::object& block, const nb::args& arguments, const nb::kwargs& keywords) {
        const graph::RecomputeScope scope;
        return nb::object(block(*arguments, **keywords));
      },
      nb::arg("block"), nb::arg("args"), nb::arg("kwargs"),
      nb::sig("def recompute(block: collections.abc.Callable, /, *args: typing.Any, **kwargs: typing.Any) -> "
              "typing.Any"),
      "block(*args, **kwargs), of which the backward pass computes again what it needs, instead of keeping "
      "it: the same bits, more time, less memory. What writes parameters or takes part in collective calls "
      "is kept. In eager mode it is the call alone.");
  nb::class_<MicroBatches>(
      core, "_MicroBatchScope",
      "From the first part until end(), parts of a batch draw the random numbers of the whole.")
      .def(nb::init<>())
      .def(
          "begin", [](MicroBatches& self, std::int64_t part) { self.scope->begin(part); }, nb::arg("part"))
      .def("end", [](MicroBatches& self) { self.scope.reset(); });
  core.def(
      "cond", &cond, nb::arg("pred"), nb::arg("true_fn"), nb::arg("false_fn"), nb::arg("operands"),
      nb::sig("def cond(pred: Tensor | bool, true_fn: collections.abc.Callable, false_fn: "
              "collections.abc.Callable, *operands: typing.Any) -> typing.Any"),
      "true_fn(*operands) or false_fn(*operands), as `pred` (one element) says. In traced code the decision "
      "is made when the graph runs: both functions are traced, and must return tensors of the same shapes "
      "and dtypes in the same structure; neither may update parameters or call collectives. Gradients pass; "
      "the branch is computed again for them. Outside of traced code one of them is called.");
  core.def(
      "while_loop", &while_loop, nb::arg("cond_fn"), nb::arg("body_fn"), nb::arg("init"),
      nb::sig("def while_loop(cond_fn: collections.abc.Callable, body_fn: collections.abc.Callable, init: "
              "typing.Any) -> typing.Any"),
      "state = body_fn(state) as long as cond_fn(state) is true, beginning with `init`: a tensor or number, "
      "or a tuple, list or dict of them. In traced code the loop runs when the graph runs; shapes and dtypes "
      "of the state stay, and there is no gradient (NotImplementedError).");
}

}  // namespace muster::python
