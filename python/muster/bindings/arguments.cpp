#include "python/muster/bindings/arguments.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "muster/nn/nn.h"
#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Value;

constexpr std::size_t object_parts_max = 4096;  // in one argument

// ---- Signatures for people ----

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

// What an argument is called, and its text.
std::pair<std::string, std::string_view> named(std::string_view line, std::size_t position) {
  const std::size_t equals = line.starts_with('\'') || line.starts_with('"') ? line.find('=') : line.npos;
  if (equals == line.npos) return {fmt::format("argument {}", position), line};
  return {fmt::format("argument {}", line.substr(0, equals)), line.substr(equals + 1)};
}

// Classes by their names alone: "Batch #7f12(" becomes "Batch(".
std::string without_addresses(std::string_view text) {
  std::string made;
  while (true) {
    const std::size_t address = text.find(" #"), end = text.find('(', address);
    if (end == text.npos) return made.append(text);
    made.append(text.substr(0, address));
    text.remove_prefix(end);
  }
}

std::string shown(std::string_view text) {
  constexpr std::size_t length_max = 60;
  if (text == "T") return "a tensor";
  if (text.starts_with('#')) return "an object";
  if (text.ends_with(';')) text.remove_suffix(1);
  const std::string named = without_addresses(text);
  return named.size() <= length_max ? named : fmt::format("{}...", named.substr(0, length_max));
}

// ---- Leaves ----

// Numbers, texts and what is made of them: equal where class and text are.
bool is_plain_leaf(nb::handle object);

bool are_plain_leaves(std::initializer_list<nb::handle> parts) {
  return std::ranges::all_of(parts, [](nb::handle part) { return is_plain_leaf(part); });
}

bool is_plain_leaf(nb::handle object) {
  PyObject* const pointer = object.ptr();
  if (object.is_none() || is_number(object) || PyUnicode_Check(pointer) || PyBytes_Check(pointer))
    return true;
  if (PyComplex_Check(pointer) || PyRange_Check(pointer) || pointer == Py_Ellipsis) return true;
  if (PySlice_Check(pointer))
    return are_plain_leaves({object.attr("start"), object.attr("stop"), object.attr("step")});
  if (!PyAnySet_Check(pointer)) return false;
  return std::ranges::all_of(nb::list(object), [](nb::handle part) { return is_plain_leaf(part); });
}

bool is_compared_by_identity(nb::handle object) {
  return Py_TYPE(object.ptr())->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

// What stays what it is as long as it lives: cells, functions, classes, modules, members of an Enum, and what
// compares by value.
bool is_known_by_identity(nb::handle object) {
  if (is_value(object) || nb::isinstance<nn::Cell>(object) || PyCallable_Check(object.ptr()) != 0)
    return true;
  if (is_dtype(object) || PyModule_Check(object.ptr())) return true;
  if (PyIter_Check(object.ptr()) != 0) return false;  // it would be empty at the second call
  const hashfunc hash = Py_TYPE(object.ptr())->tp_hash;
  return hash != PyBaseObject_Type.tp_hash && hash != &PyObject_HashNotImplemented;
}

}  // namespace

Arguments::Arguments(nb::handle positional, nb::handle keywords)
    : positional_(positional), keywords_(keywords) {
  const Py_ssize_t count = PyTuple_GET_SIZE(positional.ptr());
  tensors_.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    first_tensor_.push_back(tensors_.size());
    first_holder_.push_back(holders_.size());
    collect_argument(PyTuple_GET_ITEM(positional.ptr(), i));
    signature_ += '\n';
  }
  positional_tensors_ = tensors_.size();
  if (keywords.is_valid()) collect_keywords();
  // The plain case has an empty signature, which costs nothing to compare.
  if (signature_.find_first_not_of("T\n") == std::string::npos) signature_.clear();
}

// A quote begins no argument without a name, so that the two kinds are told apart.
void Arguments::collect_keywords() {
  for (const auto [key, value] : nb::borrow<nb::dict>(keywords_)) {
    signature_ += fmt::format("{}=", nb::repr(key).c_str());
    collect_argument(value);
    signature_ += '\n';
  }
}

std::string Arguments::difference(std::string_view signature, std::string_view before) {
  for (std::size_t i = 0; !signature.empty() || !before.empty(); ++i) {
    const std::string_view now = take_line(signature), then = take_line(before);
    // A signature of tensors alone is empty, without their lines.
    if (now == then || (now.empty() && then == "T") || (then.empty() && now == "T")) continue;
    const auto [name, text] = named(now.empty() ? then : now, i);
    if (now.empty()) return fmt::format("{} is not given, was {}", name, shown(text));
    if (then.empty()) return fmt::format("{} is {}, was not given", name, shown(text));
    const auto [name_before, text_before] = named(then, i);
    if (name != name_before) return fmt::format("{} is given, {} before", name, name_before);
    if (text.starts_with('#') && text_before.starts_with('#')) return name + " is another object than before";
    return fmt::format("{} is {}, was {}", name, shown(text), shown(text_before));
  }
  return "other arguments";
}

Arguments::Position Arguments::of_position(std::size_t position) const {
  Position found;
  if (position < first_tensor_.size()) {
    const nb::handle object = PyTuple_GET_ITEM(positional_.ptr(), static_cast<Py_ssize_t>(position));
    if (is_value(object) && !is_input(object)) found.parameter = nb::cast<const Value&>(object).parameter();
    const bool is_last = position + 1 == first_tensor_.size();
    found.first = first_tensor_[position];
    found.count = (is_last ? positional_tensors_ : first_tensor_[position + 1]) - found.first;
    if (found.parameter != nullptr || found.count > 0) return found;
  }
  throw nb::value_error(("grad_position asks for the gradient of argument " + std::to_string(position) +
                         ", which is no tensor and holds none")
                            .c_str());
}

