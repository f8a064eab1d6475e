// save_checkpoint, load_checkpoint, load_param_into_net, save_state, load_state.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/checkpoint/conversion.h"
#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/dataset.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using checkpoint::Entry;

using Tables = std::vector<graph::ParameterPtr>;

// Also what parameter servers have; of rows that they write themselves, the parameters alone, into `tables`.
void add_entries(std::vector<Entry>& entries, const std::string& name, const graph::Value& value,
                 Tables* tables) {
  if (tables != nullptr && value.is_parameter() && train::has_rows_on_servers(*value.parameter())) {
    tables->push_back(value.parameter());
    return;
  }
  if (!value.is_parameter() || !train::is_on_servers(*value.parameter())) {
    entries.push_back({name, elements_of(value)});
    return;
  }
  for (Entry& entry : unwrap(train::entries_on_servers(value.parameter(), name)))
    entries.push_back(std::move(entry));
}

std::vector<Entry> entries_of(nb::handle object, Tables* tables = nullptr) {
  std::vector<Entry> entries;
  if (nb::isinstance<nn::Cell>(object)) {
    for (const auto& parameter : nb::cast<const nn::Cell&>(object).parameters())
      add_entries(entries, parameter->name(), graph::Value(parameter), tables);
    return entries;
  }
  const auto add = [&](nb::handle name, nb::handle value) {
    add_entries(entries, nb::cast<std::string>(name), value_from(value), tables);
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

void save_checkpoint(nb::handle save_obj, const std::string& path, bool integrated_save) {
  Tables tables;
  std::vector<Entry> entries = entries_of(save_obj, integrated_save ? nullptr : &tables);
  train::SavedRows rows = unwrap(train::save_rows_beside(path, tables));
  if (rows.trouble) raise(*rows.trouble);
  entries.insert(entries.end(), rows.entries.begin(), rows.entries.end());
  Result<> saved;
  {
    const nb::gil_scoped_release unlocked;
    const train::ActivityScope saving(cluster::WorkPhase::saving);
    saved = checkpoint::save(path, entries);
    if (saved && train::rank() == 0) train::remove_other_rows(path, entries);
  }
  unwrap(std::move(saved));
}

// None, a cell, or several.
void add_cells(nb::handle object, const char* what, std::vector<nn::CellPtr>& cells) {
  if (object.is_none()) return;
  if (nb::isinstance<nn::Cell>(object)) {
    cells.push_back(nb::cast<nn::CellPtr>(object));
    return;
  }
  if (!nb::isinstance<nb::list>(object) && !nb::isinstance<nb::tuple>(object)) {
    const auto type = class_name(object);
    throw nb::type_error((std::string(what) + " is a Cell or a list of them, not " + type).c_str());
  }
  for (const nb::handle item : nb::borrow<nb::object>(object)) add_cells(item, what, cells);
}

nb::typed<nb::dict, nb::str, PythonParameter> parameters_of(Result<std::vector<Entry>> entries) {
  nb::dict made;
  for (const Entry& entry : unwrap(std::move(entries)))
    made[entry.name.c_str()] = parameter_object(std::make_shared<graph::Parameter>(entry.name, entry.value));
  return made;
}

// Of several files: pieces are joined, and of wholes any is enough.
nb::typed<nb::dict, nb::str, PythonParameter> load_joined(const std::vector<std::string>& files) {
  Result<std::vector<Entry>> entries;
  {
    const nb::gil_scoped_release unlocked;
    entries = checkpoint::load_joined(files);
  }
  return parameters_of(std::move(entries));
}

nb::typed<nb::dict, nb::str, PythonParameter> load_checkpoint(const std::string& path) {
  Result<std::vector<Entry>> entries;
  {
    const nb::gil_scoped_release unlocked;
    entries = train::load_checkpoint(path);
  }
  return parameters_of(std::move(entries));
}

std::vector<std::string> join_checkpoints(const std::vector<std::string>& sources,
                                          const std::vector<std::string>& destinations) {
  Result<checkpoint::Converted> done;
  {
    const nb::gil_scoped_release unlocked;
    done = checkpoint::convert({.sources = sources, .destinations = destinations});
  }
  return unwrap(std::move(done)).tensors;
}

// The mesh file of how the workers of this job hold the parameters of cells.
std::string held_layout_text(nb::handle cells) {
  std::vector<nn::CellPtr> found;
  add_cells(cells, "cells", found);
  std::vector<graph::ParameterPtr> parameters;
  for (const nn::CellPtr& cell : found)
    for (const graph::ParameterPtr& parameter : cell->parameters()) parameters.push_back(parameter);
  return checkpoint::mesh_file_text(train::held_layout(parameters));
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

// ---- The state of a loop that is written by hand ----------------------------------------------------------

std::vector<nn::CellPtr> cells_of(nb::handle net, nb::handle optimizer) {
  std::vector<nn::CellPtr> cells;
  add_cells(net, "net", cells);
  add_cells(optimizer, "optimizer", cells);
  return cells;
}

void save_state(const std::string& path, nb::handle net, nb::handle optimizer, nb::handle dataset,
                std::optional<std::int64_t> epoch, std::optional<std::int64_t> step) {
  const std::vector<nn::CellPtr> cells = cells_of(net, optimizer);
  train::LoopPosition position;
  if (!dataset.is_none()) {
    const PythonDataset& data = python_dataset_from(dataset, "dataset");
    const PassProgress& progress = *data.progress;
    position.pass = progress.is_over ? data.passes : progress.pass;
    position.items = progress.is_over ? data.first_item : progress.items;
  }
  position.epoch = epoch.value_or(static_cast<std::int64_t>(position.pass));
  position.step = step.value_or(static_cast<std::int64_t>(position.items));
  Result<> saved;
  {
    const nb::gil_scoped_release unlocked;
    saved = train::save_state(path, cells, position);
  }
  unwrap(std::move(saved));
}

nb::typed<nb::tuple, std::int64_t, std::int64_t> load_state(const std::string& path, nb::handle net,
                                                            nb::handle optimizer, nb::handle dataset,
                                                            bool missing_ok) {
  const std::vector<nn::CellPtr> cells = cells_of(net, optimizer);
  PythonDataset* const data = dataset.is_none() ? nullptr : &python_dataset_from(dataset, "dataset");
  Result<std::optional<train::LoopPosition>> loaded = std::nullopt;
  {
    const nb::gil_scoped_release unlocked;
    loaded = train::load_state(path, cells, {.missing_ok = missing_ok});
  }
  const std::optional<train::LoopPosition> position = unwrap(std::move(loaded));
  if (!position) return nb::make_tuple(0, 0);
  if (data != nullptr) {
    data->passes = position->pass;
    data->first_item = position->items;
    *data->progress = {.pass = position->pass};
  }
  return nb::make_tuple(position->epoch, position->step);
}

}  // namespace

void bind_checkpoint(nb::module_& core) {
  core.def("save_state", &save_state, nb::arg("path"), nb::arg("net"), nb::arg("optimizer") = nb::none(),
           nb::arg("dataset") = nb::none(), nb::kw_only(), nb::arg("epoch") = nb::none(),
           nb::arg("step") = nb::none(),
           "Writes all that a loop written by hand needs to go on from here: the parameters of `net` and "
           "`optimizer` (a cell or a list of them), where the newest pass over `dataset` is, the random "
           "numbers and two counters. `epoch` is by default the number of the pass, from 0, and `step` how "
           "many of its items were taken. Call it behind a step. A crash leaves the old file or the new one. "
           "In a job all workers call it: worker 1 writes 'run.rank_1.state' for 'run.state', and keeps the "
           "one before. OSError names the file.");
  core.def("load_state", &load_state, nb::arg("path"), nb::arg("net"), nb::arg("optimizer") = nb::none(),
           nb::arg("dataset") = nb::none(), nb::kw_only(), nb::arg("missing_ok") = false,
           "Goes on from what save_state wrote: sets parameters, random numbers and the place in `dataset` "
           "(the next loop over it begins there), and returns (epoch, step). The loop that follows gives "
           "the same bits as one that was never interrupted. In a job all workers call it, and go on from "
           "the newest state that each has. FileNotFoundError where there is none; with `missing_ok` that is "
           "(0, 0), and a line says so. CorruptDataError names a file that is damaged or is another one; "
           "ValueError says what does not fit the script, or which workers lack the file.");
  core.def(
      "save_checkpoint", &save_checkpoint, nb::arg("save_obj"), nb::arg("ckpt_file_name"),
      nb::arg("integrated_save") = true,
      "Writes the parameters of a cell, or a dict from names to tensors, or a list of Parameters or of "
      "{'name': ..., 'data': ...}. A name that ends in .safetensors gets that format, every other one "
      "that of MindSpore's .ckpt. A crash leaves the old file or the new one. OSError names the file. "
      "ValueError "
      "names a parameter that another worker has: save what Model.gather_parameters() gives. With "
      "integrated_save=False each parameter server writes its rows of tables beside the file (in a folder "
      "that is named like it), and no worker has them in its memory; all workers make that call.");
  core.def("load_checkpoint", &load_checkpoint, nb::arg("ckpt_file_name"),
           "The parameters of a .ckpt or .safetensors file by name; or of a folder with a file for each rank "
           "(rank_0.safetensors ..., as `muster checkpoint convert` writes them), whose pieces are joined. "
           "FileNotFoundError or CorruptDataError name the file; ValueError says which pieces do not fit.");
  core.def("_load_joined", &load_joined, nb::arg("files"));
  core.def("_join_checkpoints", &join_checkpoints, nb::arg("sources"), nb::arg("destinations"),
           "The names of the tensors that were written.");
  core.def("_held_layout", &held_layout_text, nb::arg("cells"));
  core.def("load_param_into_net", &load_param_into_net, nb::arg("net"), nb::arg("parameter_dict"),
           nb::arg("strict") = true,
           "Sets each parameter of `net` to the value of its name. ValueError names all that are missing, "
           "unexpected or of another dtype or shape, and nothing is set; state of an optimizer "
           "('moments.fc.weight' beside 'fc.weight') and single numbers ('global_step') may be there. With "
           "strict=False what fits is set. Returns the names of parameters that got no value and of values "
           "that no parameter took.");
}

}  // namespace muster::python
