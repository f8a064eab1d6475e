// Rows of tables on parameter servers that checkpoints have: a list of them, or files of the servers' own.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "muster/train/aborted_step.h"
#include "muster/train/job.h"
#include "muster/train/served_parameters.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

std::string unique_save() { return fmt::format("{:016x}", entropy()); }

}  // namespace

// ---- What is written down has all steps

// A pull that asks for no rows, and sees no step less than its own: it is of so many steps later.
Result<> ServedParameters::finish_steps() {
  const auto staleness = parameter_servers().staleness;
  if (!staleness || *staleness == 0) return {};
  return call_together("the end of steps on parameter servers", [&]() -> Result<> {
    MUSTER_TRY_VOID(follow_epoch(next_));
    return client_->pull(next_ + *staleness, {});
  });
}

// ---- A list

Result<> ServedParameters::list_rows_now(std::int64_t number, Listed what,
                                         server::ParameterClient::ListedRows& listed) {
  MUSTER_TRY_VOID(follow_epoch(next_));
  MUSTER_TRY_VOID(add_table(number));
  const Table& table = tables_.at(number);
  const bool with_states = what == Listed::with_states;
  if (!table.first_values.empty() && servers_may_not_have_begun()) {
    listed = {.ids = table.all_ids,
              .values = with_states
                            ? whole_rows(number, table.first_values)
                            : std::vector<float>(table.first_values.begin(), table.first_values.end())};
    return {};
  }
  MUSTER_TRY(listed, client_->list_rows(next_, table.number, with_states));
  return {};
}

Result<server::ParameterClient::ListedRows> ServedParameters::list_rows(std::int64_t number, Listed what) {
  server::ParameterClient::ListedRows listed;
  MUSTER_TRY_VOID(call_together("a list of the rows on parameter servers",
                                [&] { return list_rows_now(number, what, listed); }));
  return listed;
}

// ---- Checkpoints whose rows the servers write and read

// Rows that are not in the files begin as they did there.
Result<> ServedParameters::begin_with_saved(std::int64_t number, server::TableSpec& spec) const {
  const graph::ServedParameter& served = graph::served_parameter(number);
  const auto is_saved = [](const auto& state) { return !state->served_rows()->saved.empty(); };
  const bool has_states = !served.states.empty() && std::ranges::all_of(served.states, is_saved);
  const std::string& text = served.parameter->served_rows()->saved;
  if (text.empty() && std::ranges::none_of(served.states, is_saved)) return {};
  if (text.empty())
    return fail(
        Code::not_provided,
        fmt::format("what the optimizer keeps for the rows of table '{}' was loaded without them: load "
                    "the table, too",
                    spec.name));
  MUSTER_TRY(const auto tables, tables_in(text, fmt::format("table '{}'", spec.name)));
  const SavedTable& saved = tables.at(0);
  spec.name = saved.stream;
  spec.seed = saved.seed;
  spec.first_value = saved.first_value;
  spec.saved = {.place = text, .has_states = has_states, .steps = *origin_};
  return {};
}

SavedTable ServedParameters::saved_table(std::int64_t number) const {
  const graph::ServedParameter& served = graph::served_parameter(number);
  const server::TableSpec& spec = tables_.at(number).spec;
  SavedTable saved{.name = served.parameter->name(),
                   .servers = static_cast<std::uint32_t>(servers_.size()),
                   .step = next_,
                   .sharding = spec.sharding,
                   .rows = spec.rows,
                   .width = spec.width,
                   .stream = spec.name,
                   .seed = spec.seed,
                   .dtype = spec.dtype,
                   .first_value = spec.first_value};
  for (const graph::ParameterPtr& state : served.states)
    saved.states.push_back({.name = state->name(), .begins = state->materialize(seed()).data<float>()[0]});
  return saved;
}

bool ServedParameters::is_unknown_to_servers(std::int64_t number) const {
  const auto found = tables_.find(number);
  return found != tables_.end() && !found->second.first_values.empty() && servers_may_not_have_begun();
}

Result<ServedParameters::SavedTables> ServedParameters::save_rows_now(std::span<const std::int64_t> numbers,
                                                                      const std::string& folder,
                                                                      Communicator& all) {
  MUSTER_TRY_VOID(follow_epoch(next_));
  std::vector<std::uint32_t> tables;
  for (const std::int64_t number : numbers) {
    MUSTER_TRY_VOID(add_table(number));
    tables.push_back(tables_.at(number).number);
  }
  struct Told {
    std::uint64_t size = 0;
    bool is_trouble = false;
  };
  Told told;
  std::string text;
  if (all.rank() == 0) {
    std::vector<SavedTable> saved;
    for (const std::int64_t number : numbers) {
      saved.push_back(saved_table(number));
      saved.back().save = unique_save();
      saved.back().folder = fmt::format("{}/{}", folder, saved.front().save);
    }
    MUSTER_TRY(text, text_of(saved));
    const auto rows = client_->save_rows(next_, tables, text);
    if (!rows && rows.error().code != Code::io) return fail(rows.error());
    if (!rows) text = rows.error().message;
    told = {.size = text.size(), .is_trouble = !rows};
  }
  MUSTER_TRY_VOID(all.broadcast(&told, sizeof told, 0));
  text.resize(told.size);
  MUSTER_TRY_VOID(all.broadcast(text.data(), text.size(), 0));
  if (told.is_trouble) return SavedTables{.trouble = Error{Code::io, text}};
  MUSTER_TRY(std::vector<SavedTable> written, tables_in(text, "worker 0's word on saved rows"));
  return SavedTables{.tables = std::move(written)};
}

Result<ServedParameters::SavedTables> ServedParameters::save_rows(std::span<const std::int64_t> numbers,
                                                                  const std::string& folder) {
  SavedTables saved;
  const Collectives::GroupCall work = [&](Communicator& all) -> Result<> {
    auto done = save_rows_now(numbers, folder, all);
    if (done) {
      saved = *std::move(done);
      return {};
    }
    if (!failure_) failure_ = done.error();
    return fail(done.error());
  };
  MUSTER_TRY_VOID(call_in_body([&] {
    return session_.recovery().explicit_collective("a save of the rows on parameter servers", std::nullopt,
                                                   work);
  }));
  return saved;
}

}  // namespace muster::train