nb::object Arguments::argument_with(std::size_t position, std::span<const Value> values) const {
  const std::span<const Holder> holders = std::span(holders_).subspan(first_holder_[position]);
  return ArgumentCopier(holders, values)
      .copy(PyTuple_GET_ITEM(positional_.ptr(), static_cast<Py_ssize_t>(position)));
}

bool Arguments::collect_argument(nb::handle object) {
  met_.clear();
  parts_in_objects_ = 0;
  return collect(object, 0);
}

bool Arguments::collect(nb::handle object, std::size_t depth) {
  if (is_input(object)) {
    tensors_.push_back(value_from(object));
    signature_ += 'T';
    if (is_of_derived_class(object)) write_identity(object.type());
    collect_attributes(object);
    return true;
  }
  const Container container = container_of(object);
  if (container != Container::none) return collect_container(object, container, depth);
  collect_leaf(object);
  return false;
}

bool Arguments::collect_container(nb::handle object, Container container, std::size_t depth) {
  const auto [known, is_new] = met_.try_emplace(object.ptr(), holders_.size());
  const std::size_t index = known->second;
  if (!is_new) {
    signature_ += fmt::format("@{}", index);
    return holders_[index].holds_tensors;
  }
  holders_.push_back({.object = object, .holds_tensors = true});  // what holds itself asks before it is known
  const bool holds_tensors = collect_parts(object, container, depth);
  holders_[index].holds_tensors = holds_tensors;
  return holds_tensors;
}

bool Arguments::collect_parts(nb::handle object, Container container, std::size_t depth) {
  const std::vector<ContainerPart> parts = parts_of(object);
  const bool is_object = container == Container::object;
  open_objects_ += is_object ? 1 : 0;
  if (open_objects_ > 0) parts_in_objects_ += parts.size();
  bool holds_tensors = false;
  if (depth >= container_depth_max || parts_in_objects_ > object_parts_max) {
    holders_.back().is_opaque = true;
    refuse(fmt::format("an argument holds objects with more than {} parts, or {} deep in each other",
                       object_parts_max, container_depth_max));
  } else {
    open_container(object, container);
    if (parts.empty() && is_object && is_compared_by_identity(object)) write_identity(object);  // a marker
    for (const ContainerPart& part : parts) {
      write_key(part, container);
      holds_tensors |= collect(part.value, depth + 1);
    }
    signature_ += ')';
  }
  open_objects_ -= is_object ? 1 : 0;
  return holds_tensors;
}

void Arguments::open_container(nb::handle object, Container container) {
  const bool is_exact =
      PyTuple_CheckExact(object.ptr()) || PyList_CheckExact(object.ptr()) || PyDict_CheckExact(object.ptr());
  if (is_exact) {
    signature_ += container == Container::tuple ? '(' : container == Container::list ? '[' : '{';
    return;
  }
  const nb::handle type = object.type();
  signature_ += fmt::format("{} #{:x}(", class_name(object), reinterpret_cast<std::uintptr_t>(type.ptr()));
  identities_.push_back(nb::borrow(type));
}

void Arguments::write_key(const ContainerPart& part, Container container) {
  if (part.place == ContainerPart::Place::attribute)
    signature_ += fmt::format(".{}=", nb::str(part.key).c_str());
  else if (container == Container::dict)
    signature_ += fmt::format("{}:", nb::repr(part.key).c_str());
}

// The code gets them with the tensor. What may change without becoming another object is read at each call.
void Arguments::collect_attributes(nb::handle input) {
  const nb::object attributes = attributes_on(input);
  if (!attributes.is_valid()) return;
  for (const auto [name, value] : nb::borrow<nb::dict>(attributes)) {
    const std::string text = nb::str(name).c_str();
    if (is_value(value)) refuse(fmt::format("the attribute {} of an argument is a tensor itself", text));
    signature_ += fmt::format(".{}=", text);
    collect_leaf(value);
  }
}

void Arguments::collect_leaf(nb::handle object) {
  if (is_plain_leaf(object)) {
    signature_ += fmt::format("{} {};", class_name(object), nb::repr(object).c_str());
    return;
  }
  // What an object keeps beside its tensors is not looked at more closely than its name in it.
  if (!is_known_by_identity(object) && open_objects_ == 0)
    refuse(
        fmt::format("an argument of type {} cannot be a part of a graph's signature; pass tensors, numbers, "
                    "texts, None, dtypes, parameters, cells, functions, or tuples, lists, dicts and objects "
                    "of them",
                    class_name(object)));
  write_identity(object);
}

void Arguments::write_identity(nb::handle object) {
  signature_ += fmt::format("#{};", reinterpret_cast<std::uintptr_t>(object.ptr()));
  identities_.push_back(nb::borrow(object));
}

void Arguments::refuse(std::string text) {
  if (refusal_.empty()) refusal_ = std::move(text);
}

CopiedArguments Arguments::with(std::span<const Value> values) const {
  ArgumentCopier copier(holders_, values, true);
  nb::list positional;
  for (const nb::handle argument : nb::iter(positional_)) positional.append(copier.copy(argument));
  nb::dict keywords;
  if (keywords_.is_valid())
    for (const auto [name, argument] : nb::borrow<nb::dict>(keywords_))
      keywords[name] = copier.copy(argument);
  return {nb::tuple(positional), std::move(keywords), copier.take_copies()};
}

}  // namespace muster::python
