// How Python cells are called: as a plan of their own, within a trace, and with a loss.
#include "python/muster/bindings/cell.h"

#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "muster/train/train.h"
#include "python/muster/bindings/arguments.h"
#include "python/muster/bindings/compute_lock.h"
#include "python/muster/bindings/guards.h"
#include "python/muster/bindings/process.h"
#include "python/muster/bindings/results.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using nn::Cell;

// Whether the class of `self` has a construct of its own, written in Python, or as good as that.
bool overrides_construct(nb::handle self) {
  if (nb::isinstance<nn::SequentialCell>(self))
    return dynamic_cast<PythonPart*>(&nb::cast<Cell&>(self)) != nullptr;
  static const PyTypeObject* const bound = Py_TYPE(nb::type<nn::ReLU>().attr("construct").ptr());
  const nb::object construct = nb::getattr(self.type(), "construct", nb::none());
  return !construct.is_none() && Py_TYPE(construct.ptr()) != bound;
}

nb::object called(nb::handle function, nb::handle positional, nb::handle keywords) {
  nb::object result = nb::steal(PyObject_Call(function.ptr(), positional.ptr(), keywords.ptr()));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

nb::object call_plainly(nb::handle self, Cell& cell, nb::handle positional, nb::handle keywords) {
  const auto construct = [&](nb::handle args, nb::handle kwargs) {
    guard_construct(self);
    nb::object result = called(self.attr("construct"), args, kwargs);
    if (const auto* const optimizer = dynamic_cast<const nn::Optimizer*>(&cell))
      optimizer->end_own_construct();
    return result;
  };
  const auto constructed = [&] {
    return has_hooks(self) ? with_hooks(self, cell, positional, keywords, construct)
                           : construct(positional, keywords);
  };
  return notes_bprop(self) ? with_python_bprop(self, cell, positional, keywords, constructed) : constructed();
}

// What Cell::call does around construct.
nb::object call_construct(nb::handle self, Cell& cell, nb::handle positional, nb::handle keywords) {
  cell.require_possible_place();
  const Cell::PlacedScope placed(cell);
  const graph::CellScope of_cell(cell);
  if (!cell.precision()) return call_plainly(self, cell, positional, keywords);
  const nn::CellPrecision precision = *cell.precision();
  const graph::PrecisionScope scope(precision.ops);
  const Arguments given(positional, keywords);
  const graph::Values inputs = precision.inputs
                                   ? graph::floating_as(given.tensors(), *precision.inputs)
                                   : graph::Values(given.tensors().begin(), given.tensors().end());
  const CopiedArguments copied = given.with(inputs);
  const nb::object result = call_plainly(self, cell, copied.positional, copied.keywords);
  if (!precision.outputs && copied.changes().empty()) return result;
  graph::Values values;
  const CallForm form = CallForm::of(result, copied, values, cell.description() + ".construct");
  if (precision.outputs) {
    const auto outputs = std::span(values).first(form.result_count());
    std::ranges::copy(graph::floating_as(outputs, *precision.outputs), outputs.begin());
  }
  std::span<const graph::Value> rest = values;
  return form.build(rest, given.holders());
}

// The plan cache of a cell with a Python construct. It belongs to the cell, so it only borrows it.
TracedFunction& outside_function(nb::handle self, Cell& cell, PythonPart& part) {
  if (part.outside == nullptr)
    part.outside = std::make_unique<TracedFunction>(
        cell.class_name(),
        [self, &cell](nb::handle positional, nb::handle keywords) {
          graph::watch(cell);
          return call_construct(self, cell, positional, keywords);
        },
        [&cell](graph::Body body) { return function_around(cell.class_name(), std::move(body)); });
  return *part.outside;
}

nb::object call_python_cell(nb::handle self, Cell& cell, const nb::args& positional,
                            const nb::kwargs& keywords) {
  if (graph::is_tracing()) {
    graph::watch(cell);
    return call_construct(self, cell, positional, keywords);
  }
  if (cell.runs_op_by_op()) return call_construct(self, cell, positional, keywords);
  auto* part = dynamic_cast<PythonPart*>(&cell);
  MUSTER_CHECK(part != nullptr, "a Python subclass of a cell has no trampoline");
  return outside_function(self, cell, *part).call(Arguments(positional, keywords)).result;
}

nb::object call_built_in_cell(Cell& cell, const nb::args& positional, const nb::kwargs& keywords) {
  if (PyDict_GET_SIZE(keywords.ptr()) > 0)
    throw nb::type_error((cell.description() + " takes no keyword arguments").c_str());
  const graph::Values inputs = tensors_of(positional, cell);
  graph::Values values;
  if (graph::is_tracing()) {
    values = cell.call(inputs);
  } else {
    std::optional<ComputeLock> lock;
    if (!graph::runs_op_by_op()) lock.emplace();
    const graph::RunContext context = graph::default_context();  // inside of an eager step: that step's
    const nb::gil_scoped_release unlocked;
    values = cell.call(inputs, context);
  }
  return result_for_python(cell, values);
}

// ---- A cell and its gradient in one trace ----

// The places of tensors that are all traced here; nothing where anything else is among them.
std::optional<std::vector<std::uint32_t>> places_of(nb::handle tensors, const graph::Trace& trace) {
  std::vector<std::uint32_t> places;
  for (const nb::handle tensor : nb::iter(tensors)) {
    if (!is_value(tensor)) return std::nullopt;
    const auto& value = nb::cast<const graph::Value&>(tensor);
    if (!value.is_traced() || value.place().trace.get() != &trace) return std::nullopt;
    places.push_back(value.place().id);
  }
  return places;
}

// Null for a result that is not made of tensors of the trace.
std::unique_ptr<TracedCall> traced_call(graph::Trace& trace, std::vector<std::uint32_t> inputs,
                                        nb::handle result) {
  TracedCall call{.trace = trace.weak_from_this(),
                  .node_count = trace.node_count(),
                  .own_gradient_count = trace.own_gradient_count(),
                  .inputs = std::move(inputs)};
  const bool is_one = is_value(result);
  if (!is_one && !PyTuple_CheckExact(result.ptr()) && !PyList_CheckExact(result.ptr())) return nullptr;
  if (!is_one) call.container = nb::borrow(result.type());
  const nb::object tensors = is_one ? nb::object(nb::make_tuple(result)) : nb::borrow(result);
  const auto places = places_of(tensors, trace);
  if (!places) return nullptr;
  std::size_t i = 0;
  for (const nb::handle tensor : nb::iter(tensors))
    call.outputs.emplace_back(nb::cast<const graph::Value&>(tensor).type(), (*places)[i++]);
  return std::make_unique<TracedCall>(std::move(call));
}

nb::object result_of(const TracedCall& call, graph::Trace& trace) {
  nb::list tensors;
  for (const auto& [type, id] : call.outputs)
    tensors.append(value_object(graph::Value(type, {trace.shared_from_this(), id})));
  if (!call.container.is_valid()) return tensors[0];
  return call.container(tensors);
}

// Whether the gradient of its result is now another than that of the call: a cell around it that has a bprop
// gave the result as its own. That bprop may ask for the gradient of the call.
bool is_given_on(const TracedCall& call, const graph::Trace& trace) {
  return std::any_of(call.outputs.begin(), call.outputs.end(), [&](const auto& output) {
    return trace.has_own_gradient(output.second, call.own_gradient_count);
  });
}

// Steps that compute a loss, and then the gradient of the same cell for the same inputs, are one forward pass
// in MindSpore's graphs: random numbers are drawn once, and statistics move once.
nb::object call_in_trace(PythonPart* part, const nb::args& positional, const nb::kwargs& keywords,
                         const std::function<nb::object()>& call) {
  graph::Trace& trace = *graph::Trace::current();
  auto inputs =
      part == nullptr || PyDict_GET_SIZE(keywords.ptr()) > 0 ? std::nullopt : places_of(positional, trace);
  if (!inputs) return call();
  const TracedCall* const last = part->last_traced.get();
  const bool is_known = process().traced_gradients > 0 && last != nullptr &&
                        last->trace.lock().get() == &trace && last->inputs == *inputs &&
                        !trace.writes(last->node_count) && !is_given_on(*last, trace);
  if (is_known) return result_of(*last, trace);
  nb::object result = call();
  part->last_traced = traced_call(trace, *std::move(inputs), result);
  return result;
}

// The same in eager mode: the gradient goes on with the tape of the call.
bool are(nb::handle tensors, const graph::Values& values) {
  if (nb::len(tensors) != values.size()) return false;
  std::size_t i = 0;
  for (const nb::handle tensor : nb::iter(tensors))
    if (!is_value(tensor) || nb::cast<const graph::Value&>(tensor).identity() != values[i++].identity())
      return false;
  return true;
}

nb::object call_on_tape(PythonPart& part, const nb::args& positional,
                        const std::function<nb::object()>& call) {
  part.last_taped.reset();
  graph::Values inputs;
  for (const nb::handle tensor : positional) {
    if (!is_value(tensor)) return call();
    inputs.push_back(nb::cast<const graph::Value&>(tensor));
  }
  auto tape = std::make_shared<graph::Tape>();
  nb::object result;
  {
    const graph::Tape::Scope scope(*tape);
    result = call();
  }
  part.last_taped = std::make_unique<TapedCall>(TapedCall{.owned = tape,
                                                          .tape = tape,
                                                          .inputs = std::move(inputs),
                                                          .result = result,
                                                          .writes = graph::parameter_writes()});
  return result;
}

nb::object call_outside_of_trace(PythonPart* part, const nb::args& positional, const nb::kwargs& keywords,
                                 const std::function<nb::object()>& call) {
  if (part == nullptr || !part->records_calls || PyDict_GET_SIZE(keywords.ptr()) > 0) return call();
  if (!graph::is_taping())
    return graph::is_eager() && !graph::falls_back() ? call_on_tape(*part, positional, call) : call();
  const TapedCall* const last = part->last_taped.get();
  const bool is_known =
      last != nullptr && last->tape.lock().get() == graph::Tape::current() && are(positional, last->inputs);
  return is_known ? last->result : call();
}

// What the cell returns, as it is, within a trace or an eager step.
nb::object call_within(nb::handle self, Cell& cell, const nb::tuple& positional) {
  if (graph::is_tracing()) graph::watch(cell);
  return call_construct(self, cell, positional, nb::handle());
}

}  // namespace

