// save_checkpoint, load_checkpoint, load_param_into_net.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <vector>

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using checkpoint::Entry;

std::vector<Entry> entries_of(nb::handle object) {
  std::vector<Entry> entries;
  if (nb::isinstance<nn::Cell>(object)) {
    for (const auto& parameter : nb::cast<const nn::Cell&>(object).parameters())
      entries.push_back({parameter->name(), elements_of(graph::Value(parameter))});
    return entries;
  }
  const auto add = [&](nb::handle name, nb::handle value) {
    entries.push_back({nb::cast<std::string>(name), elements_of(value_from(value))});
  };
  if (nb::isinstance<nb::dict>(object)) {
    for (const auto [name, value] : nb::borrow<nb::dict>(object)) add(name, value);
    return entries;
  }
  for (const nb::handle item : nb::iter(object)) {
    if (nb::isinstance<PythonParameter>(item))
      add(item.attr("name"), item);
    else
      add(nb::object(item["name"]), nb::object(item["data"]));
  }
  return entries;
}

void save_checkpoint(nb::handle save_obj, const std::string& path) {
  const std::vector<Entry> entries = entries_of(save_obj);
  Result<> saved;
  {
    const nb::gil_scoped_release unlocked;
    const train::ActivityScope saving(cluster::WorkPhase::saving);
    saved = checkpoint::save(path, entries);
  }
  unwrap(std::move(saved));
}

nb::typed<nb::dict, nb::str, PythonParameter> load_checkpoint(const std::string& path) {
  Result<std::vector<Entry>> entries;
  {
    const nb::gil_scoped_release unlocked;
    entries = checkpoint::load(path);
  }
  nb::dict made;
  for (const Entry& entry : unwrap(std::move(entries)))
    made[entry.name.c_str()] = parameter_object(std::make_shared<graph::Parameter>(entry.name, entry.value));
  return made;
}

nb::typed<nb::tuple, nb::list, nb::list> load_param_into_net(const nn::Cell& net, nb::dict parameter_dict,
                                                             bool strict) {
  const std::vector<Entry> entries = entries_of(parameter_dict);
  const train::Unmatched unmatched =
      unwrap(train::load_parameters(net.parameters(), entries, {.strict = strict}));
  nb::list parameters, left;
  for (const std::string& name : unmatched.parameters) parameters.append(name);
  for (const std::string& name : unmatched.entries) left.append(name);
  return nb::make_tuple(parameters, left);
}

}  // namespace

void bind_checkpoint(nb::module_& core) {
  core.def("save_checkpoint", &save_checkpoint, nb::arg("save_obj"), nb::arg("ckpt_file_name"),
           "Writes the parameters of a cell, or a dict from names to tensors, or a list of Parameters or of "
           "{'name': ..., 'data': ...}. A name that ends in .safetensors gets that format, every other one "
           "that of MindSpore's .ckpt. A crash leaves the old file or the new one. OSError names the file. "
           "ValueError "
           "names a parameter that another worker has: save what Model.gather_parameters() gives.");
  core.def("load_checkpoint", &load_checkpoint, nb::arg("ckpt_file_name"),
           "The parameters of a .ckpt or .safetensors file by name. FileNotFoundError or CorruptDataError "
           "name the file.");
  core.def("load_param_into_net", &load_param_into_net, nb::arg("net"), nb::arg("parameter_dict"),
           nb::arg("strict") = true,
           "Sets each parameter of `net` to the value of its name. ValueError names all that are missing, "
           "unexpected or of another dtype or shape, and nothing is set; state of an optimizer "
           "('moments.fc.weight' beside 'fc.weight') and single numbers ('global_step') may be there. With "
           "strict=False what fits is set. Returns the names of parameters that got no value and of values "
           "that no parameter took.");
}

}  // namespace muster::python
