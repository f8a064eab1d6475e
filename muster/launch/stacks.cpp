// What status.h says of stacks.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "muster/launch/status.h"

namespace muster::launch {
namespace {

using cluster::message::ProcessStacks;

constexpr auto connect_limit = std::chrono::seconds(5);
constexpr auto next_answer_limit = std::chrono::seconds(10);  // the scheduler itself takes at most four

Result<JobStacks> hear_stacks(cluster::Visit& visit, const cluster::message::StacksRequest& request) {
  visit.say(request);
  JobStacks stacks;
  while (true) {
    const auto heard = visit.hear(next_answer_limit);
    const bool is_cut = !heard && heard.error().code == Code::peer_lost && stacks.processes.empty();
    if (is_cut)
      return fail(
          Code::peer_lost,
          fmt::format("the scheduler ended the connection without an answer: its version of Muster may know "
                      "no stacks ({})",
                      heard.error().message));
    if (!heard) return fail(heard.error());
    if (const auto* process = std::get_if<ProcessStacks>(&heard->body)) {
      stacks.processes.push_back(*process);
    } else if (const auto* end = std::get_if<cluster::message::StacksEnd>(&heard->body)) {
      stacks.left_out = end->left_out;
      return stacks;
    } else {
      return fail(Code::corrupt, "the process that listens there is no scheduler: it answers something else");
    }
  }
}

std::string name_of(const ProcessStacks& process) {
  const std::string name =
      process.has_rank ? std::to_string(process.rank) : fmt::format("'{}'", process.node_id);
  return fmt::format("{} {} (process {} at {})", to_string(process.role), name, process.pid, process.address);
}

}  // namespace

Result<JobStacks> ask_stacks(const net::HostPort& scheduler, std::shared_ptr<const net::Security> security,
                             const cluster::message::StacksRequest& request, const Clock& clock) {
  const cluster::Visit::Options options{.limit = connect_limit,
                                        .security = way_to_scheduler(scheduler, std::move(security))};
  MUSTER_TRY(const auto ips, net::resolve(scheduler.host));
  net::Loop loop;
  Result<JobStacks> stacks = fail(Code::not_found, scheduler.host + " has no address");
  for (const std::string& ip : ips) {
    auto visit = cluster::Visit::open(loop, clock, {ip, scheduler.port}, options);
    stacks = visit ? hear_stacks(**visit, request) : Result<JobStacks>(fail(visit.error()));
    if (visit) break;
  }
  if (stacks)
    std::ranges::sort(stacks->processes, {}, [](const ProcessStacks& process) {
      return std::tuple(process.role, process.rank, process.node_id);
    });
  return stacks;
}

std::string stacks_text(const JobStacks& stacks) {
  std::string text;
  for (const ProcessStacks& process : stacks.processes) {
    text += fmt::format("{}: {}\n", name_of(process), process.doing);
    text += process.problem.empty() ? process.text : fmt::format("  no stacks: {}\n", process.problem);
  }
  if (stacks.left_out > 0)
    text += fmt::format("{} more processes were not asked: --rank NUMBER asks one\n", stacks.left_out);
  return text.empty() ? "no process has come yet\n" : text;
}

std::string stacks_json(const JobStacks& stacks) {
  using nlohmann::json;
  json processes = json::array();
  for (const ProcessStacks& process : stacks.processes)
    processes.push_back({{"role", to_string(process.role)},
                         {"rank", process.has_rank ? json(process.rank) : json(nullptr)},
                         {"node_id", process.node_id},
                         {"address", process.address},
                         {"pid", process.pid},
                         {"doing", process.doing},
                         {"problem", process.problem.empty() ? json(nullptr) : json(process.problem)},
                         {"stacks", process.problem.empty() ? json(process.text) : json(nullptr)}});
  const json made = {{"processes", std::move(processes)}, {"left_out", stacks.left_out}};
  return made.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace muster::launch
