// Classes of the operations of `map`, made from their rows (muster/data/operation_row.h).
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "python/muster/bindings/data_operation.h"
#include "python/muster/bindings/dataset.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/row_arguments.h"

namespace muster::python {
namespace {

using data::Numbers;
using data::OperationArgument;
using data::OperationRow;
using data::Setting;
using data::WholeNumbers;

// ---- Types ------------------------------------------------------------------------------------------------

struct TypeName {
  std::string operator()(std::int64_t) const { return "int"; }
  std::string operator()(double) const { return "float"; }
  std::string operator()(bool) const { return "bool"; }
  std::string operator()(DType) const { return "DType | str"; }
  std::string operator()(const WholeNumbers&) const { return "int | collections.abc.Sequence[int]"; }
  std::string operator()(const Numbers&) const { return "collections.abc.Sequence[float]"; }
  std::string operator()(data::Interpolation) const { return "Inter"; }
  std::string operator()(data::Border) const { return "Border"; }
};

struct SettingObject {
  template <class T>
  nb::object operator()(const T& value) const {
    return nb::cast(value);
  }
  nb::object operator()(DType value) const { return dtype_object(value); }
  // One number stands for itself.
  nb::object operator()(const WholeNumbers& values) const {
    return values.size() == 1 ? nb::object(nb::int_(values[0])) : nb::object(nb::tuple(nb::cast(values)));
  }
  nb::object operator()(const Numbers& values) const { return nb::tuple(nb::cast(values)); }
};

std::string type_of(const OperationArgument& argument) {
  return std::visit(TypeName(), argument.otherwise) + (argument.optional ? " | None" : "");
}

nb::object default_of(const OperationArgument& argument) {
  if (argument.required) return {};
  return argument.optional ? nb::none() : std::visit(SettingObject(), argument.otherwise);
}

// ---- Values -----------------------------------------------------------------------------------------------

[[noreturn]] void refuse(const OperationRow& row, const OperationArgument& argument, nb::handle object) {
  throw nb::type_error((std::string(row.name) + ": " + std::string(argument.name) + " must be " +
                        type_of(argument) + ", not " + class_name(object) + " (" + shown(object) + ")")
                           .c_str());
}

Setting setting_from(const OperationRow& row, const OperationArgument& argument, nb::handle object) {
  return std::visit(
      [&](const auto& otherwise) -> Setting {
        using Type = std::decay_t<decltype(otherwise)>;
        Type value{};
        std::int64_t number = 0;
        if constexpr (std::is_same_v<Type, DType>) {
          return dtype_from(object);
        } else {
          if constexpr (std::is_same_v<Type, WholeNumbers>)
            if (nb::try_cast(object, number)) return WholeNumbers{number};
          if (nb::try_cast(object, value)) return value;
          refuse(row, argument, object);
        }
      },
      argument.otherwise);
}

// ---- Classes ----------------------------------------------------------------------------------------------

ClassParameters parameters_of(const OperationRow& row) {
  ClassParameters made;
  for (const OperationArgument& argument : row.arguments)
    made.push_back(
        {.name = std::string(argument.name), .type = type_of(argument), .otherwise = default_of(argument)});
  return made;
}

Transform made_of(const OperationRow& row, const std::vector<nb::object>& objects) {
  data::Settings settings;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const OperationArgument& argument = row.arguments[i];
    if (argument.optional && objects[i].is_none()) continue;
    settings.set(argument.name, setting_from(row, argument, objects[i]));
  }
  return {unwrap(data::make_operation(row, settings))};
}

// A subclass of Transform, whose C++ part is the same for all rows.
nb::object class_of(const OperationRow& row, nb::module_& core) {
  const nb::object transform = core.attr("Transform");
  const std::string name(row.name), documentation(row.documentation), usage(row.usage);
  nb::dict members;
  members["__doc__"] = nb::str(documentation.c_str());
  members["__module__"] = core.attr("__name__");
  nb::object made = transform.type()(nb::str(name.c_str()), nb::make_tuple(transform), members);
  auto* parameters = new ClassParameters(parameters_of(row));  // for as long as the process runs
  nb::cpp_function(
      [&row, parameters](nb::handle self, const nb::args& positional, const nb::kwargs& keywords) {
        Transform value = made_of(row, placed(row.name, *parameters, positional, keywords));
        new (nb::inst_ptr<Transform>(self)) Transform(std::move(value));
        nb::inst_mark_ready(self);
      },
      nb::scope(made), nb::name("__init__"), nb::is_method(), nb::sig(init_signature(*parameters).c_str()),
      usage.c_str());
  return made;
}

nb::dict classes_of(data::Family family, nb::module_& core) {
  nb::dict classes;
  for (const OperationRow* row : data::operation_rows()) {
    if (row->family != family) continue;
    const std::string name(row->name);
    const nb::object made = class_of(*row, core);
    nb::setattr(core, name.c_str(), made);
    classes[name.c_str()] = made;
  }
  return classes;
}

void bind_enums(nb::module_& core) {
  nb::enum_<data::Interpolation>(core, "Inter", "How pixels are made where there were none.")
      .value("NEAREST", data::Interpolation::nearest)
      .value("LINEAR", data::Interpolation::linear)
      .value("BILINEAR", data::Interpolation::linear)
      .value("CUBIC", data::Interpolation::cubic)
      .value("BICUBIC", data::Interpolation::cubic)
      .value("AREA", data::Interpolation::area);
  nb::enum_<data::Border>(core, "Border", "What lies outside of an image.")
      .value("CONSTANT", data::Border::constant)
      .value("EDGE", data::Border::edge)
      .value("REFLECT", data::Border::reflect)
      .value("SYMMETRIC", data::Border::symmetric);
}

}  // namespace

void bind_data_rows(nb::module_& core) {
  bind_enums(core);
  core.attr("_transforms") = classes_of(data::Family::transforms, core);
  core.attr("_vision") = classes_of(data::Family::vision, core);
}

}  // namespace muster::python
