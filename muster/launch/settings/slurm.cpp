#include "muster/launch/settings/sources.h"

#include <fmt/format.h>

#include <numeric>

#include "muster/launch/settings/hostlist.h"
#include "muster/launch/settings/variables.h"
#include "muster/launch/settings/wrong.h"

namespace muster::launch {
namespace {

constexpr auto slurm_count_max = static_cast<std::int64_t>(hosts_max);
constexpr std::int64_t id_max = 4'294'967'295;

// Ports below those that systems give away by themselves.
constexpr std::int64_t port_first = 20000;
constexpr std::int64_t port_count = 10000;
constexpr std::int64_t steps_apart = 16;  // so that steps of neighbouring jobs rarely get the same port

// A step of srun, as one of its tasks sees it.
struct Step {
  std::int64_t job = 0;
  std::int64_t number = 0;
  std::int64_t restarts = 0;  // how often the job was put back into the queue
  std::vector<std::string> nodes = {};
  std::vector<std::int64_t> tasks = {};  // on each node
  Setting<std::int64_t> node = {};       // which node this task is on
  Setting<std::int64_t> task = {};       // which task of all this is
  SaidNumber gpus = {};

  std::int64_t task_count() const { return std::accumulate(tasks.begin(), tasks.end(), std::int64_t{0}); }
  bool has_several_on_a_node() const { return task_count() > static_cast<std::int64_t>(nodes.size()); }
};

Result<Setting<std::int64_t>> required(const Environment& environment, const char* name, std::int64_t most) {
  MUSTER_TRY(const auto said, number(environment, {name}, 0, most));
  if (!said) return wrong(fmt::format("Slurm's {} is not set, and SLURM_STEP_NODELIST is", name));
  return *said;
}

template <class T>
Result<std::vector<T>> read_list(const Environment& environment, const char* name,
                                 Result<std::vector<T>> (*parse)(std::string_view)) {
  const std::string text = environment.get(name).value_or("");
  auto list = parse(text);
  if (!list) return wrong(fmt::format("{}={}: {}", name, text, list.error().message));
  return list;
}

Result<> check_counts(const Environment& environment, const Step& step) {
  const auto nodes = static_cast<std::int64_t>(step.nodes.size());
  MUSTER_TRY(const auto node_count, number(environment, {"SLURM_STEP_NUM_NODES"}, 1, slurm_count_max));
  if (node_count && node_count->value != nodes)
    return wrong(fmt::format("SLURM_STEP_NUM_NODES={} contradicts SLURM_STEP_NODELIST={}, which names {}",
                             node_count->value, environment.get("SLURM_STEP_NODELIST").value_or(""), nodes));
  if (step.tasks.size() != step.nodes.size())
    return wrong(
        fmt::format("SLURM_STEP_TASKS_PER_NODE={} is about {} nodes, and SLURM_STEP_NODELIST={} names {}",
                    environment.get("SLURM_STEP_TASKS_PER_NODE").value_or(""), step.tasks.size(),
                    environment.get("SLURM_STEP_NODELIST").value_or(""), nodes));
  if (step.node.value >= nodes || step.task.value >= step.task_count())
    return wrong(fmt::format("SLURM_NODEID={} and SLURM_PROCID={}: the step has {} nodes and {} tasks",
                             step.node.value, step.task.value, nodes, step.task_count()));
  return {};
}

Result<Step> read_step(const Environment& environment) {
  Step step;
  MUSTER_TRY(step.nodes, read_list(environment, "SLURM_STEP_NODELIST", parse_hostlist));
  MUSTER_TRY(step.tasks, read_list(environment, "SLURM_STEP_TASKS_PER_NODE", parse_task_counts));
  MUSTER_TRY(step.node, required(environment, "SLURM_NODEID", slurm_count_max));
  MUSTER_TRY(step.task, required(environment, "SLURM_PROCID", slurm_count_max));
  MUSTER_TRY(const auto job, required(environment, "SLURM_JOB_ID", id_max));
  MUSTER_TRY(const auto number_of_step, required(environment, "SLURM_STEP_ID", id_max));
  MUSTER_TRY(const auto restarts, number(environment, {"SLURM_RESTART_COUNT"}, 0, id_max));
  MUSTER_TRY(step.gpus, number(environment, {"SLURM_GPUS_ON_NODE"}, 0, slurm_count_max));
  step.job = job.value;
  step.number = number_of_step.value;
  step.restarts = restarts ? restarts->value : 0;
  MUSTER_TRY_VOID(check_counts(environment, step));
  return step;
}

// Each node is a host, on which its one task starts the workers.
void say_nodes(PartialSettings& said, const Step& step) {
  if (step.nodes.size() > 1) {
    said.hosts = Setting<std::vector<HostSlots>>{{}, "SLURM_STEP_NODELIST"};
    for (const std::string& node : step.nodes) said.hosts->value.push_back({.name = node});
    said.self = step.node;
  }
  if (step.gpus && step.gpus->value > 0)
    said.slots = step.gpus;
  else
    said.slots = Setting<std::int64_t>{1, "SLURM_STEP_TASKS_PER_NODE"};
}

// Each task is a host with one worker. Only the first one's node is known: Slurm may deal the others in turn.
void say_tasks(PartialSettings& said, const Step& step) {
  said.hosts = Setting<std::vector<HostSlots>>{{}, "SLURM_STEP_NODELIST"};
  said.hosts->value.resize(static_cast<std::size_t>(step.task_count()), {.slots = 1});
  said.hosts->value.front().name = step.nodes.front();
  said.self = step.task;
}

// The job's name in folders: the same when it is put back into the queue and started again.
std::string name_of(const Step& step) { return fmt::format("slurm-{}.{}", step.job, step.number); }

void say_folders(PartialSettings& said, const Step& step, const Environment& environment,
                 const PartialSettings& asked) {
  const std::string again = step.restarts > 0 ? fmt::format("-restart-{}", step.restarts) : "";
  said.log_folder =
      Setting<std::string>{fmt::format("muster-logs/{}{}", name_of(step), again), "SLURM_JOB_ID"};
  const bool recovers = (asked.max_restarts && asked.max_restarts->value > 0) ||
                        environment.get("MS_ENABLE_RECOVERY").value_or("") == "1";
  if (!recovers || !environment.get("MS_RECOVERY_PATH").value_or("").empty()) return;
  const std::string folder = environment.get("SLURM_SUBMIT_DIR").value_or("");
  said.recovery_folder = Setting<std::string>{
      fmt::format("{}muster-recovery/{}", folder.empty() ? "" : folder + "/", name_of(step)), "SLURM_JOB_ID"};
}

Result<> check_asked(const Step& step, const PartialSettings& asked) {
  if (!step.has_several_on_a_node()) return {};
  if (asked.slots && asked.slots->value != 1)
    return wrong(fmt::format(
        "{} {} contradicts Slurm's {} tasks on {} node{}, each of which is one worker: leave out {}, "
        "or start one task on each node (srun --ntasks-per-node=1)",
        asked.slots->origin, asked.slots->value, step.task_count(), step.nodes.size(),
        step.nodes.size() == 1 ? "" : "s", asked.slots->origin));
  const bool takes_tasks =
      !asked.preset || asked.preset->value == "muster" || asked.preset->value == "mindspore";
  if (!takes_tasks)
    return wrong(fmt::format(
        "the preset '{}' starts all processes of a node itself, and Slurm started {} tasks on "
        "{} node{}: start one on each (srun --ntasks-per-node=1), and say -n",
        asked.preset->value, step.task_count(), step.nodes.size(), step.nodes.size() == 1 ? "" : "s"));
  return {};
}

// A batch script, or a shell of salloc, is on one of the nodes only.
Result<> check_outside_of_a_step(const Environment& environment, const PartialSettings& asked) {
  MUSTER_TRY(const auto nodes, number(environment, {"SLURM_JOB_NUM_NODES"}, 1, slurm_count_max));
  if (!nodes || nodes->value == 1 || asked.hosts || asked.host_count) return {};
  return wrong(
      fmt::format("Slurm's job has {} nodes, and only this one runs `muster run`: put srun before it, as in "
                  "srun --ntasks-per-node=1 muster run -n 4 train.py",
                  nodes->value));
}

}  // namespace

Result<PartialSettings> slurm_settings(const Environment& environment, const PartialSettings& asked) {
  PartialSettings said;
  if (environment.get("SLURM_STEP_NODELIST").value_or("").empty()) {
    MUSTER_TRY_VOID(check_outside_of_a_step(environment, asked));
    return said;
  }
  MUSTER_TRY(const Step step, read_step(environment));
  MUSTER_TRY_VOID(check_asked(step, asked));
  if (step.has_several_on_a_node())
    say_tasks(said, step);
  else
    say_nodes(said, step);
  if (said.self) {
    said.reach = Setting<Reach>{Reach::each, said.self->origin};
    if (!asked.scheduler)
      said.port = Setting<std::int64_t>{port_first + (step.job * steps_apart + step.number) % port_count,
                                        "SLURM_JOB_ID"};
  }
  say_folders(said, step, environment, asked);
  return said;
}

}  // namespace muster::launch
