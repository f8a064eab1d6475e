#include "muster/launch/presets/families.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/launch/presets/checks.h"

namespace muster::launch {
namespace {

constexpr std::uint16_t default_port = 29500;  // torch's own, where every host has to know it beforehand

std::size_t host_count(const JobSettings& job) { return job.hosts.value.size(); }

bool has_slots(const JobSettings& job) {
  for (std::size_t i = 0; i < host_count(job); ++i)
    if (slots_asked_for(job, i) > 1) return true;
  return false;
}

// Who asks for processes of one host means the style that can have several of them, also where it is one.
bool is_by_variables(const JobSettings& job) {
  const bool counts = host_count(job) == 1 && job.slots && job.slots->origin == "-n";
  return job.style.value.empty() ? has_slots(job) || counts : job.style.value == "env";
}

Result<> check_variables(const JobSettings& job, const Environment& environment) {
  const std::string size = std::to_string(job.slot_count());
  MUSTER_TRY_VOID(check_exported(job, environment,
                                 {"WORLD_SIZE", size, fmt::format("a job of {} workers", job.slot_count())}));
  if (!job.scheduler) return {};
  const auto address = *net::parse_host_port(job.scheduler->value);
  const std::string said = fmt::format("{} {}", job.scheduler->origin, job.scheduler->value);
  MUSTER_TRY_VOID(check_exported(job, environment, {"MASTER_ADDR", address.host, said}));
  return check_exported(job, environment, {"MASTER_PORT", std::to_string(address.port), said});
}

Result<> check(const JobSettings& job, const Environment& environment) {
  MUSTER_TRY_VOID(check_uses(job, {.restarts = true,
                                   .group_restarts = true,
                                   .styles = "init_method env",
                                   .sets = "RANK LOCAL_RANK GROUP_RANK"}));
  MUSTER_TRY_VOID(check_first_address(job));
  if (is_by_variables(job)) return check_variables(job, environment);
  if (job.max_restarts.value > 0 && !job.restarts_group())
    return fail(Code::invalid_argument,
                fmt::format("{} {}: the style init_method runs one process on each host, which starts others "
                            "itself: take --style env, or --restart group",
                            job.max_restarts.origin, job.max_restarts.value));
  if (has_slots(job))
    return fail(Code::invalid_argument,
                fmt::format("{}: the style init_method runs one process on each host: leave it out, or take "
                            "--style env",
                            slots_origin(job)));
  return {};
}

using Variables = std::map<std::string, std::string>;

ProcessSpec process_of(const PresetInput& input, std::int64_t rank, Variables variables) {
  add_python_variables(variables, input);
  add_own_variables(variables, input.job);
  const std::string label = fmt::format("worker {}", rank);
  return {.role = "worker",
          .label = label,
          .arguments = input.job.argv(),
          .environment = std::move(variables),
          .log_name = log_name_of(label)};
}

LaunchSpec by_arguments(const PresetInput& input) {
  const JobSettings& job = input.job;
  const net::HostPort master = first_address(input, default_port);
  const bool is_v6 = master.host.find(':') != std::string::npos;
  ProcessSpec process = process_of(input, job.self.value, {});
  const auto add = [&](const char* name, std::string value) {
    process.arguments.push_back(name);
    process.arguments.push_back(std::move(value));
  };
  add("--init_method",
      fmt::format("tcp://{}:{}", is_v6 ? fmt::format("[{}]", master.host) : master.host, master.port));
  if (host_count(job) > 1) {
    add("--rank", std::to_string(job.self.value));
    add("--world_size", std::to_string(host_count(job)));
  }
  return {.processes = {std::move(process)}};
}

LaunchSpec by_variables(const PresetInput& input) {
  const JobSettings& job = input.job;
  const net::HostPort master = first_address(input, default_port);
  const std::int64_t local_size = job.own_host().slots;
  Variables common = {
      {"MASTER_ADDR", master.host},
      {"MASTER_PORT", std::to_string(master.port)},
      {"WORLD_SIZE", std::to_string(job.slot_count())},
      {"LOCAL_WORLD_SIZE", std::to_string(local_size)},
      {"GROUP_RANK", std::to_string(job.self.value)},
  };
  if (job.max_restarts.value > 0 && !job.restarts_group()) {
    add_recovery_variables(common, input);
    // Of this start: who comes back behind the end of the training tells by it whose end it finds.
    common.emplace("MUSTER_RUN_ID", input.run_folder.substr(input.run_folder.rfind('/') + 1));
  }
  // Each process would take all cores; torchrun decides the same.
  if (local_size > 1 && !inherited(input, "OMP_NUM_THREADS")) common.emplace("OMP_NUM_THREADS", "1");
  LaunchSpec spec;
  for (std::int64_t i = 0; i < local_size; ++i) {
    const std::int64_t rank = job.first_slot() + i;
    Variables variables = common;
    variables.emplace("RANK", std::to_string(rank));
    variables.emplace("LOCAL_RANK", std::to_string(i));
    spec.processes.push_back(process_of(input, rank, std::move(variables)));
  }
  return spec;
}

Result<LaunchSpec> spec(const PresetInput& input) {
  return is_by_variables(input.job) ? by_variables(input) : by_arguments(input);
}

}  // namespace

const Preset pytorch_preset = {
    .name = "pytorch",
    .summary =
        "one process on each host by --init_method, or with -n one on each slot by MASTER_ADDR, RANK ...",
    .check = check,
    .ports_wanted = port_of_first,
    .needs_rendezvous = never_meets,
    .spec = spec,
};

}  // namespace muster::launch
