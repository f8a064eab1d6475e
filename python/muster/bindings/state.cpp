#include "python/muster/bindings/state.h"

#include <nanobind/stl/string.h>

#include <map>
#include <string>
#include <utility>

#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using train::State;

// In the JSON, in the place of a tensor or an array: a dict with this key and the name of the tensor.
constexpr const char* tensor_mark = "__tensor__";
constexpr const char* array_mark = "__array__";
constexpr int depth_max = 32;  // deeper ones hold themselves

nb::module_ json() { return nb::module_::import_("json"); }

std::string dumped(const nb::object& values) { return nb::cast<std::string>(json().attr("dumps")(values)); }

nb::object loaded(const std::string& text) {
  if (text.empty()) return nb::dict();
  return json().attr("loads")(nb::str(text.data(), text.size()));
}

bool is_array(nb::handle object) {
  return nb::isinstance(object, nb::module_::import_("numpy").attr("ndarray"));
}

bool is_numpy_scalar(nb::handle object) {
  return nb::isinstance(object, nb::module_::import_("numpy").attr("generic"));
}

// Takes tensors out of a state and leaves marks.
class Packer {
 public:
  explicit Packer(std::string owner) : owner_(std::move(owner)) {}

  nb::object pack(nb::handle object, const std::string& path, int depth = 0) {
    if (depth > depth_max) refuse(path, "is nested too deeply");
    PyObject* raw = object.ptr();
    if (object.is_none() || PyBool_Check(raw) || PyLong_Check(raw) || PyFloat_Check(raw) ||
        PyUnicode_Check(raw))
      return is_numpy_scalar(object) ? nb::object(object.attr("item")()) : nb::borrow(object);
    if (is_value(object) || is_array(object)) return mark(object, path);
    if (is_numpy_scalar(object)) return object.attr("item")();
    if (nb::isinstance<nb::dict>(object)) return pack_dict(object, path, depth);
    if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object))
      return pack_list(object, path, depth);
    const auto type = class_name(object);
    refuse(path, "is " + type +
                     ", and a recovery point keeps numbers, strings, booleans, None, tensors, "
                     "arrays, and lists and dicts of them");
  }

  std::vector<checkpoint::Entry> tensors;

 private:
  [[noreturn]] void refuse(const std::string& path, const std::string& what) const {
    throw nb::type_error((owner_ + ": '" + path + "' " + what).c_str());
  }

  nb::object mark(nb::handle object, const std::string& path) {
    const bool array = is_array(object);
    tensors.push_back(
        {path, array ? tensor_copied(object, std::nullopt) : elements_of(value_from(object)).clone()});
    nb::dict made;
    made[array ? array_mark : tensor_mark] = path;
    return made;
  }

  nb::object pack_dict(nb::handle object, const std::string& path, int depth) {
    nb::dict made;
    for (const auto [key, value] : nb::borrow<nb::dict>(object)) {
      if (!nb::isinstance<nb::str>(key)) refuse(path, "has a key that is no string");
      const auto name = nb::cast<std::string>(key);
      made[key] = pack(value, path.empty() ? name : path + "." + name, depth + 1);
    }
    return made;
  }

  nb::object pack_list(nb::handle object, const std::string& path, int depth) {
    nb::list made;
    std::size_t index = 0;
    for (const nb::handle item : nb::borrow<nb::object>(object))
      made.append(pack(item, path + "[" + std::to_string(index++) + "]", depth + 1));
    return made;
  }

  std::string owner_;
};

class Unpacker {
 public:
  explicit Unpacker(const State& state) {
    for (const checkpoint::Entry& entry : state.tensors) tensors_[entry.name] = &entry.value;
  }

  nb::object unpack(nb::handle object) const {
    if (nb::isinstance<nb::list>(object)) {
      nb::list made;
      for (const nb::handle item : nb::borrow<nb::list>(object)) made.append(unpack(item));
      return made;
    }
    if (!nb::isinstance<nb::dict>(object)) return nb::borrow(object);
    const auto dict = nb::borrow<nb::dict>(object);
    for (const char* name : {tensor_mark, array_mark})
      if (dict.contains(name)) return value(nb::cast<std::string>(dict[name]), name == array_mark);
    nb::dict made;
    for (const auto [key, item] : dict) made[key] = unpack(item);
    return made;
  }

 private:
  nb::object value(const std::string& name, bool array) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw nb::key_error(("the state has no tensor '" + name + "'").c_str());
    const nb::object made = tensor_object(found->second->clone());
    return array ? nb::object(made.attr("asnumpy")()) : made;
  }

  std::map<std::string, const Tensor*> tensors_;
};

nb::dict dict_from(nb::handle object, const std::string& owner) {
  if (nb::isinstance<nb::dict>(object)) return nb::borrow<nb::dict>(object);
  const auto type = class_name(object);
  throw nb::type_error((owner + ": a state is a dict, not " + type).c_str());
}

}  // namespace

State state_from(nb::handle object, const std::string& owner) {
  Packer packer(owner);
  State state{.text = dumped(packer.pack(dict_from(object, owner), ""))};
  state.tensors = std::move(packer.tensors);
  return state;
}

nb::object state_object(const State& state) { return Unpacker(state).unpack(loaded(state.text)); }

State called_state_dict(nb::handle self, const nb::object& state_dict) {
  return state_from(state_dict(), class_name(self) + ".state_dict");
}

Result<> call_load_state_dict(nb::handle self, const nb::object& load_state_dict, const State& state) {
  if (!load_state_dict.is_valid())
    return fail(Code::not_provided, class_name(self) + " has a state_dict but no load_state_dict");
  load_state_dict(state_object(state));
  return {};
}

State native_state_from(nb::handle object, const std::string& owner) {
  nb::dict values;
  values.update(dict_from(object, owner));
  State state;
  if (values.contains("tensors")) {
    for (const auto [name, value] : nb::cast<nb::dict>(values["tensors"]))
      state.tensors.push_back({nb::cast<std::string>(name), elements_of(value_from(value)).clone()});
    nb::del(values["tensors"]);
  }
  state.text = dumped(values);
  return state;
}

nb::object native_state_object(const State& state) {
  const nb::object made = loaded(state.text);
  if (state.tensors.empty()) return made;
  nb::dict tensors;
  for (const checkpoint::Entry& entry : state.tensors)
    tensors[entry.name.c_str()] = tensor_object(entry.value.clone());
  made["tensors"] = tensors;
  return made;
}

}  // namespace muster::python
