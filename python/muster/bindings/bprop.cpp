// A cell's bprop: the gradient that its class gives itself.
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/pytree.h"

namespace muster::python {
namespace {

using graph::Value;
using graph::Values;

bool is_list_of_parts(nb::handle object) {
  return nb::isinstance<nb::tuple>(object) || nb::isinstance<nb::list>(object);
}

// The tensors among the arguments, in their order; parameters too.
void collect_tensors(nb::handle object, Values& found) {
  if (is_value(object)) {
    found.push_back(nb::cast<const Value&>(object));
  } else if (const Container container = container_of(object);
             container != Container::none && container != Container::object) {
    for (const ContainerPart& part : parts_of(object)) collect_tensors(part.value, found);
  }
}

// The arguments again, with `values` instead of the tensors.
nb::object rebuilt(nb::handle object, std::span<const Value>& values) {
  if (is_value(object)) {
    nb::object made = value_object_like(object, values.front());
    values = values.subspan(1);
    return made;
  }
  const Container container = container_of(object);
  if (container == Container::none || container == Container::object) return nb::borrow(object);
  std::vector<ContainerPart> parts = parts_of(object);
  for (ContainerPart& part : parts) part.value = rebuilt(part.value, values);
  return container_of_parts(object.type(), parts);
}

// What bprop gave, taken apart as the arguments are.
class GradientsGiven {
 public:
  explicit GradientsGiven(const std::string& cell) : cell_(cell) {}

  // Of all arguments. One gradient may come by itself, arguments that are no tensors may be left out, and
  // None may follow, as where bprop gives back what flows to a result beside None.
  Values of(nb::handle answer, const nb::list& arguments) {
    const nb::list tensors = with_tensors(arguments);
    const bool is_alone = is_value(answer) || answer.is_none();
    const nb::object given = is_alone ? nb::object(nb::make_tuple(answer)) : nb::borrow(answer);
    if (!is_list_of_parts(given)) refuse("gives a tuple of gradients, not " + class_name(answer));
    std::size_t count = nb::len(given);
    while (count > nb::len(arguments) && nb::object(given[count - 1]).is_none()) --count;
    if (count != nb::len(arguments) && count != nb::len(tensors))
      refuse("gives one gradient for each input, " + std::to_string(nb::len(arguments)) + "; it gave " +
             std::to_string(count));
    match(given, count == nb::len(arguments) ? arguments : tensors, "input");
    return std::move(gradients_);
  }

 private:
  static nb::list with_tensors(const nb::list& arguments) {
    nb::list made;
    for (const nb::handle argument : arguments) {
      Values found;
      collect_tensors(argument, found);
      if (!found.empty()) made.append(argument);
    }
    return made;
  }

  void match(nb::handle given, nb::handle arguments, const std::string& what) {
    std::size_t i = 0;
    for (const nb::handle argument : nb::iter(arguments)) {
      const nb::object gradient = given[i];
      match_one(gradient, argument, what + " " + std::to_string(i));
      ++i;
    }
  }

  void match_one(nb::handle given, nb::handle argument, const std::string& what) {
    Values inside;
    collect_tensors(argument, inside);
    if (inside.empty()) return;  // whatever stands there
    if (given.is_none()) {
      gradients_.resize(gradients_.size() + inside.size());
    } else if (is_value(argument)) {
      if (!is_value(given)) refuse("gives " + class_name(given) + " as the gradient of " + what);
      gradients_.push_back(nb::cast<const Value&>(given));
    } else {
      match_parts(given, argument, what);
    }
  }

  // Of a tuple, a list or a dict.
  void match_parts(nb::handle given, nb::handle argument, const std::string& what) {
    nb::object parts = nb::borrow(argument), answers = nb::borrow(given);
    if (nb::isinstance<nb::dict>(argument)) {
      parts = nb::borrow<nb::dict>(argument).values();
      if (nb::isinstance<nb::dict>(given)) answers = answers_by_key(given, argument);
    }
    if (!is_list_of_parts(answers) || nb::len(answers) != nb::len(parts))
      refuse("gives for " + what + ", a " + class_name(argument) + " of " + std::to_string(nb::len(parts)) +
             ", something else than as many gradients");
    match(answers, parts, what + ", part");
  }

  static nb::list answers_by_key(nb::handle given, nb::handle argument) {
    nb::list made;
    for (const auto [key, part] : nb::borrow<nb::dict>(argument)) made.append(given[key]);
    return made;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Exception(Code::invalid_argument, cell_ + ": bprop " + what);
  }

  const std::string& cell_;
  Values gradients_;
};

// What was called, kept until its gradient is taken.
struct BpropCall {
  std::string cell;
  nb::object self;
  nb::list arguments;  // the positional ones, then those by name
  ResultForm result = {};
};

// Of a rule, which may end on any thread.
std::shared_ptr<BpropCall> kept_call(BpropCall call) {
  return {new BpropCall(std::move(call)), [](BpropCall* ended) {
            if (!Py_IsInitialized()) return;  // the interpreter took its objects along
            const nb::gil_scoped_acquire lock;
            delete ended;
          }};
}

nb::object result_of(const ResultForm& form, std::span<const Value> values) { return form.build(values); }

Values call_bprop(const BpropCall& call, std::span<const Value> inputs, std::span<const Value> outputs,
                  std::span<const Value> output_gradients) {
  const nb::gil_scoped_acquire lock;
  nb::list given(rebuilt(call.arguments, inputs));
  given.append(result_of(call.result, outputs));
  given.append(result_of(call.result, output_gradients));
  const nb::object answer = call.self.attr("bprop")(*nb::tuple(given));
  return GradientsGiven(call.cell).of(answer, call.arguments);
}

}  // namespace

// Does not raise, and asks Python's cache of methods.
bool notes_bprop(nb::handle self) {
  static PyObject* const name = PyUnicode_InternFromString("bprop");
  return graph::notes_gradients() && _PyType_Lookup(Py_TYPE(self.ptr()), name) != nullptr;
}

nb::object with_python_bprop(nb::handle self, nn::Cell& cell, nb::handle positional, nb::handle keywords,
                             const std::function<nb::object()>& construct) {
  nb::list arguments;
  for (const nb::handle argument : nb::iter(positional)) arguments.append(argument);
  if (keywords.is_valid())
    for (const nb::handle argument : nb::borrow<nb::dict>(keywords).values()) arguments.append(argument);
  Values inputs;
  collect_tensors(arguments, inputs);
  const auto call = kept_call({.cell = cell.description(), .self = nb::borrow(self), .arguments = arguments});
  const auto body = [&] {
    Values outputs;
    call->result = ResultForm::of(construct(), outputs, cell.description() + ".construct");
    return outputs;
  };
  const Values outputs = cell.with_bprop(
      inputs, body,
      [call](std::span<const Value> given, std::span<const Value> made, std::span<const Value> gradients) {
        return call_bprop(*call, given, made, gradients);
      });
  return result_of(call->result, outputs);
}

}  // namespace muster::python
