#include "muster/train/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "muster/checkpoint/conversion.h"
#include "muster/train/divided_parameters.h"
#include "muster/train/file_pieces.h"
#include "muster/train/job.h"
#include "muster/train/parameter_servers.h"
#include "muster/train/recoverable.h"
#include "muster/train/row_files.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"

namespace muster::train {

Result<std::vector<checkpoint::Entry>> load_checkpoint(const std::string& path) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  std::vector<std::string> files{path};
  if (is_folder) {
    MUSTER_TRY(files, checkpoint::files_of_checkpoint(path));
  }
  MUSTER_TRY(std::vector<checkpoint::Entry> entries,
             is_folder ? checkpoint::load_joined(files) : checkpoint::load(path));
  MUSTER_TRY(entries, with_rows_beside(std::move(entries), files[0]));
  if (parameter_servers().enabled) return entries;
  std::vector<checkpoint::Entry> whole;
  for (checkpoint::Entry& entry : entries) {
    if (!is_saved_table(entry)) {
      whole.push_back(std::move(entry));
      continue;
    }
    MUSTER_TRY(const SavedTable table, saved_table_of(entry.value, fmt::format("'{}'", path)));
    MUSTER_TRY(const auto rows, whole_rows_of(table, checkpoint::parameter_of_rows(entry.name)));
    whole.insert(whole.end(), rows.begin(), rows.end());
  }
  return whole;
}

Result<std::vector<checkpoint::Entry>> gather_parameters(std::span<const graph::ParameterPtr> parameters) {
  std::vector<checkpoint::Entry> entries;
  for (const graph::ParameterPtr& parameter : parameters) {
    if (is_on_servers(*parameter)) {
      MUSTER_TRY(const auto rows, entries_on_servers(parameter, parameter->name()));
      entries.insert(entries.end(), rows.begin(), rows.end());
      continue;
    }
    if (parameter->share()) {
      MUSTER_TRY(Tensor whole, gathered(*parameter));
      entries.push_back({parameter->name(), std::move(whole)});
      continue;
    }
    const bool is_here = parameter->absence() == nullptr;
    if (!is_here && (stages() == nullptr || !parameter->home()))
      return fail(Code::invalid_argument, *parameter->absence());
    entries.push_back({parameter->name(), is_here ? parameter->materialize(seed())
                                                  : Tensor(parameter->dtype(), parameter->shape())});
    if (stages() == nullptr || !parameter->home()) continue;  // every worker has it
    const Tensor& value = entries.back().value;
    // The first replica's; the others' are equal.
    MUSTER_TRY_VOID(
        Session::current()->recovery().explicit_collective("gather_parameters", {}, [&](Communicator& all) {
          return all.broadcast(value.bytes(), value.size_bytes(), parameter->home()->rank);
        }));
  }
  return entries;
}

Result<Tensor> read_parameter(const graph::ParameterPtr& parameter) {
  if (const std::string* reason = parameter->absence()) return fail(Code::invalid_argument, *reason);
  if (const std::string divided = parameter->division_text(); !divided.empty())
    return fail(Code::invalid_argument, divided);
  return parameter->materialize(seed()).clone();
}

Result<> copy_parameters(std::span<const graph::ParameterPtr> from, std::span<const graph::ParameterPtr> to) {
  if (from.size() != to.size())
    return fail(Code::invalid_argument,
                fmt::format("copy_parameters: {} parameters are no copy of {}", to.size(), from.size()));
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i]->type() != to[i]->type())
      return fail(Code::invalid_argument, fmt::format("copy_parameters: '{}' is {}, '{}' {}", from[i]->name(),
                                                      graph::to_string(from[i]->type()), to[i]->name(),
                                                      graph::to_string(to[i]->type())));
  std::vector<Tensor> values;
  for (const graph::ParameterPtr& parameter : from) {
    MUSTER_TRY(Tensor value, read_parameter(parameter));
    values.push_back(std::move(value));
  }
  for (std::size_t i = 0; i < to.size(); ++i) MUSTER_TRY_VOID(to[i]->set(values[i]));
  return {};
}

Result<> save_parameters(std::span<const graph::ParameterPtr> parameters, const std::string& path,
                         Files& files) {
  MUSTER_TRY(const std::vector<checkpoint::Entry> entries, gather_parameters(parameters));
  if (body_is_void()) return {};
  return checkpoint::save(path, entries, files);
}

namespace {

constexpr std::size_t names_shown_max = 8;

// What differs between the parameters of a network and the entries of a file.
struct Differences {
  std::vector<std::string> missing = {};     // in the file
  std::vector<std::string> unexpected = {};  // in the network
  std::vector<std::string> other_type = {};  // "'fc.bias' is float32 (4,), the checkpoint holds float32 (2,)"
  bool in_dtype_alone = false;               // one of these has the parameter's shape
};

std::string listed(std::string_view what, const std::vector<std::string>& items) {
  if (items.empty()) return {};
  const std::size_t shown = std::min(items.size(), names_shown_max);
  std::string text = fmt::format("; {}: {}", what, fmt::join(items.begin(), items.begin() + shown, ", "));
  if (shown < items.size()) text += fmt::format(", and {} more", items.size() - shown);
  return text;
}

Result<> check(const Differences& found) {
  const std::string text = listed("missing in the checkpoint", found.missing) +
                           listed("unexpected in the checkpoint", found.unexpected) +
                           listed("of another type", found.other_type);
  if (text.empty()) return {};
  return fail(
      Code::invalid_argument,
      fmt::format("the checkpoint does not fit the network{}. strict=False loads what fits{}", text,
                  found.in_dtype_alone ? ", and leaves out what differs in dtype: cast that before" : ""));
}

// Of the optimizer that the file was saved with: "moments.NAME" beside NAME, or a number.
bool is_optimizer_state(const checkpoint::Entry& entry, const std::set<std::string_view>& parameters) {
  const std::size_t dot = entry.name.find('.');
  if (dot == std::string::npos) return entry.value.shape().elements() == 1;
  std::string_view of = std::string_view(entry.name).substr(dot + 1);
  for (const std::string_view suffix : {ids_suffix, rows_suffix})
    if (of.ends_with(suffix)) of.remove_suffix(suffix.size());
  return parameters.contains(of);
}

// Of a table that takes any number: also those of one with a vocabulary.
bool are_rows_for(const graph::Parameter& table, const Tensor& value) {
  return table.served_rows() && table.served_rows()->takes_any_id() && value.dtype() == table.dtype() &&
         value.shape().rank() == 2 && value.shape()[1] == table.served_rows()->shape[1];
}

}  // namespace

