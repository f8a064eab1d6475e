#include "muster/launch/presets/families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "muster/launch/presets/checks.h"
#include "muster/launch/settings/wrong.h"

namespace muster::launch {
namespace {

// Where the platform that this follows has its servers listen.
constexpr std::uint16_t port_min = 5000;
constexpr std::uint16_t port_max = 10000;

// Who takes part and where each listens: "host:port", by task index.
struct Tasks {
  std::vector<std::string> chief = {};
  std::vector<std::string> ps = {};
  std::vector<std::string> workers = {};
};

// ---- A container of a platform that names all tasks
// ----------------------------------------------------------

// "[a:1,b:2]" or "a:1,b:2" as its parts.
std::vector<std::string> addresses_of(std::string_view list) {
  if (list.starts_with('[') && list.ends_with(']') && list.find("]:") == std::string_view::npos)
    list = list.substr(1, list.size() - 2);
  std::vector<std::string> addresses;
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    addresses.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return addresses;
}

std::string variable(const Environment& environment, const char* name) {
  return environment.get(name).value_or("");
}

bool is_task_of_platform(const Environment& environment) {
  return !variable(environment, "TF_PS_HOSTS").empty() || !variable(environment, "TF_WORKER_HOSTS").empty();
}

struct PlatformTask {
  Tasks tasks;
  std::string job_name;  // "ps", "worker"
  std::int64_t index = 0;
};

Result<std::int64_t> task_index(const Environment& environment, std::size_t count) {
  for (const char* name : {"VC_TASK_INDEX", "MA_TASK_INDEX", "VK_TASK_INDEX"}) {
    const std::string text = variable(environment, name);
    if (text.empty()) continue;
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
    if (error != std::errc() || end != text.data() + text.size() || index < 0 ||
        index >= static_cast<std::int64_t>(count))
      return wrong(
          fmt::format("{}={}: {} tasks have the numbers from 0 to {}", name, text, count, count - 1));
    return index;
  }
  return wrong("TF_PS_HOSTS and TF_WORKER_HOSTS are set, but not which of them this is: set VC_TASK_INDEX");
}

Result<PlatformTask> platform_task(const Environment& environment) {
  PlatformTask task;
  for (const auto& [name, addresses] :
       {std::pair("TF_PS_HOSTS", &task.tasks.ps), std::pair("TF_WORKER_HOSTS", &task.tasks.workers)}) {
    *addresses = addresses_of(variable(environment, name));
    if (addresses->empty()) return wrong(fmt::format("{} is not set, and its sister is: set both", name));
    for (const std::string& address : *addresses)
      if (!net::parse_host_port(address))
        return wrong(fmt::format("{}: '{}' is not host:port", name, address));
  }
  task.job_name = variable(environment, "MA_TASK_NAME");
  if (task.job_name != "ps" && task.job_name != "worker")
    return wrong(fmt::format("MA_TASK_NAME={}: with TF_PS_HOSTS and TF_WORKER_HOSTS it is ps or worker",
                             task.job_name));
  MUSTER_TRY(task.index, task_index(environment, task.job_name == "ps" ? task.tasks.ps.size()
                                                                       : task.tasks.workers.size()));
  return task;
}

// ---- A cluster of our own
// ------------------------------------------------------------------------------------

std::size_t host_count(const JobSettings& job) { return job.hosts.value.size(); }
bool has_chief(const JobSettings& job) { return job.style.value == "chief"; }

bool is_alone(const JobSettings& job) {
  return host_count(job) == 1 && slots_asked_for(job, 0) == 1 && job.servers.value == 0 && !has_chief(job);
}

// The tasks of host `index`. Servers that were counted are dealt out host by host; else each host has one.
struct TaskCounts {
  std::int64_t chief = 0, ps = 0, workers = 0;
  std::int64_t all() const { return chief + ps + workers; }
};

TaskCounts tasks_of(const JobSettings& job, std::size_t index) {
  const auto hosts = static_cast<std::int64_t>(host_count(job));
  const auto place = static_cast<std::int64_t>(index);
  const std::int64_t dealt = job.servers.value / hosts + (place < job.servers.value % hosts ? 1 : 0);
  return {.chief = has_chief(job) && index == 0 ? 1 : 0,
          .ps = job.servers.value == 0 ? 1 : dealt,
          .workers = slots_asked_for(job, index)};
}

PortsWanted ports_wanted(const JobSettings& job, const Environment& environment) {
  if (is_task_of_platform(environment) || is_alone(job)) return {};
  PortsWanted wanted{.min = port_min, .max = port_max};
  for (std::size_t i = 0; i < host_count(job); ++i)
    wanted.count = std::max(wanted.count, tasks_of(job, i).all());
  return wanted;
}

bool needs_rendezvous(const JobSettings& job, const Environment& environment) {
  return job.reach.value == Reach::each && ports_wanted(job, environment).count > 0;
}

Result<> check_platform(const JobSettings& job, const Environment& environment) {
  MUSTER_TRY_VOID(platform_task(environment));
  if (job.servers.value > 0 || has_chief(job))
    return wrong(fmt::format("TF_PS_HOSTS and TF_WORKER_HOSTS name all tasks: leave out {}",
                             has_chief(job) ? job.style.origin : job.servers.origin));
  if (job.slots && slots_asked_for(job, 0) != 1)
    return wrong(
        fmt::format("TF_PS_HOSTS and TF_WORKER_HOSTS name all tasks: leave out {}", slots_origin(job)));
  return {};
}

Result<> check(const JobSettings& job, const Environment& environment) {
  MUSTER_TRY_VOID(check_uses(job, {.servers = true, .group_restarts = true, .styles = "arguments chief"}));
  if (is_task_of_platform(environment)) return check_platform(job, environment);
  if (job.port)
    return wrong(
        fmt::format("{} {}: each task of tensorflow has a port of its own, a free one from {} to {}: "
                    "leave it out",
                    job.port->origin, job.port->value, port_min, port_max));
  if (variable(environment, "MA_TASK_NAME") == "ps")
    return wrong(
        "MA_TASK_NAME=ps, but nothing says where the tasks are: set TF_PS_HOSTS and TF_WORKER_HOSTS");
  return check_first_address(job);
}

std::string host_name(const PresetInput& input, std::size_t index) {
  if (host_count(input.job) == 1) return "127.0.0.1";
  if (const auto name = address_of_host(input.job.hosts.value[index].name); !name.empty())
    return std::string(name);
  return index < input.addresses.size() ? input.addresses[index] : std::string();
}

// "a:5001" of the port `place` of host `index`. What is not known before the hosts have met is a '?'.
std::string address_of(const PresetInput& input, std::size_t index, std::int64_t place) {
  const std::string host = host_name(input, index);
  const auto number = static_cast<std::size_t>(place);
  const bool is_known = input.ports.size() == host_count(input.job) && number < input.ports[index].size();
  const std::string port = is_known ? std::to_string(input.ports[index][number]) : "?";
  if (host.find(':') != std::string::npos) return fmt::format("[{}]:{}", host, port);
  return fmt::format("{}:{}", host.empty() ? "?" : host, port);
}

Tasks all_tasks(const PresetInput& input) {
  Tasks tasks;
  for (std::size_t i = 0; i < host_count(input.job); ++i) {
    const TaskCounts counts = tasks_of(input.job, i);
    std::int64_t place = 0;
    const auto add = [&](std::vector<std::string>& list, std::int64_t count) {
      for (std::int64_t k = 0; k < count; ++k) list.push_back(address_of(input, i, place++));
    };
    add(tasks.ps, counts.ps);
    add(tasks.workers, counts.workers);
    add(tasks.chief, counts.chief);
  }
  return tasks;
}

// ---- Processes
// -----------------------------------------------------------------------------------------------

struct Task {
  std::string job_name;
  std::int64_t index = 0;
  ProcessSpec::Kind kind = ProcessSpec::Kind::work;
};

std::string tf_config(const Tasks& tasks, const Task& task) {
  nlohmann::ordered_json cluster;
  if (!tasks.chief.empty()) cluster["chief"] = tasks.chief;
  if (!tasks.ps.empty()) cluster["ps"] = tasks.ps;
  cluster["worker"] = tasks.workers;
  const nlohmann::ordered_json config = {{"cluster", std::move(cluster)},
                                         {"task", {{"type", task.job_name}, {"index", task.index}}}};
  return config.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

ProcessSpec process_of(const PresetInput& input, std::string role, std::string label) {
  ProcessSpec process{.role = std::move(role), .label = std::move(label), .arguments = input.job.argv()};
  process.log_name = log_name_of(process.label);
  add_python_variables(process.environment, input);
  return process;
}

ProcessSpec process_of(const PresetInput& input, const Tasks& tasks, const Task& task) {
  const std::string label =
      task.job_name == "chief" ? task.job_name : fmt::format("{} {}", task.job_name, task.index);
  ProcessSpec process = process_of(input, task.job_name, label);
  process.kind = task.kind;
  process.environment.emplace("TF_CONFIG", tf_config(tasks, task));
  add_own_variables(process.environment, input.job);
  if (has_chief(input.job)) return process;  // such scripts read TF_CONFIG alone
  const std::pair<const char*, std::string> arguments[] = {
      {"--task_index", std::to_string(task.index)},
      {"--ps_hosts", fmt::format("{}", fmt::join(tasks.ps, ","))},
      {"--worker_hosts", fmt::format("{}", fmt::join(tasks.workers, ","))},
      {"--job_name", task.job_name},
  };
  for (const auto& [name, value] : arguments) {
    process.arguments.push_back(name);
    process.arguments.push_back(value);
  }
  return process;
}

LaunchSpec cluster_spec(const PresetInput& input) {
  const JobSettings& job = input.job;
  const Tasks tasks = all_tasks(input);
  TaskCounts before;  // on the hosts before this one
  const auto self = static_cast<std::size_t>(job.self.value);
  for (std::size_t i = 0; i < self; ++i) {
    before.ps += tasks_of(job, i).ps;
    before.workers += tasks_of(job, i).workers;
  }
  const TaskCounts own = tasks_of(job, self);
  LaunchSpec spec;
  const auto add = [&](const char* name, std::int64_t first, std::int64_t count, ProcessSpec::Kind kind) {
    for (std::int64_t i = 0; i < count; ++i)
      spec.processes.push_back(
          process_of(input, tasks, {.job_name = name, .index = first + i, .kind = kind}));
  };
  using Kind = ProcessSpec::Kind;
  // Parameter servers serve for ever, and so do the workers of a chief.
  add("ps", before.ps, own.ps, Kind::service);
  add("worker", before.workers, own.workers, has_chief(job) ? Kind::service : Kind::work);
  add("chief", 0, own.chief, Kind::work);
  spec.waits_for_release = has_chief(job) && self != 0;
  return spec;
}

Result<LaunchSpec> spec(const PresetInput& input) {
  LaunchSpec result;
  if (is_task_of_platform(input.environment)) {
    MUSTER_TRY(const PlatformTask task, platform_task(input.environment));
    result.processes.push_back(
        process_of(input, task.tasks, {.job_name = task.job_name, .index = task.index}));
    return result;
  }
  if (!is_alone(input.job)) return cluster_spec(input);
  result.processes.push_back(process_of(input, "worker", "worker 0"));
  add_own_variables(result.processes.back().environment, input.job);
  return result;
}

}  // namespace

const Preset tensorflow_preset = {
    .name = "tensorflow",
    .summary = "a worker and a parameter server on each host, by --job_name, --task_index ... and TF_CONFIG",
    .check = check,
    .ports_wanted = ports_wanted,
    .needs_rendezvous = needs_rendezvous,
    .spec = spec,
    .openness = "any process that reaches the first host's port can take part in the job",
};

}  // namespace muster::launch
