// save_checkpoint, load_checkpoint, load_param_into_net, save_state, load_state.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
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

// What a file is to have that this worker writes alone, as it holds it: rows of tables that servers write
// themselves, and what is divided or another worker's.
struct Apart {
  Tables tables;
  std::vector<train::NamedParameter> parameters;
};

struct NamedValue {
  std::string name;
  graph::Value value;
};

// Whether several workers have the parameters among these, each its own: then all of them save them together,
// also those that one has. Of those of a single worker that one alone can.
bool are_of_several(const std::vector<NamedValue>& values) {
  std::optional<std::uint32_t> first;
  for (const auto& [name, value] : values) {
    if (!value.is_parameter() || !value.parameter()->home()) continue;
    const std::uint32_t rank = value.parameter()->home()->rank;
    if (first.value_or(rank) != rank) return true;
    first = rank;
  }
  return false;
}

// A call of all workers.
Tensor gathered(const graph::ParameterPtr& parameter) {
  auto entries = [&] {
    const nb::gil_scoped_release unlocked;
    const train::ActivityScope saving(cluster::WorkPhase::saving);
    return train::gather_parameters(std::span(&parameter, 1));
  }();
  return unwrap(std::move(entries)).front().value;
}

// Also what parameter servers and other workers have, but for what is to be apart.
void add_entries(std::vector<Entry>& entries, const NamedValue& named, bool are_of_several, Apart* apart) {
  const auto& [name, value] = named;
  const graph::ParameterPtr parameter = value.is_parameter() ? value.parameter() : nullptr;
  if (parameter == nullptr) {
    entries.push_back({name, elements_of(value)});
  } else if (apart != nullptr && train::has_rows_on_servers(*parameter)) {
    apart->tables.push_back(parameter);
  } else if (train::is_on_servers(*parameter)) {
    for (Entry& entry : unwrap(train::entries_on_servers(parameter, name)))
      entries.push_back(std::move(entry));
  } else if (apart != nullptr && (parameter->share() || parameter->home())) {
    apart->parameters.push_back({name, parameter});
  } else if (parameter->share() || (are_of_several && parameter->home())) {
    entries.push_back({name, gathered(parameter)});
  } else {
    entries.push_back({name, elements_of(value)});
  }
}

std::vector<NamedValue> values_in(nb::handle object) {
  std::vector<NamedValue> values;
  if (nb::isinstance<nn::Cell>(object)) {
    for (const auto& parameter : nb::cast<const nn::Cell&>(object).parameters())
      values.push_back({parameter->name(), graph::Value(parameter)});
    return values;
  }
  const auto add = [&](nb::handle name, nb::handle value) {
    values.push_back({nb::cast<std::string>(name), value_from(value)});
  };
  if (nb::isinstance<nb::dict>(object)) {
    for (const auto [name, value] : nb::borrow<nb::dict>(object)) add(name, value);
    return values;
  }
  for (const nb::handle item : nb::iter(object)) {
    if (nb::isinstance<PythonParameter>(item))
      add(item.attr("name"), item);
    else
      add(nb::object(item["name"]), nb::object(item["data"]));
  }
  return values;
}

std::vector<Entry> entries_of(nb::handle object, Apart* apart = nullptr) {
  const std::vector<NamedValue> values = values_in(object);
  const bool several = are_of_several(values);
  std::vector<Entry> entries;
  for (const NamedValue& each : values) add_entries(entries, each, several, apart);
  return entries;
}

