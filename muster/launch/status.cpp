#include "muster/launch/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "muster/launch/own_jobs.h"
#include "muster/launch/table.h"

namespace muster::launch {
namespace {

using cluster::in_seconds;
using cluster::Role;
using cluster::message::Status;
using nlohmann::json;

constexpr auto answer_limit = std::chrono::seconds(5);

}  // namespace

std::string_view state_name(Status::State state) {
  switch (state) {
    case Status::State::forming:
      return "forming";
    case Status::State::running:
      return "running";
    case Status::State::recovering:
      return "recovering";
    case Status::State::ended:
      return "ended";
  }
  return "";
}

namespace {

std::uint32_t absent(const Status& status, Role role) {
  const auto present = static_cast<std::uint32_t>(std::count_if(
      status.nodes.begin(), status.nodes.end(), [&](const auto& node) { return node.role == role; }));
  const std::uint32_t wanted = role == Role::worker ? status.worker_num : status.server_num;
  return wanted > present ? wanted - present : 0;
}

std::string doing(const Status::Node& node) {
  if (node.has_left) return "has left, done";
  if (!node.is_connected) return "not connected";
  return to_string(node.activity);
}

// Loss, step time, waiting, memory and cores, for a table.
std::vector<std::string> numbers_of(const Status::Node& node) {
  const auto text_of = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.4g}", *value) : std::string("-");
  };
  const cluster::ProcessStats stats = node.stats.value_or(cluster::ProcessStats{});
  const cluster::Pace& pace = node.pace;
  const auto step = pace.step_seconds();
  return {text_of(stats.loss), step ? cluster::time_text(*step) : "-",
          pace.window_us == 0 ? "-" : fmt::format("{:.0f} %", 100 * pace.share(pace.spent.waiting_us)),
          stats.memory_bytes == 0 ? "-" : fmt::format("{} MiB", stats.memory_bytes >> 20),
          pace.cores() ? fmt::format("{:.1f}", *pace.cores()) : "-"};
}

std::string step_of(const Status::Node& node) {
  if (node.step == cluster::no_step) return "-";
  return node.activity.train_epoch == 0 ? fmt::format("{}", node.step)
                                        : fmt::format("{} (epoch {})", node.step, node.activity.train_epoch);
}

double seconds_of(std::uint64_t count) { return static_cast<double>(count) / 1e6; }

json or_null(bool is_there, const json& value) { return is_there ? value : json(nullptr); }
json or_null(const std::optional<double>& value) { return or_null(value.has_value(), value.value_or(0)); }

// Where the time of the main thread went lately, each from 0 to 1.
json shares_json(const cluster::Pace& pace) {
  if (pace.window_us == 0) return nullptr;
  json shares = {{"waiting", pace.share(pace.spent.waiting_us)}};
  for (std::size_t phase = 0; phase < cluster::work_phase_count; ++phase)
    shares[phase_name(static_cast<cluster::WorkPhase>(phase))] = pace.share(pace.spent.own_us.at(phase));
  return shares;
}

json metrics_json(const cluster::ProcessStats& stats) {
  json metrics = json::object();
  for (const auto& [name, value] : stats.metrics) metrics[name] = value;
  return metrics;
}

json serving_json(const Status::Node& node) {
  if (node.activity.phase != cluster::WorkPhase::serving) return nullptr;
  const cluster::Serving& serving = node.activity.serving;
  return {{"rows", serving.rows},
          {"size_bytes", serving.size_bytes},
          {"updates", serving.updates},
          {"waiting_workers", serving.waiting}};
}

json node_json(const Status::Node& node) {
  const bool calls = node.activity.call != CallKind::none;
  const cluster::ProcessStats stats = node.stats.value_or(cluster::ProcessStats{});
  return {{"role", to_string(node.role)},
          {"rank", or_null(node.has_rank, node.rank)},
          {"node_id", node.node_id},
          {"address", node.address},
          {"pid", node.pid},
          {"epoch", node.epoch},
          {"step", or_null(node.step != cluster::no_step, node.step)},
          {"train_epoch", or_null(node.activity.train_epoch != 0, node.activity.train_epoch)},
          {"phase", phase_name(node.activity.phase)},
          {"call", or_null(calls, to_string(node.activity.call))},
          {"call_number", or_null(calls, node.activity.call_number)},
          {"awaited", or_null(node.activity.awaited.count > 0, node.activity.awaited.first)},
          {"serving", serving_json(node)},
          {"doing", doing(node)},
          {"connected", node.is_connected},
          {"left", node.has_left},
          {"last_heartbeat_s", in_seconds(node.silence)},
          {"loss", or_null(stats.loss)},
          {"learning_rate", or_null(stats.learning_rate)},
          {"metrics", metrics_json(stats)},
          {"memory_bytes", or_null(stats.memory_bytes != 0, stats.memory_bytes)},
          {"step_seconds", or_null(node.pace.step_seconds())},
          {"samples_per_second", or_null(node.pace.samples_per_second())},
          {"cpu_cores", or_null(node.pace.cores())},
          {"time_shares", shares_json(node.pace)}};
}

}  // namespace

