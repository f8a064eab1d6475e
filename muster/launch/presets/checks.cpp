#include "muster/launch/presets/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/launch/hosts/agents.h"
#include "muster/launch/settings/wrong.h"

namespace muster::launch {
namespace {

constexpr std::string_view platform_slots = "MA_NUM_GPUS";

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

Result<> check_style(const JobSettings& job, std::string_view styles) {
  const auto& style = job.style;
  const auto known = words_of(styles);
  if (style.value.empty() || std::find(known.begin(), known.end(), style.value) != known.end()) return {};
  if (known.empty())
    return wrong(fmt::format("{} {}: the preset {} has no styles: leave it out", style.origin, style.value,
                             job.preset.value));
  return wrong(fmt::format("{} {}: the preset {} has the styles {}", style.origin, style.value,
                           job.preset.value, fmt::join(known, " and ")));
}

Result<> check_restarts(const JobSettings& job, const PresetUses& uses) {
  if (job.max_restarts.value == 0) return {};
  const std::string& preset = job.preset.value;
  if (!job.restarts_group() && !uses.restarts)
    return wrong(fmt::format(
        "{} {}: with the preset {} a process that was started again could not join the others: {}",
        job.max_restarts.origin, job.max_restarts.value, preset,
        uses.group_restarts ? "--restart group starts all of them again" : "leave it out"));
  if (job.restarts_group() && !uses.group_restarts)
    return wrong(fmt::format("{} group: with the preset {} {}: leave it out", job.restart.origin, preset,
                             uses.restarts ? "the others wait for the process that is started again"
                                           : "nothing is started again"));
  if (job.restarts_group() && job.reach.value == Reach::each && job.hosts.value.size() > 1)
    return wrong(
        fmt::format("{} group: launchers of several hosts do not start each other's processes again: let one "
                    "launcher reach all of them, with --hosts and ssh",
                    job.restart.origin));
  return {};
}

}  // namespace

void add_recovery_variables(std::map<std::string, std::string>& variables, const PresetInput& input) {
  const JobSettings& job = input.job;
  if (job.max_restarts.value > 0) {
    variables.emplace("MS_ENABLE_RECOVERY", "1");
    variables.emplace("MUSTER_MAX_RESTARTS", std::to_string(job.max_restarts.value));
  }
  if (!job.recovery_folder.value.empty())
    variables.emplace("MS_RECOVERY_PATH", job.recovery_folder.value);
  else if (job.max_restarts.value > 0 && input.environment.get("MS_RECOVERY_PATH").value_or("").empty())
    variables.emplace("MS_RECOVERY_PATH", input.log_folder + "/recovery");
}

Result<> check_uses(const JobSettings& job, const PresetUses& uses) {
  const std::string& preset = job.preset.value;
  if (!uses.servers && job.servers.value > 0)
    return wrong(fmt::format("{} {}: the preset {} has no parameter servers: leave it out",
                             job.servers.origin, job.servers.value, preset));
  MUSTER_TRY_VOID(check_restarts(job, uses));
  for (const std::string_view variable : words_of(uses.sets))
    if (const auto given = job.environment.find(std::string(variable)); given != job.environment.end())
      return wrong(fmt::format("{} {}={}: the launcher gives each process another one: leave it out",
                               given->second.origin, variable, given->second.value));
  if (!uses.rank_table && !job.rank_table.value.empty())
    return wrong(fmt::format("{} {}: a rank table is for the preset ascend, and this is {}: leave it out",
                             job.rank_table.origin, job.rank_table.value, preset));
  return check_style(job, uses.styles);
}

Result<> check_exported(const JobSettings& job, const Environment& environment, const Expected& expected) {
  const auto given = job.environment.find(expected.variable);
  if (given != job.environment.end() && given->second.value != expected.value)
    return wrong(fmt::format("{} {}={} contradicts {}: the launcher sets it, leave it out",
                             given->second.origin, expected.variable, given->second.value, expected.what));
  const auto exported = environment.get(expected.variable);
  if (!exported || exported->empty() || *exported == expected.value) return {};
  return wrong(fmt::format("{}={} contradicts {}: unset it, or leave that out", expected.variable, *exported,
                           expected.what));
}

std::optional<std::string> inherited(const PresetInput& input, std::string_view name) {
  if (input.job.reach.value == Reach::ssh && !is_this_host(input.job.own_host().name)) return std::nullopt;
  return input.environment.get(name);
}

std::int64_t slots_asked_for(const JobSettings& job, std::size_t index) {
  if (job.slots && job.slots->origin == platform_slots) return 1;
  return job.hosts.value[index].slots;
}

std::string slots_origin(const JobSettings& job) {
  return job.slots ? fmt::format("{} {}", job.slots->origin, job.slots->value) : job.hosts.origin;
}

}  // namespace muster::launch
