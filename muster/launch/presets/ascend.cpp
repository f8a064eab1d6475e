#include "muster/launch/presets/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "muster/launch/presets/checks.h"
#include "muster/launch/rank_table.h"
#include "muster/launch/settings/sources.h"
#include "muster/launch/settings/wrong.h"

namespace muster::launch {
namespace {

constexpr const char* visible_variable = "ASCEND_RT_VISIBLE_DEVICES";

Result<> check(const JobSettings& job, const Environment& environment) {
  MUSTER_TRY_VOID(check_uses(job, {.group_restarts = true, .rank_table = true}));
  if (job.rank_table.value.empty()) {
    if (job.hosts.value.size() > 1)
      return wrong(
          "several servers need a rank table: make one on each with `muster ranktable make`, put them "
          "together with `muster ranktable merge`, and name it with --rank-table");
    return {};
  }
  return check_exported(job, environment,
                        {"RANK_TABLE_FILE", job.rank_table.value,
                         fmt::format("{} {}", job.rank_table.origin, job.rank_table.value)});
}

// The cards that the runtime shows to processes here, by their numbers in the server; nothing: all of them.
Result<std::optional<std::vector<std::int64_t>>> visible_cards(const PresetInput& input) {
  using Cards = std::optional<std::vector<std::int64_t>>;
  const auto list = inherited(input, visible_variable);
  if (!list || list->empty()) return Cards{};
  auto ids = parse_device_ids(*list);
  if (!ids) return wrong(fmt::format("{}={}: {}", visible_variable, *list, ids.error().message));
  return Cards{*std::move(ids)};
}

// The table of a job on this server alone that brings none.
Result<RankTable> own_table(const PresetInput& input) {
  MUSTER_TRY(const auto visible, visible_cards(input));
  const auto count = static_cast<std::size_t>(input.job.own_host().slots);
  if (visible && visible->size() < count)
    return wrong(
        fmt::format("{}: {} shows {} cards", slots_origin(input.job), visible_variable, visible->size()));
  const std::string& name = input.job.own_host().name;
  ServerCards cards{.server_id = name.empty() ? "127.0.0.1" : name};
  for (std::size_t i = 0; i < count; ++i)
    cards.device_ids.push_back(visible ? (*visible)[i] : static_cast<std::int64_t>(i));
  return make_rank_table(std::span(&cards, 1));
}

// DEVICE_ID is what a script hands to its framework: the card's number among those that it can see.
Result<std::int64_t> device_number(const PresetInput& input, std::int64_t device_id) {
  MUSTER_TRY(const auto visible, visible_cards(input));
  if (!visible) return device_id;
  const auto found = std::find(visible->begin(), visible->end(), device_id);
  if (found == visible->end())
    return wrong(fmt::format("{}: card {} is not among those that {}={} shows", input.job.rank_table.value,
                             device_id, visible_variable, *inherited(input, visible_variable)));
  return found - visible->begin();
}

struct Place {
  RankTable::Device device = {};
  std::size_t local = 0;  // its place among the cards of this server
  std::int64_t rank_size = 0;
  std::string table_file = {};
};

Result<ProcessSpec> process_of(const PresetInput& input, const Place& place) {
  MUSTER_TRY(const std::int64_t device, device_number(input, place.device.device_id));
  std::map<std::string, std::string> variables = {
      {"RANK_TABLE_FILE", place.table_file},          {"ASCEND_DEVICE_ID", std::to_string(place.local)},
      {"DEVICE_ID", std::to_string(device)},          {"RANK_ID", std::to_string(place.device.rank_id)},
      {"RANK_SIZE", std::to_string(place.rank_size)},
  };
  add_python_variables(variables, input);
  add_own_variables(variables, input.job);
  const std::string label = fmt::format("worker {}", place.device.rank_id);
  return ProcessSpec{.role = "worker",
                     .label = label,
                     .arguments = input.job.argv(),
                     .environment = std::move(variables),
                     .log_name = log_name_of(label)};
}

Result<LaunchSpec> spec(const PresetInput& input) {
  const JobSettings& job = input.job;
  const std::string& name = job.rank_table.value;
  const bool is_given = !name.empty();
  MUSTER_TRY(const RankTable table, is_given ? parse_rank_table(input.rank_table, name) : own_table(input));
  if (table.servers.size() != job.hosts.value.size())
    return wrong(fmt::format("{} has {} servers, and the job {} hosts", name, table.servers.size(),
                             job.hosts.value.size()));
  MUSTER_TRY(const auto servers, servers_of(job.hosts.value, table, name));
  const auto devices = table.ranked(servers[static_cast<std::size_t>(job.self.value)]);
  // Another host that this launcher starts agents on need not have the file.
  const bool is_file_here = is_given && job.reach.value != Reach::ssh;
  LaunchSpec spec;
  Place place{.rank_size = table.device_count(),
              .table_file = is_file_here ? name : input.run_folder + "/rank_table.json"};
  if (!is_file_here)
    spec.files.push_back(
        {.path = place.table_file, .contents = is_given ? input.rank_table : rank_table_text(table)});
  for (const auto& device : devices) {
    place.device = device;
    MUSTER_TRY(spec.processes.emplace_back(), process_of(input, place));
    ++place.local;
  }
  return spec;
}

}  // namespace

const Preset ascend_preset = {
    .name = "ascend",
    .summary = "one process on each card, by RANK_TABLE_FILE, RANK_ID and DEVICE_ID",
    .check = check,
    .ports_wanted = no_ports,
    .needs_rendezvous = never_meets,
    .spec = spec,
};

}  // namespace muster::launch