void record_calls(Cell& cell, bool records) {
  auto* const part = dynamic_cast<PythonPart*>(&cell);
  if (part == nullptr) return;
  part->records_calls = records;
  if (!records) part->last_taped.reset();
}

void resume_call(Cell& cell, nb::handle inputs) {
  const auto* const part = dynamic_cast<PythonPart*>(&cell);
  if (part == nullptr || part->last_taped == nullptr || !graph::runs_op_by_op() || graph::is_tracing())
    return;
  TapedCall& last = *part->last_taped;
  if (are(inputs, last.inputs) && last.writes == graph::parameter_writes())
    graph::resume_tape(std::exchange(last.owned, nullptr));
}

nb::any call_cell(nb::handle self, const nb::args& positional, const nb::kwargs& keywords) {
  if (const nb::handle order = process().input_order;
      order.is_valid() && PyDict_GET_SIZE(keywords.ptr()) > 0) {
    const nb::object ordered = order(self, nb::handle(positional), nb::handle(keywords));
    if (!ordered.is_none()) return call_cell(self, nb::borrow<nb::args>(ordered), nb::kwargs());
  }
  Cell& cell = nb::cast<Cell&>(self);
  if (cell.is_paused() && !graph::is_tracing()) return nb::borrow<nb::any>(nb::none());
  const auto call = [&] {
    return overrides_construct(self) ? call_python_cell(self, cell, positional, keywords)
                                     : call_built_in_cell(cell, positional, keywords);
  };
  if (!process().merges_calls) return nb::borrow<nb::any>(call());
  auto* const part = dynamic_cast<PythonPart*>(&cell);
  return nb::borrow<nb::any>(graph::is_tracing() ? call_in_trace(part, positional, keywords, call)
                                                 : call_outside_of_trace(part, positional, keywords, call));
}

std::optional<nn::LossCall> call_with_python_loss(nb::handle self, Cell& network,
                                                  std::span<const graph::Value> inputs, Cell& loss_fn,
                                                  bool add_cast_fp32) {
  const nb::object loss = nb::find(&loss_fn);
  if (inputs.size() < 2 || !loss.is_valid() || !overrides_construct(self) || !overrides_construct(loss))
    return std::nullopt;
  nn::LossCall call;
  const auto data = inputs.first(inputs.size() - 1);
  nb::object result = call_within(self, network, tuple_of(data, &value_object));
  const ResultForm form = ResultForm::of(result, call.given, network.description() + ".construct");
  call.given.push_back(inputs.back());
  if (add_cast_fp32) {
    call.given = graph::floating_as(call.given, DType::float32);
    std::span<const graph::Value> outputs = call.given;
    result = form.build(outputs);
  }
  const nb::tuple arguments = nb::make_tuple(result, value_object(call.given.back()));
  ResultForm::of(call_within(loss, loss_fn, arguments), call.loss, loss_fn.description() + ".construct");
  return call;
}

}  // namespace muster::python