void save_checkpoint(nb::handle save_obj, const std::string& path, bool integrated_save) {
  Apart apart;
  std::optional<train::PipelineLayoutScope> scope;
  if (nb::isinstance<nn::Cell>(save_obj)) {
    const auto* cell = &nb::cast<const nn::Cell&>(save_obj);
    scope.emplace(std::span(&cell, 1));
  }
  std::vector<Entry> entries = entries_of(save_obj, integrated_save ? nullptr : &apart);
  train::SavedRows rows = unwrap(train::save_rows_beside(path, apart.tables));
  if (rows.trouble) raise(*rows.trouble);
  entries.insert(entries.end(), rows.entries.begin(), rows.entries.end());
  if (train::body_is_void()) return;  // zeros instead of what servers and other workers have
  train::HeldPieces held = unwrap(train::held_pieces(apart.parameters));
  entries.insert(entries.end(), held.entries.begin(), held.entries.end());
  Result<> saved;
  {
    const nb::gil_scoped_release unlocked;
    const train::ActivityScope saving(cluster::WorkPhase::saving);
    saved = checkpoint::save(path, entries, real_files(), held.layout);
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
  nb::typed<nb::dict, nb::str, PythonParameter> made = parameters_of(std::move(entries));
  if (std::filesystem::is_directory(path)) return made;
  const std::shared_ptr<const train::FilePiece> file = unwrap(train::file_of_pieces(path));
  if (file == nullptr) return made;
  for (const checkpoint::MeshLayout::Rule& rule : file->layout.layout.rules)
    if (made.contains(rule.pattern.c_str()))
      nb::cast<PythonParameter&>(made[rule.pattern.c_str()]).file = file;
  return made;
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
  train::LoadOptions options{.strict = strict, .pieces = {}};
  for (const auto [name, value] : parameter_dict)
    if (nb::isinstance<PythonParameter>(value))
      if (const auto& file = nb::cast<const PythonParameter&>(value).file)
        options.pieces[nb::cast<std::string>(name)] = file;
  const train::Unmatched unmatched = unwrap(train::load_parameters(net.parameters(), entries, options));
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
  const data::Dataset* description = nullptr;
  if (!dataset.is_none()) {
    const PythonDataset& data = python_dataset_from(dataset, "dataset");
    description = &data.description;
    const PassProgress& progress = *data.progress;
    position.pass = progress.is_over ? data.passes : progress.pass;
    position.items = progress.is_over ? data.first_item : progress.items;
    position.rows_before = progress.is_over ? data.rows_before : progress.rows_before;
    position.items_before = progress.is_over ? data.items_before : progress.items_before;
  }
  position.epoch = epoch.value_or(static_cast<std::int64_t>(position.pass));
  position.step = step.value_or(static_cast<std::int64_t>(position.items));
  Result<> saved;
  {
    const nb::gil_scoped_release unlocked;
    saved = train::save_state(path, cells, position, description);
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
    loaded = train::load_state(
        path, cells, {.missing_ok = missing_ok, .dataset = data == nullptr ? nullptr : &data->description});
  }
  const std::optional<train::LoopPosition> position = unwrap(std::move(loaded));
  if (!position) return nb::make_tuple(0, 0);
  if (data != nullptr) {
    data->passes = position->pass;
    data->first_item = position->items;
    data->rows_before = position->rows_before;
    data->items_before = position->items_before;
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
  core.def(
      "load_state", &load_state, nb::arg("path"), nb::arg("net"), nb::arg("optimizer") = nb::none(),
      nb::arg("dataset") = nb::none(), nb::kw_only(), nb::arg("missing_ok") = false,
      "Goes on from what save_state wrote: sets parameters, random numbers and the place in `dataset` (the "
      "next loop over it begins there), and returns (epoch, step). The loop that follows gives the same bits "
      "as one that was never interrupted. In a job all workers call it, and go on from the newest state that "
      "each has; with `dataset`, in both calls, another number of workers goes on with the rows of the pass "
      "that those of before have not had. FileNotFoundError where there is none; with `missing_ok` that is "
      "(0, 0), and a line says so. CorruptDataError names a file that is damaged or is another one; "
      "ValueError says what does not fit the script, or which workers lack the file.");
  core.def(
      "save_checkpoint", &save_checkpoint, nb::arg("save_obj"), nb::arg("ckpt_file_name"),
      nb::arg("integrated_save") = true,
      "Writes the parameters of a cell, or a dict from names to tensors, or a list of Parameters or of "
      "{'name': ..., 'data': ...}. A name that ends in .safetensors gets that format, every other one "
      "that of MindSpore's .ckpt. A crash leaves the old file or the new one. OSError names the file. "
      "Where parameters are divided, or other workers have some, each file gets wholes, and all workers make "
      "this call. With integrated_save=False each worker writes what it holds of them, with the layout in "
      "the file: load_checkpoint of their folder, and load_param_into_net of a file, join them again. Each "
      "parameter server then writes its rows of tables beside the file (in a folder that is named like it), "
      "and no worker has them in its memory; all workers make that call.");
  core.def(
      "load_checkpoint", &load_checkpoint, nb::arg("ckpt_file_name"),
      "The parameters of a .ckpt or .safetensors file by name; or of a folder with a file for each rank "
      "(rank_0.safetensors ..., as `muster checkpoint convert` writes them), whose pieces are joined. Of "
      "one file of pieces these are given; load_param_into_net joins them with those beside it. "
      "FileNotFoundError or CorruptDataError name the file; ValueError says which pieces do not fit.");
  core.def("_load_joined", &load_joined, nb::arg("files"));
  core.def("_join_checkpoints", &join_checkpoints, nb::arg("sources"), nb::arg("destinations"),
           "The names of the tensors that were written.");
  core.def("_held_layout", &held_layout_text, nb::arg("cells"));
  core.def("load_param_into_net", &load_param_into_net, nb::arg("net"), nb::arg("parameter_dict"),
           nb::arg("strict") = true,
           "Sets each parameter of `net` to the value of its name. ValueError names all that are missing, "
           "unexpected or of another dtype or shape, and nothing is set; state of an optimizer "
           "('moments.fc.weight' beside 'fc.weight') and single numbers ('global_step') may be there. Pieces "
           "that load_checkpoint read are set where the parameter is divided as the file says; else the "
           "wholes are, joined from the files of all workers that lie beside it. With "
           "strict=False what fits is set. Returns the names of parameters that got no value and of values "
           "that no parameter took.");
}

}  // namespace muster::python