Result<net::HostPort> find_scheduler(const std::string& given, const Environment& environment) {
  if (!given.empty()) return net::parse_host_port(given);
  const std::string host = environment.get("MS_SCHED_HOST").value_or("");
  const std::string port = environment.get("MS_SCHED_PORT").value_or("");
  if (host.empty() || port.empty())
    return fail(Code::invalid_argument,
                "which scheduler? Give --scheduler HOST:PORT, or set MS_SCHED_HOST and MS_SCHED_PORT");
  const bool is_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return net::parse_host_port(is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port));
}

Result<std::shared_ptr<const net::Security>> find_security(const Environment& environment) {
  return cluster::open_security(cluster::read_security_settings(environment),
                                environment.get("MUSTER_STRICT") == "1");
}

Result<std::shared_ptr<const net::Security>> find_security(const Environment& environment,
                                                           const net::HostPort& scheduler) {
  MUSTER_TRY(auto security, find_security(environment));
  if (security) return security;
  const auto token_file = token_file_of_own_job(scheduler);
  if (!token_file) return security;
  return cluster::open_security({.run_token_file = *token_file}, false);
}

net::ConnectionSecurity way_to_scheduler(const net::HostPort& scheduler,
                                         std::shared_ptr<const net::Security> security) {
  return {.security = std::move(security),
          .expected = {.hosts = {scheduler.host}, .node_id = std::string(net::scheduler_node_id)},
          .peer_name = "the scheduler"};
}

namespace {

// What the scheduler answers to an observer.
Result<cluster::Message> ask(const net::HostPort& scheduler, std::shared_ptr<const net::Security> security,
                             const cluster::MessageBody& question, const Clock& clock) {
  const cluster::Visit::Options options{.limit = answer_limit,
                                        .security = way_to_scheduler(scheduler, std::move(security))};
  MUSTER_TRY(const auto ips, net::resolve(scheduler.host));
  net::Loop loop;
  Result<cluster::Message> answer = fail(Code::not_found, scheduler.host + " has no address");
  for (const std::string& ip : ips) {
    answer =
        cluster::Visit::open(loop, clock, {ip, scheduler.port}, options).and_then([&](const auto& visit) {
          return visit->ask(question, answer_limit);
        });
    if (answer) break;
  }
  if (answer && !std::holds_alternative<Status>(answer->body))
    return fail(Code::corrupt, "the process that listens there is no scheduler: it answers something else");
  return answer;
}

}  // namespace

Result<JobStatus> ask_status(const net::HostPort& scheduler, std::shared_ptr<const net::Security> security,
                             const Clock& clock) {
  MUSTER_TRY(cluster::Message answer,
             ask(scheduler, std::move(security), cluster::message::StatusRequest{}, clock));
  return JobStatus{.scheduler = fmt::format("{}:{}", scheduler.host, scheduler.port),
                   .job_id = answer.job_id,
                   .epoch = answer.epoch,
                   .status = std::get<Status>(std::move(answer.body))};
}

Result<> tell_of_early_end(const net::HostPort& scheduler, std::shared_ptr<const net::Security> security,
                           const std::string& node_id, const Clock& clock) {
  MUSTER_TRY_VOID(ask(scheduler, std::move(security), cluster::message::EndedEarly{node_id}, clock));
  return {};
}

