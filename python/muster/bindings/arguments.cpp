#include "python/muster/bindings/arguments.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
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

constexpr std::size_t depth_limit = 32;  // of nested lists and dicts

bool is_array(nb::handle object) {  // numpy's, and what else lies in memory as one
  return PyObject_CheckBuffer(object.ptr()) && !PyBytes_Check(object.ptr()) &&
         !PyByteArray_Check(object.ptr());
}

// A tensor becomes an input. A parameter stays what it is: its identity is a part of the graph.
bool is_input(nb::handle object) {
  if (!is_value(object)) return is_array(object);
  return !nb::cast<const Value&>(object).is_parameter();
}

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

std::string shown(std::string_view text) {
  constexpr std::size_t length_max = 60;
  if (text == "T") return "a tensor";
  if (text.starts_with('#')) return "an object";
  if (text.ends_with(';')) text.remove_suffix(1);
  return text.size() <= length_max ? std::string(text) : fmt::format("{}...", text.substr(0, length_max));
}

class Rebuilder {
 public:
  explicit Rebuilder(std::span<const Value> values) : values_(values) {}

  nb::object of(nb::handle object) {
    if (is_input(object)) return value_object(values_[next_++]);
    if (nb::isinstance<nb::tuple>(object)) return nb::tuple(list_of(object));
    if (nb::isinstance<nb::list>(object)) return list_of(object);
    if (nb::isinstance<nb::dict>(object)) return dict_of(object);
    return nb::borrow(object);
  }

 private:
  nb::list list_of(nb::handle sequence) {
    nb::list made;
    for (const nb::handle part : nb::iter(sequence)) made.append(of(part));
    return made;
  }
  nb::dict dict_of(nb::handle mapping) {
    nb::dict made;
    for (const auto [key, value] : nb::borrow<nb::dict>(mapping)) made[key] = of(value);
    return made;
  }

  std::span<const Value> values_;
  std::size_t next_ = 0;
};

}  // namespace

Arguments::Arguments(nb::handle positional, nb::handle keywords)
    : positional_(positional), keywords_(keywords) {
  const Py_ssize_t count = PyTuple_GET_SIZE(positional.ptr());
  tensors_.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    first_tensor_.push_back(tensors_.size());
    collect(PyTuple_GET_ITEM(positional.ptr(), i), 0);
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
    collect(value, 0);
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
  return Rebuilder(values).of(PyTuple_GET_ITEM(positional_.ptr(), static_cast<Py_ssize_t>(position)));
}

void Arguments::collect(nb::handle object, std::size_t depth) {
  if (is_input(object)) {
    tensors_.push_back(value_from(object));
    signature_ += 'T';
    return;
  }
  if (depth >= depth_limit) throw nb::value_error("arguments are nested too deeply");
  if (nb::isinstance<nb::tuple>(object) || nb::isinstance<nb::list>(object))
    return collect_sequence(object, depth);
  if (nb::isinstance<nb::dict>(object)) return collect_mapping(object, depth);
  if (collect_plain(object)) return;
  throw nb::type_error(
      ("an argument of type " + class_name(object) +
       " cannot be a part of a graph's signature; pass tensors, numbers, strings, None, dtypes, "
       "parameters, cells, functions, or tuples, lists and dicts of them")
          .c_str());
}

void Arguments::collect_sequence(nb::handle object, std::size_t depth) {
  signature_ += nb::isinstance<nb::tuple>(object) ? '(' : '[';
  for (const nb::handle part : nb::iter(object)) collect(part, depth + 1);
  signature_ += ')';
}

void Arguments::collect_mapping(nb::handle object, std::size_t depth) {
  signature_ += '{';
  for (const auto [key, value] : nb::borrow<nb::dict>(object)) {
    signature_ += fmt::format("{}:", nb::repr(key).c_str());
    collect(value, depth + 1);
  }
  signature_ += '}';
}

bool Arguments::collect_plain(nb::handle object) {
  if (object.is_none() || is_number(object) || nb::isinstance<nb::str>(object)) {
    signature_ += fmt::format("{} {};", class_name(object), nb::repr(object).c_str());
    return true;
  }
  const bool by_identity = is_value(object) || nb::isinstance<nn::Cell>(object) ||
                           PyCallable_Check(object.ptr()) != 0 || is_dtype(object);
  if (!by_identity) return false;
  signature_ += fmt::format("#{};", reinterpret_cast<std::uintptr_t>(object.ptr()));
  identities_.push_back(nb::borrow(object));
  return true;
}

std::pair<nb::object, nb::object> Arguments::with(std::span<const Value> values) const {
  Rebuilder rebuild(values);
  nb::object positional = rebuild.of(positional_);
  nb::object keywords = keywords_.is_valid() ? rebuild.of(keywords_) : nb::object(nb::dict());
  return {std::move(positional), std::move(keywords)};
}

}  // namespace muster::python
