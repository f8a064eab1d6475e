#include "python/muster/bindings/results.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "muster/graph/graph.h"
#include "python/muster/bindings/value.h"

namespace muster::python {

namespace {

// What a trace may hand out as it is: what has a hash does not change; an iterator would be empty the
// second time.
bool is_constant(nb::handle result) {
  if (PyIter_Check(result.ptr()) != 0) return false;
  if (PyObject_Hash(result.ptr()) != -1) return true;
  PyErr_Clear();
  return false;
}

}  // namespace

bool holds_traced(nb::handle value) {
  if (is_value(value)) return nb::cast<const graph::Value&>(value).is_traced();
  if (nb::isinstance<nb::tuple>(value) || nb::isinstance<nb::list>(value)) {
    for (const nb::handle part : nb::iter(value))
      if (holds_traced(part)) return true;
  } else if (nb::isinstance<nb::dict>(value)) {
    for (const auto [key, part] : nb::borrow<nb::dict>(value))
      if (holds_traced(part)) return true;
  }
  return false;
}

ResultForm ResultForm::of(nb::handle result, graph::Values& values, const std::string& name) {
  ResultForm form;
  const auto add_part = [&](nb::handle part) { form.parts_.push_back(of(part, values, name)); };
  if (is_value(result)) {
    values.push_back(nb::cast<const graph::Value&>(result));
  } else if (nb::isinstance<nb::tuple>(result) || nb::isinstance<nb::list>(result)) {
    form.kind_ = nb::isinstance<nb::tuple>(result) ? Kind::tuple : Kind::list;
    for (const nb::handle part : nb::iter(result)) add_part(part);
  } else if (nb::isinstance<nb::dict>(result)) {
    form.kind_ = Kind::dict;
    form.constant_ = nb::borrow<nb::dict>(result).keys();
    for (const auto [key, part] : nb::borrow<nb::dict>(result)) add_part(part);
  } else if (graph::falls_back() || is_constant(result)) {
    form.kind_ = Kind::constant;
    form.constant_ = nb::borrow(result);
  } else {
    graph::note_untraceable();  // op by op, code may return anything
    const auto type = class_name(result);
    throw nb::type_error(
        (name + " returned a " + type + "; traced code returns tensors, or tuples, lists and dicts of them")
            .c_str());
  }
  return form;
}

nb::object ResultForm::build(std::span<const graph::Value>& values) const {
  switch (kind_) {
    case Kind::tensor: {
      nb::object made = value_object(values.front());
      values = values.subspan(1);
      return made;
    }
    case Kind::constant:
      return constant_;
    case Kind::tuple:
      return tuple_of(parts_, [&](const ResultForm& part) { return part.build(values); });
    case Kind::list: {
      nb::list made;
      for (const ResultForm& part : parts_) made.append(part.build(values));
      return made;
    }
    case Kind::dict: {
      nb::dict made;
      std::size_t i = 0;
      for (const nb::handle key : nb::iter(constant_)) made[key] = parts_[i++].build(values);
      return made;
    }
  }
  return nb::none();
}

bool ResultForm::operator==(const ResultForm& other) const {
  const bool has_constant = kind_ == Kind::constant || kind_ == Kind::dict;
  return kind_ == other.kind_ && parts_ == other.parts_ &&
         (!has_constant || constant_.equal(other.constant_));
}

}  // namespace muster::python
