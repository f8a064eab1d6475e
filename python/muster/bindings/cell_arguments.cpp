#include "python/muster/bindings/cell_arguments.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <vector>

#include "python/muster/bindings/dtype.h"

namespace muster::python {
namespace {

// A number as itself, a sequence of numbers as a list.
std::vector<std::int64_t> numbers_from(nb::handle object, const std::string& what) {
  const auto is_number = [](nb::handle each) {
    return PyLong_Check(each.ptr()) && !PyBool_Check(each.ptr());
  };
  if (is_number(object)) return {nb::cast<std::int64_t>(object)};
  std::vector<std::int64_t> numbers;
  if (!nb::isinstance<nb::tuple>(object) && !nb::isinstance<nb::list>(object)) {
    const std::string type = class_name(object);
    throw nb::type_error((what + " is a whole number or a tuple of them, not " + type).c_str());
  }
  for (const nb::handle item : nb::iter(object)) {
    if (!is_number(item)) {
      const std::string type = class_name(item);
      throw nb::type_error((what + " holds whole numbers, not " + type).c_str());
    }
    numbers.push_back(nb::cast<std::int64_t>(item));
  }
  return numbers;
}

[[noreturn]] void refuse_count(const std::string& what, std::size_t count, const char* allowed) {
  throw nb::value_error((what + " has " + std::to_string(count) + " numbers, not " + allowed).c_str());
}

}  // namespace

nn::Size2d size_from(nb::handle object, const std::string& what) {
  const std::vector<std::int64_t> numbers = numbers_from(object, what);
  if (numbers.size() == 1) return numbers[0];
  if (numbers.size() == 2) return {numbers[0], numbers[1]};
  refuse_count(what, numbers.size(), "1 or 2");
}

nn::Padding padding_from(nb::handle object, const std::string& what) {
  const std::vector<std::int64_t> numbers = numbers_from(object, what);
  if (numbers.size() == 1) return numbers[0];
  if (numbers.size() == 2) return {numbers[0], numbers[0], numbers[1], numbers[1]};
  if (numbers.size() == 4) return {numbers[0], numbers[1], numbers[2], numbers[3]};
  refuse_count(what, numbers.size(), "1, 2 or 4");
}

nn::PadMode pad_mode_from(nb::handle object, const std::string& what) {
  if (!nb::isinstance<nb::str>(object)) {
    const std::string type = class_name(object);
    throw nb::type_error((what + ": pad_mode is a string, not " + type).c_str());
  }
  Result<nn::PadMode> mode = nn::pad_mode_from(nb::cast<std::string>(object));
  if (!mode) raise(Error{mode.error().code, what + ": " + mode.error().message});
  return *mode;
}

void require_nchw(const std::string& data_format, const std::string& what) {
  if (data_format == "NCHW") return;
  if (data_format == "NHWC")
    raise(Error{Code::not_provided, what + ": data_format 'NHWC' is not provided; 'NCHW' is"});
  throw nb::value_error((what + ": data_format is 'NCHW', not '" + data_format + "'").c_str());
}

void require_float32(nb::handle dtype, const std::string& what) {
  if (dtype.is_none() || dtype_from(dtype) == DType::float32) return;
  raise(Error{Code::not_provided,
              what + "(dtype=" + nb::cast<std::string>(nb::str(dtype)) + ") is not provided: float32 is"});
}

nn::CellPtr activation_from(nb::handle activation) {
  if (activation.is_none()) return nullptr;
  if (nb::isinstance<nn::Cell>(activation)) return nb::cast<nn::CellPtr>(activation);
  if (nb::isinstance<nb::str>(activation))
    return unwrap(nn::activation_named(nb::cast<std::string>(activation)));
  const std::string type = class_name(activation);
  throw nb::type_error(("activation is a cell or the name of one, not " + type).c_str());
}

}  // namespace muster::python