namespace {

// Wholes of the pieces that lie in files, each of which is read once.
class JoinedPieces {
 public:
  Result<const Tensor*> whole(const FilePiece& piece, const std::string& name) {
    auto [found, is_new] = wholes_.try_emplace(piece.path);
    if (is_new) {
      MUSTER_TRY(const std::vector<std::string> files, files_beside(piece));
      MUSTER_TRY(std::vector<checkpoint::Entry> entries, checkpoint::load_joined(files));
      for (checkpoint::Entry& entry : entries) found->second.emplace(entry.name, std::move(entry.value));
    }
    return &found->second.at(name);
  }

 private:
  std::map<std::string, std::map<std::string, Tensor>> wholes_;
};

}  // namespace

Result<Unmatched> load_parameters(std::span<const graph::ParameterPtr> parameters,
                                  std::span<const checkpoint::Entry> entries, LoadOptions options) {
  std::map<std::string_view, const Tensor*> values;
  for (const checkpoint::Entry& entry : entries) values[entry.name] = &entry.value;
  Differences differences;
  Unmatched unmatched;
  std::set<std::string_view> names, used;
  JoinedPieces joined;
  struct Found {
    graph::ParameterPtr parameter;
    const Tensor* value = nullptr;
    Tensor ids = {};                   // of a table that takes any number
    bool is_saved = false;             // the value says where its rows are
    const FilePiece* piece = nullptr;  // the value is that of this file
  };
  std::vector<Found> found;
  for (const graph::ParameterPtr& parameter : parameters) {
    const std::string& name = parameter->name();
    names.insert(name);
    if (const auto saved = values.find(name + std::string(rows_suffix)); saved != values.end()) {
      used.insert(saved->first);
      found.push_back({.parameter = parameter, .value = saved->second, .is_saved = true});
      continue;
    }
    const auto at = values.find(name);
    if (at == values.end()) {
      unmatched.parameters.push_back(name);
      differences.missing.push_back(fmt::format("'{}'", name));
      continue;
    }
    if (are_rows_for(*parameter, *at->second)) {
      MUSTER_TRY_VOID(check_settable(*parameter));
      const auto ids = values.find(name + std::string(ids_suffix));
      used.insert(name);
      if (ids != values.end()) used.insert(ids->first);
      found.push_back({parameter, at->second, ids != values.end() ? *ids->second : row_numbers(*at->second)});
      continue;
    }
    const graph::TensorType type{at->second->dtype(), at->second->shape()};
    const graph::TensorType wanted{
        parameter->dtype(), parameter->served_rows() ? parameter->served_rows()->shape : parameter->shape()};
    if (const auto piece = options.pieces.find(name); type != wanted && piece != options.pieces.end()) {
      MUSTER_TRY_VOID(check_settable(*parameter));
      used.insert(name);
      const bool is_held = is_held_so(*parameter, piece->second->layout, name);
      const Tensor* value = at->second;
      const FilePiece* source = is_held ? piece->second.get() : nullptr;
      if (!is_held) {
        MUSTER_TRY(value, joined.whole(*piece->second, name));
      }
      if (is_held || graph::TensorType{value->dtype(), value->shape()} == wanted) {
        found.push_back({.parameter = parameter, .value = value, .piece = source});
        continue;
      }
    }
    if (type != wanted) {
      unmatched.parameters.push_back(name);
      differences.other_type.push_back(
          fmt::format("'{}' is {}, the checkpoint holds {}", name, to_string(wanted), to_string(type)));
      differences.in_dtype_alone |= type.shape == wanted.shape;
      continue;
    }
    MUSTER_TRY_VOID(check_settable(*parameter));
    used.insert(name);
    found.push_back({parameter, at->second});
  }
  for (const checkpoint::Entry& entry : entries) {
    if (used.contains(entry.name)) continue;
    unmatched.entries.push_back(entry.name);
    if (!names.contains(entry.name) && !is_optimizer_state(entry, names))
      differences.unexpected.push_back(fmt::format("'{}'", entry.name));
  }
  if (options.strict) MUSTER_TRY_VOID(check(differences));
  for (const auto& [parameter, value, ids, is_saved, piece] : found) {
    if (is_saved)
      MUSTER_TRY_VOID(set_saved_rows(*parameter, *value));
    else
      MUSTER_TRY_VOID(ids.defined() ? parameter->set_rows(ids, *value) : parameter->set(*value));
    if (piece != nullptr)
      parameter->set_piece_source(
          {{.save = save_text(piece->layout, parameter->name()), .file = piece->path}});
  }
  return unmatched;
}

}  // namespace muster::train
