#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/launch/metric_families.h"
#include "muster/launch/status.h"

namespace muster::launch {
namespace {

using cluster::in_seconds;
using cluster::message::Status;
using Labels = MetricLabels;
using Families = std::vector<MetricFamily>;

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text;
}

// Prometheus takes no sign before NaN, and refuses all numbers where one has it. What makes NaN, 0/0, gives
// it one on most processors.
std::string number_text(double value) { return std::isnan(value) ? "NaN" : fmt::format("{}", value); }

class Family {
 public:
  Family(std::string name, std::string help) : family_{std::move(name), std::move(help)} {}

  Family& add(double value, const Labels& labels = {}) {
    family_.samples.push_back({value, labels});
    return *this;
  }
  const MetricFamily& get() const { return family_; }

 private:
  MetricFamily family_;
};

// All samples of a metric stand together behind what it is.
std::string text_of(const MetricFamily& family) {
  std::string text = fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", family.name, family.help);
  for (const auto& [value, labels] : family.samples) {
    std::string inside;
    for (const auto& [label, label_text] : labels)
      inside += fmt::format("{}{}=\"{}\"", inside.empty() ? "" : ",", label, escaped(label_text));
    text += inside.empty() ? fmt::format("{} {}\n", family.name, number_text(value))
                           : fmt::format("{}{{{}}} {}\n", family.name, inside, number_text(value));
  }
  return text;
}

Families of_job(const JobStatus& job) {
  const Status& status = job.status;
  Family info("muster_job_info", "The job, always 1.");
  info.add(1, {{"job", fmt::format("{:016x}", job.job_id)}, {"scheduler", job.scheduler}});
  Family state("muster_job_state", "1 for the state that the job is in.");
  for (const auto each :
       {Status::State::forming, Status::State::running, Status::State::recovering, Status::State::ended})
    state.add(each == status.state ? 1 : 0, {{"state", std::string(state_name(each))}});
  Family wanted("muster_job_processes_wanted", "Processes that the job is made of.");
  wanted.add(status.worker_num, {{"role", "worker"}}).add(status.server_num, {{"role", "server"}});
  Family slow("muster_job_slow_rank", "1: the others wait for this rank in each step, and why.");
  for (const cluster::SlowRank& each : status.slow)
    slow.add(1, {{"rank", std::to_string(each.rank)}, {"cause", std::string(slow_cause_name(each.cause))}});
  return {
      info.get(),
      state.get(),
      wanted.get(),
      slow.get(),
      Family("muster_job_epoch", "Epoch of the job: one more each time that a lost process has come back.")
          .add(static_cast<double>(job.epoch))
          .get(),
      Family("muster_job_age_seconds", "Time since the job began.").add(in_seconds(status.age)).get(),
      Family("muster_job_without_step_seconds", "Time since any rank finished a step.")
          .add(in_seconds(status.without_step))
          .get()};
}

Labels who(const Status::Node& node) {
  return {{"role", std::string(to_string(node.role))},
          {"rank", node.has_rank ? std::to_string(node.rank) : ""},
          {"host", node.address}};
}

Labels with(Labels labels, std::string_view label, std::string value) {
  labels.emplace_back(label, std::move(value));
  return labels;
}

// What the processes measure themselves; what one does not know is left out.
Families numbers_of_processes(const std::vector<Status::Node>& nodes) {
  Family loss("muster_process_loss", "Loss of the last step.");
  Family rate("muster_process_learning_rate", "Learning rate of a late step.");
  Family metric("muster_process_metric", "Metric of the last evaluation of fit.");
  Family memory("muster_process_memory_bytes", "Resident memory.");
  Family cores("muster_process_cpu_cores", "Cores that it kept busy, over the last seconds.");
  Family step("muster_process_step_seconds", "Time of a step, over the last seconds.");
  Family samples("muster_process_samples_per_second", "Samples that went through its steps a second.");
  Family share("muster_process_time_share",
               "Where the time of its main thread went in the last seconds, from 0 to 1.");
  for (const Status::Node& node : nodes) {
    if (!node.stats) continue;
    const cluster::Pace& pace = node.pace;
    const Labels labels = who(node);
    const auto add = [&](Family& family, const std::optional<double>& value) {
      if (value) family.add(*value, labels);
    };
    add(loss, node.stats->loss);
    add(rate, node.stats->learning_rate);
    for (const auto& [name, value] : node.stats->metrics) metric.add(value, with(labels, "name", name));
    if (node.stats->memory_bytes != 0) memory.add(static_cast<double>(node.stats->memory_bytes), labels);
    add(cores, pace.cores());
    add(step, pace.step_seconds());
    add(samples, pace.samples_per_second());
    if (pace.window_us == 0) continue;
    share.add(pace.share(pace.spent.waiting_us), with(labels, "what", "waiting"));
    for (std::size_t phase = 0; phase < cluster::work_phase_count; ++phase)
      share.add(pace.share(pace.spent.own_us.at(phase)),
                with(labels, "what", std::string(phase_name(static_cast<cluster::WorkPhase>(phase)))));
  }
  return {loss.get(),  rate.get(), metric.get(),  memory.get(),
          cores.get(), step.get(), samples.get(), share.get()};
}

Families of_processes(const std::vector<Status::Node>& nodes) {
  Family up("muster_process_up", "1: connected to the scheduler, or it has left well; 0: lost.");
  Family step("muster_process_step", "Steps that the rank has finished; it falls when the job goes back.");
  Family epoch("muster_process_train_epoch", "Epoch of the training that the rank is in, from 1.");
  Family silence("muster_process_heartbeat_age_seconds", "Time since the last heartbeat.");
  Family phase("muster_process_phase", "1 for what the main thread does.");
  Family waits("muster_process_in_call",
               "1: in a call with other workers, or waiting for parameter servers.");
  Family call("muster_process_call_number", "Number of the collective call that it is in, or was in last.");
  for (const Status::Node& node : nodes) {
    const Labels labels = who(node);
    up.add(node.is_connected || node.has_left ? 1 : 0, labels);
    silence.add(in_seconds(node.silence), labels);
    if (node.step != cluster::no_step) step.add(static_cast<double>(node.step), labels);
    if (node.activity.train_epoch != 0) epoch.add(static_cast<double>(node.activity.train_epoch), labels);
    waits.add(cluster::waits(node.activity) ? 1 : 0, labels);
    if (node.activity.call_number != 0) call.add(static_cast<double>(node.activity.call_number), labels);
    for (const auto each : cluster::work_phases) {
      phase.add(each == node.activity.phase ? 1 : 0, with(labels, "phase", std::string(phase_name(each))));
    }
  }
  return {up.get(), step.get(), epoch.get(), silence.get(), phase.get(), waits.get(), call.get()};
}

Families of_servers(const std::vector<Status::Node>& nodes) {
  Family rows("muster_server_rows", "Rows that the parameter server keeps.");
  Family bytes("muster_server_row_bytes", "Bytes of these rows, with their optimizers' state.");
  Family updates("muster_server_updates", "Steps of optimizers that are in its rows.");
  Family waiting("muster_server_waiting_workers", "Workers that wait there for the gradients of others.");
  bool is_any = false;
  for (const Status::Node& node : nodes) {
    if (node.activity.phase != cluster::WorkPhase::serving) continue;
    is_any = true;
    const cluster::Serving& serving = node.activity.serving;
    const Labels who = {{"rank", std::to_string(node.rank)}, {"host", node.address}};
    rows.add(static_cast<double>(serving.rows), who);
    bytes.add(static_cast<double>(serving.size_bytes), who);
    updates.add(static_cast<double>(serving.updates), who);
    waiting.add(serving.waiting, who);
  }
  if (!is_any) return {};
  return {rows.get(), bytes.get(), updates.get(), waiting.get()};
}

}  // namespace

std::vector<MetricFamily> metric_families(const std::optional<JobStatus>& job) {
  Families all = {
      Family("muster_up", "1: the scheduler of the job answers.").add(job.has_value() ? 1 : 0).get()};
  if (!job) return all;
  const auto& nodes = job->status.nodes;
  for (const Families& part :
       {of_job(*job), of_processes(nodes), numbers_of_processes(nodes), of_servers(nodes)})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string metrics_text(const std::optional<JobStatus>& job) {
  std::string text;
  for (const MetricFamily& family : metric_families(job)) text += text_of(family);
  return text;
}

}  // namespace muster::launch