std::string status_text(const JobStatus& job) {
  const Status& status = job.status;
  std::string text = fmt::format("job {:016x} at {}: {}, epoch {}, since {:.3g} s", job.job_id, job.scheduler,
                                 state_name(status.state), job.epoch, in_seconds(status.age));
  const bool has_steps = std::any_of(status.nodes.begin(), status.nodes.end(),
                                     [](const auto& node) { return node.step != cluster::no_step; });
  if (status.state == Status::State::running && has_steps)
    text += fmt::format(", last step finished {:.3g} s ago", in_seconds(status.without_step));
  text += status.text.empty() ? "\n" : fmt::format("\n{}\n", status.text);
  std::vector<std::vector<std::string>> rows = {
      {"role", "rank", "node", "host", "process", "epoch", "step", "doing", "last heartbeat"}};
  const bool has_numbers =
      std::ranges::any_of(status.nodes, [](const auto& node) { return node.stats.has_value(); });
  if (has_numbers) rows[0].insert(rows[0].end(), {"loss", "step time", "waiting", "memory", "cores"});
  for (const Status::Node& node : status.nodes) {
    rows.push_back({std::string(to_string(node.role)), node.has_rank ? std::to_string(node.rank) : "-",
                    node.node_id, node.address, std::to_string(node.pid), std::to_string(node.epoch),
                    step_of(node), doing(node), fmt::format("{:.1f} s ago", in_seconds(node.silence))});
    if (has_numbers) std::ranges::move(numbers_of(node), std::back_inserter(rows.back()));
  }
  text += table(rows);
  for (const cluster::SlowRank& slow : status.slow) text += to_string(slow) + '\n';
  for (const Role role : {Role::worker, Role::server})
    if (const std::uint32_t count = absent(status, role); count > 0)
      text += fmt::format("absent: {} {}{}\n", count, to_string(role), count == 1 ? "" : "s");
  return text;
}

std::string status_line(const JobStatus& job) {
  const Status& status = job.status;
  std::string text = fmt::format("{}, {} of {} workers", state_name(status.state),
                                 status.worker_num - absent(status, Role::worker), status.worker_num);
  if (status.server_num > 0)
    text += fmt::format(", {} of {} servers", status.server_num - absent(status, Role::server),
                        status.server_num);
  const auto most = std::max_element(
      status.nodes.begin(), status.nodes.end(), [](const Status::Node& a, const Status::Node& b) {
        return (a.step == cluster::no_step ? 0 : a.step + 1) < (b.step == cluster::no_step ? 0 : b.step + 1);
      });
  if (most != status.nodes.end() && most->step != cluster::no_step) text += ", step " + step_of(*most);
  for (const Status::Node& node : status.nodes)
    if (!node.is_connected && !node.has_left)
      text += fmt::format(", {} {} not connected", to_string(node.role),
                          node.has_rank ? std::to_string(node.rank) : node.node_id);
  return status.text.empty() ? text : fmt::format("{}: {}", text, status.text);
}

bool is_over(const JobStatus& job) {
  const auto& nodes = job.status.nodes;
  if (job.status.state == Status::State::ended) return true;
  return !nodes.empty() && absent(job.status, Role::worker) == 0 &&
         std::all_of(nodes.begin(), nodes.end(),
                     [](const Status::Node& node) { return node.has_left || node.role != Role::worker; });
}

std::string status_json(const JobStatus& job, bool is_indented) {
  const Status& status = job.status;
  json nodes = json::array();
  for (const Status::Node& node : status.nodes) nodes.push_back(node_json(node));
  json slow = json::array();
  for (const cluster::SlowRank& each : status.slow)
    slow.push_back({{"rank", each.rank},
                    {"cause", slow_cause_name(each.cause)},
                    {"seconds", seconds_of(each.time_us)},
                    {"usual_seconds", seconds_of(each.usual_us)},
                    {"step_seconds", seconds_of(each.step_us)},
                    {"text", to_string(each)}});
  const json made = {{"scheduler", job.scheduler},
                     {"job", fmt::format("{:016x}", job.job_id)},
                     {"epoch", job.epoch},
                     {"state", state_name(status.state)},
                     {"recovers", status.recovers},
                     {"worker_num", status.worker_num},
                     {"server_num", status.server_num},
                     {"age_s", in_seconds(status.age)},
                     {"without_step_s", in_seconds(status.without_step)},
                     {"text", status.text},
                     {"absent_workers", absent(status, Role::worker)},
                     {"absent_servers", absent(status, Role::server)},
                     {"slow", std::move(slow)},
                     {"nodes", std::move(nodes)}};
  // A name may hold bytes that are no text.
  return made.dump(is_indented ? 2 : -1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace muster::launch
