// Checkpoints whose rows parameter servers write and read themselves.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "muster/graph/served.h"
#include "muster/train/parameter_servers.h"
#include "muster/train/process.h"
#include "muster/train/recoverable.h"
#include "muster/train/row_files.h"
#include "muster/train/served_parameters.h"

namespace muster::train {
namespace {

// Of the table that it is, or for which it is kept.
std::optional<std::int64_t> table_of(const graph::Parameter& parameter) {
  if (!parameter.served_rows()) return std::nullopt;
  if (const auto state = graph::served_state(parameter)) return state->number;
  return graph::served_number(parameter);
}

// Folders of other names are not ours.
bool is_a_save(const std::string& name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

bool has_rows_on_servers(const graph::Parameter& parameter) { return table_of(parameter).has_value(); }

Result<SavedRows> save_rows_beside(const std::string& ckpt, std::span<const graph::ParameterPtr> parameters) {
  std::set<std::int64_t> wanted;
  for (const graph::ParameterPtr& parameter : parameters)
    if (const auto number = table_of(*parameter)) wanted.insert(*number);
  SavedRows made;
  if (wanted.empty()) return made;
  ServedParameters& served = *process().served_parameters;
  for (const std::int64_t number : wanted)
    MUSTER_TRY_VOID(finish_steps(graph::served_parameter(number).parameter));
  std::vector<std::int64_t> numbers;
  for (const std::int64_t number : wanted)
    if (!served.is_unknown_to_servers(number)) numbers.push_back(number);
  std::map<std::int64_t, SavedTable> saved;
  if (!numbers.empty()) {
    MUSTER_TRY(auto done, served.save_rows(numbers, rows_folder_of(ckpt)));
    if (done.trouble) return SavedRows{.trouble = done.trouble};
    if (body_is_void()) return made;
    for (std::size_t i = 0; i < numbers.size(); ++i) saved.emplace(numbers[i], std::move(done.tables[i]));
  }
  for (const graph::ParameterPtr& parameter : parameters) {
    const auto number = table_of(*parameter);
    if (!number) continue;
    if (const auto found = saved.find(*number); found != saved.end()) {
      MUSTER_TRY(checkpoint::Entry entry, saved_table_entry(parameter->name(), found->second));
      made.entries.push_back(std::move(entry));
      continue;
    }
    MUSTER_TRY(const auto whole, entries_on_servers(parameter, parameter->name()));
    made.entries.insert(made.entries.end(), whole.begin(), whole.end());
  }
  return made;
}

Result<> set_saved_rows(graph::Parameter& parameter, const Tensor& entry) {
  const auto& rows = parameter.served_rows();
  const std::string_view said(reinterpret_cast<const char*>(entry.bytes()), entry.size_bytes());
  if (rows && rows->saved == said) return {};  // also once the servers have it
  MUSTER_TRY_VOID(check_settable(parameter));
  MUSTER_TRY(const SavedTable table, saved_table_of(entry, fmt::format("'{}'", parameter.name())));
  const auto width = static_cast<std::int64_t>(table.width);
  if (rows && rows->shape[1] != width)
    return fail(Code::invalid_argument, fmt::format("table '{}' has rows of {} numbers, the checkpoint of {}",
                                                    parameter.name(), rows->shape[1], width));
  const bool begins_alike = rows && rows->shape[0] == static_cast<std::int64_t>(table.rows);
  if (begins_alike) {
    MUSTER_TRY(std::string text, text_of(std::span(&table, 1)));
    parameter.set_saved_rows(std::move(text));
    return {};
  }
  // Here, or in a table of another kind, where rows that are not in the files begin otherwise.
  MUSTER_TRY(const auto whole, whole_rows_of(table, parameter.name()));
  if (whole.size() == 2 && rows && rows->takes_any_id())
    return parameter.set_rows(whole[1].value, whole[0].value);
  if (rows && rows->takes_any_id()) return parameter.set_rows(row_numbers(whole[0].value), whole[0].value);
  return parameter.set(whole[0].value);
}

void remove_other_rows(const std::string& ckpt, std::span<const checkpoint::Entry> entries) {
  namespace fs = std::filesystem;
  std::set<std::string> named;
  for (const checkpoint::Entry& entry : entries)
    if (is_saved_table(entry))
      if (const auto table = saved_table_of(entry.value, ckpt)) named.insert(table->save);
  std::error_code ignored;
  std::vector<fs::path> others;
  for (const auto& each : fs::directory_iterator(rows_folder_of(ckpt), ignored))
    if (const std::string name = each.path().filename().string(); is_a_save(name) && !named.contains(name))
      others.push_back(each.path());
  for (const fs::path& other : others) fs::remove_all(other, ignored);
  if (named.empty()) fs::remove(rows_folder_of(ckpt), ignored);
}

void remove_rows(const std::string& ckpt) { remove_other_rows(ckpt, {}); }

}  // namespace muster::train
