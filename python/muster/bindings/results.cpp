#include "python/muster/bindings/results.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "muster/graph/graph.h"
#include "python/muster/bindings/value.h"

namespace muster::python {

namespace {

// Looks for traced tensors, at each container once.
class TracedSearch {
 public:
  bool finds(nb::handle value) {
    if (is_value(value)) return nb::cast<const graph::Value&>(value).is_traced();
    if (PyFunction_Check(value.ptr())) return finds_in_cells(PyFunction_GET_CLOSURE(value.ptr()));
    if (container_of(value) == Container::none || !met_.insert(value.ptr()).second) return false;
    for (const ContainerPart& part : parts_of(value))
      if (finds(part.value)) return true;
    return false;
  }

 private:
  bool finds_in_cells(nb::handle cells) {
    if (!cells.is_valid()) return false;
    for (const nb::handle cell : nb::iter(cells)) {
      const nb::object value = nb::steal(PyCell_Get(cell.ptr()));
      if (value.is_valid() && finds(value)) return true;
    }
    return false;
  }

  std::unordered_set<PyObject*> met_;
};

// What a trace may hand out as it is: what has a hash does not change. An iterator would be empty the second
// time, and a view of a dict shows what was traced.
bool is_constant_result(nb::handle result) {
  PyObject* const pointer = result.ptr();
  if (PyIter_Check(pointer) != 0 || PyDictViewSet_Check(pointer) || PyDictValues_Check(pointer)) return false;
  if (PyObject_Hash(pointer) != -1) return !holds_traced(result);
  PyErr_Clear();
  return false;
}

// Objects without traced tensors are what they are, lists and dicts made anew at each call.
bool is_taken_apart(nb::handle result, Container container) {
  if (container != Container::object) return container != Container::none;
  return !graph::falls_back() && !is_constant_result(result);
}

[[noreturn]] void refuse_result(nb::handle result, const std::string& name) {
  graph::note_untraceable();  // op by op, code may return anything
  throw nb::type_error(
      fmt::format("{} returned a {}; traced code returns tensors, numbers, texts, or tuples, "
                  "lists, dicts and objects of them",
                  name, class_name(result))
          .c_str());
}

}  // namespace

bool holds_traced(nb::handle value) { return TracedSearch().finds(value); }

ResultForm ResultForm::of(nb::handle result, graph::Values& values, const std::string& name,
                          const CopiedArguments* given) {
  return of_part(result, values, {name, given}, 0);
}

ResultForm ResultForm::of_part(nb::handle result, graph::Values& values, const Source& source,
                               std::size_t depth) {
  ResultForm form;
  const auto holder = source.given == nullptr ? std::nullopt : source.given->holder_of(result);
  if (is_value(result)) {
    values.push_back(nb::cast<const graph::Value&>(result));
    form.constant_ = attributes_on(result);
    if (form.constant_.is_valid() && !graph::falls_back() && holds_traced(form.constant_))
      refuse_result(form.constant_, source.name);
  } else if (holder) {
    form.kind_ = Kind::given;
    form.holder_ = *holder;
  } else if (is_taken_apart(result, container_of(result))) {
    if (depth == container_depth_max) refuse_result(result, source.name);  // it may hold itself
    form.kind_ = Kind::container;
    form.constant_ = nb::borrow(result.type());
    for (ContainerPart& part : parts_of(result)) {
      form.parts_.push_back(of_part(part.value, values, source, depth + 1));
      part.value.reset();
      form.places_.push_back(std::move(part));
    }
  } else if (graph::falls_back() || is_constant_result(result)) {
    form.kind_ = Kind::constant;
    form.constant_ = nb::borrow(result);
  } else {
    refuse_result(result, source.name);
  }
  return form;
}

nb::object ResultForm::build(std::span<const graph::Value>& values, std::span<const Holder> holders) const {
  switch (kind_) {
    case Kind::tensor: {
      nb::object made = value_object(values.front());
      values = values.subspan(1);
      if (constant_.is_valid()) put_attributes(made, constant_);
      return made;
    }
    case Kind::constant:
      return constant_;
    case Kind::given:
      return nb::borrow(holders[holder_].object);
    case Kind::container:
      return build_container(values, holders);
  }
  return nb::none();
}

nb::object ResultForm::build_container(std::span<const graph::Value>& values,
                                       std::span<const Holder> holders) const {
  const auto build_part = [&](const ResultForm& part) { return part.build(values, holders); };
  if (constant_.ptr() == reinterpret_cast<PyObject*>(&PyTuple_Type)) return tuple_of(parts_, build_part);
  std::vector<ContainerPart> parts = places_;
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].value = build_part(parts_[i]);
  return container_of_parts(constant_, parts);
}

bool ResultForm::operator==(const ResultForm& other) const {
  if (kind_ != other.kind_ || parts_ != other.parts_ || holder_ != other.holder_) return false;
  if (kind_ == Kind::container && !constant_.is(other.constant_)) return false;
  return (kind_ != Kind::constant || constant_.equal(other.constant_)) &&
         std::ranges::equal(places_, other.places_,
                            [](const ContainerPart& a, const ContainerPart& b) { return a.is_at(b); });
}

CallForm CallForm::of(nb::handle result, const CopiedArguments& given, graph::Values& values,
                      const std::string& name) {
  CallForm form;
  form.result_ = ResultForm::of(result, values, name, &given);
  form.result_count_ = values.size();
  for (auto& [holder, part] : given.changes()) {
    Change change{holder, std::move(part), std::nullopt};
    const nb::object value = std::exchange(change.place.value, nb::object());
    if (value.is_valid()) change.part = ResultForm::of(value, values, name, &given);
    form.changes_.push_back(std::move(change));
  }
  return form;
}

nb::object CallForm::build(std::span<const graph::Value>& values, std::span<const Holder> holders) const {
  nb::object result = result_.build(values, holders);
  for (const auto& [holder, place, part] : changes_) {
    ContainerPart changed = place;
    if (part) changed.value = part->build(values, holders);
    part ? put_part(holders[holder].object, changed) : remove_part(holders[holder].object, changed);
  }
  return result;
}

}  // namespace muster::python
