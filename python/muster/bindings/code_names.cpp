#include "python/muster/bindings/code_names.h"

#include <opcode.h>

#include <cstdint>
#include <string_view>

namespace muster::python {
namespace {

// Where its argument has the index of a name; -1: nowhere. (Python's dis, which takes a millisecond to
// import, reads them so.)
int variable_shift(int op) {
  if (op == LOAD_GLOBAL) return PY_VERSION_HEX >= 0x030B0000 ? 1 : 0;
  return op == LOAD_NAME ? 0 : -1;
}

int attribute_shift(int op) {
#ifdef LOAD_METHOD
  if (op == LOAD_METHOD) return 0;
#endif
#ifdef LOAD_SUPER_ATTR
  if (op == LOAD_SUPER_ATTR) return 2;
#endif
  return op == LOAD_ATTR ? (PY_VERSION_HEX >= 0x030C0000 ? 1 : 0) : -1;
}

bool is_identifier(nb::handle object) {
  return PyUnicode_Check(object.ptr()) && PyUnicode_IsIdentifier(object.ptr()) == 1;
}

bool is_installed(nb::handle module) {
  const nb::object modules = nb::module_::import_("sys").attr("modules");
  const nb::object found = nb::borrow<nb::dict>(modules).contains(module) ? modules[module] : nb::none();
  const nb::object file = nb::getattr(found, "__file__", nb::none());
  if (!PyUnicode_Check(file.ptr())) return false;
  const std::string_view path = PyUnicode_AsUTF8(file.ptr());
  return path.find("/site-packages/") != path.npos || path.find("/dist-packages/") != path.npos;
}

}  // namespace

void add_names(CodeNames& names, nb::handle code) {
  const auto instructions = nb::borrow<nb::bytes>(code.attr("co_code"));
  const auto in_code = nb::borrow<nb::tuple>(code.attr("co_names"));
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(instructions.c_str());
  std::size_t argument = 0;
  for (std::size_t i = 0; i + 1 < instructions.size(); i += 2) {
    const int op = bytes[i];
    argument = argument << 8 | bytes[i + 1];
    if (op == EXTENDED_ARG) continue;
    if (const int shift = variable_shift(op); shift >= 0) names.variables.add(in_code[argument >> shift]);
    if (const int shift = attribute_shift(op); shift >= 0) names.attributes.add(in_code[argument >> shift]);
    argument = 0;
  }
  const bool reads_texts = names.variables.contains("getattr");
  for (const nb::handle constant : nb::borrow<nb::tuple>(code.attr("co_consts"))) {
    if (PyCode_Check(constant.ptr())) add_names(names, constant);
    if (reads_texts && is_identifier(constant)) names.attributes.add(constant);
  }
}

bool Libraries::has(nb::handle module) {
  if (!PyUnicode_Check(module.ptr())) return false;
  const std::string name = PyUnicode_AsUTF8(module.ptr());
  const auto [place, is_new] = known_.try_emplace(name);
  if (!is_new) return place->second;
  const std::string package = name.substr(0, name.find('.'));
  const bool is_own = package == "muster" || package == "mindspore";
  const nb::object of_python = nb::module_::import_("sys").attr("stdlib_module_names");
  place->second =
      package != "__main__" &&
      (is_own || nb::cast<bool>(of_python.attr("__contains__")(package.c_str())) || is_installed(module));
  return place->second;
}

}  // namespace muster::python
