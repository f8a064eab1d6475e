// muster status, muster metrics and muster doctor: how a job, a host and the network between hosts are.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "commands.h"
#include "follow.h"
#include "muster/launch/dashboard/job_server.h"
#include "muster/launch/launch.h"

namespace muster::app {
namespace {

struct WatchFlags {
  std::string scheduler;
  std::string master;
  std::string listen;
  bool dumps = false;
  bool stacks = false;
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> server;
  bool json = false;
  bool watches = false;
  double patience_s = 3;
  std::optional<std::int64_t> only_index;
};

// In an Indexed Job of Kubernetes: a pod of another index than the one that is looked at.
bool is_other_index(const WatchFlags& flags) {
  const auto index = real_environment().get("JOB_COMPLETION_INDEX");
  return flags.only_index && index && *index != std::to_string(*flags.only_index);
}

// Of PyTorch's jobs on this host, which have no scheduler.
int print_torch_status(const WatchFlags& flags, const std::string& why_no_scheduler) {
  if (flags.watches) return refuse("status", "--watch needs a scheduler: " + why_no_scheduler);
  if (flags.rank || flags.server)
    return refuse("status", "--rank and --server need a scheduler: " + why_no_scheduler);
  const auto question = flags.dumps    ? launch::TorchQuestion::dump
                        : flags.stacks ? launch::TorchQuestion::stacks
                                       : launch::TorchQuestion::show;
  const auto ranks = launch::find_torch_ranks(question, real_clock());
  const auto text = flags.json ? launch::torch_status_json(ranks, flags.master)
                               : launch::torch_status_text(ranks, flags.master);
  if (!text) return refuse("status", fmt::format("{} ({})", why_no_scheduler, text.error().message));
  fmt::print("{}", *text);
  return 0;
}

int print_stacks(const WatchFlags& flags, const net::HostPort& scheduler,
                 const std::shared_ptr<const net::Security>& security) {
  const cluster::message::StacksRequest request{
      .role = flags.server ? cluster::Role::server : cluster::Role::worker,
      .rank = flags.server ? flags.server : flags.rank};
  const auto stacks = launch::ask_stacks(scheduler, security, request, real_clock());
  if (!stacks) return refuse("status", stacks.error().message, 1);
  fmt::print("{}", flags.json ? launch::stacks_json(*stacks) : launch::stacks_text(*stacks));
  return 0;
}

// What the flags ask for together that does not go together; empty: nothing.
std::string contradiction(const WatchFlags& flags) {
  if ((flags.rank || flags.server) && !flags.stacks)
    return "--rank and --server choose whose --stacks to show";
  if (flags.rank && flags.server) return "--rank and --server name two processes: leave one out";
  if (flags.stacks && flags.watches) return "--stacks shows one moment: leave out --watch";
  if (flags.stacks && flags.dumps) return "--stacks and --dump are two questions: leave one out";
  return {};
}

int print_status(const WatchFlags& flags) {
  if (const std::string text = contradiction(flags); !text.empty()) return refuse("status", text);
  if (is_other_index(flags)) return 0;
  if (!flags.master.empty() || flags.dumps)
    return print_torch_status(flags, "--master and --dump are for jobs of PyTorch, which have none");
  const auto scheduler = launch::find_scheduler(flags.scheduler, real_environment());
  if (!scheduler && flags.scheduler.empty()) return print_torch_status(flags, scheduler.error().message);
  if (!scheduler) return refuse("status", scheduler.error().message);
  const auto security = launch::find_security(real_environment(), *scheduler);
  if (!security) return refuse("status", security.error().message);
  if (flags.stacks) return print_stacks(flags, *scheduler, *security);
  if (flags.watches) return watch_status(*scheduler, *security, flags.json);
  const auto status = launch::ask_status(*scheduler, *security, real_clock());
  if (!status) return refuse("status", status.error().message, 1);
  fmt::print("{}", flags.json ? launch::status_json(*status) : launch::status_text(*status));
  return 0;
}

// Whether all is well.
bool print(const std::vector<launch::Finding>& findings) {
  bool well = true;
  for (const launch::Finding& finding : findings) {
    const bool is_well = finding.problem.empty();
    fmt::print("{:<8} {:<22} {}\n",
               is_well              ? "ok"
               : finding.is_warning ? "warning"
                                    : "PROBLEM",
               finding.subject, finding.value);
    if (is_well) continue;
    well = well && finding.is_warning;
    fmt::print("{:31} {}\n", "", finding.problem);
    if (!finding.fix.empty()) fmt::print("{:31} fix: {}\n", "", finding.fix);
  }
  std::fflush(stdout);
  return well;
}

int print_doctor(const WatchFlags& flags) {
  bool well = print(launch::examine_host(real_environment()));
  if (flags.scheduler.empty()) return well ? 0 : 1;
  const auto scheduler = launch::find_scheduler(flags.scheduler, real_environment());
  if (!scheduler) return refuse("doctor", scheduler.error().message);
  const auto security = launch::find_security(real_environment(), *scheduler);
  if (!security) return refuse("doctor", security.error().message);
  const auto patience = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.patience_s));
  well = print(launch::examine_network({.clock = real_clock(),
                                        .scheduler = *scheduler,
                                        .patience = patience,
                                        .own_ip = real_environment().get("MS_WORKER_IP").value_or(""),
                                        .security = *security})) &&
         well;
  return well ? 0 : 1;
}

void add_status(CLI::App& app, Invocation& invocation) {
  const auto flags = std::make_shared<WatchFlags>();
  CLI::App* command = app.add_subcommand("status", "Show the processes of a job: rank, host, step, activity");
  command
      ->add_option("--scheduler", flags->scheduler,
                   "Where its scheduler listens (default: MS_SCHED_HOST and MS_SCHED_PORT)")
      ->type_name("HOST:PORT");
  command
      ->add_option(
          "--master", flags->master,
          "The ranks on this host of the PyTorch job over Muster with that MASTER_ADDR and MASTER_PORT; "
          "without this and without a scheduler those of all such jobs")
      ->type_name("HOST:PORT");
  command->add_flag(
      "--dump", flags->dumps,
      "Of a PyTorch job: each rank here writes its flight recorder's file first, for torchfrtrace");
  command->add_flag("--stacks", flags->stacks,
                    "Show where each process is in its code: Python and C++ stacks, without a debugger");
  command->add_option("--rank", flags->rank, "With --stacks: of this worker alone")->type_name("NUMBER");
  command->add_option("--server", flags->server, "With --stacks: of this parameter server alone")
      ->type_name("NUMBER");
  command->add_flag("--json", flags->json, "Print JSON");
  command->add_flag(
      "--watch", flags->watches,
      "Ask every two seconds until the job has ended; not on a terminal, a line for each change");
  command
      ->add_option("--only-index", flags->only_index,
                   "For probes: exit 0 at once if JOB_COMPLETION_INDEX is another number")
      ->type_name("NUMBER");
  command->callback([flags, &invocation] { invocation.exit_code = print_status(*flags); });
}

// Once to the terminal, or as long as the job runs to whoever asks at `listen`.
int give_metrics(const WatchFlags& flags) {
  const auto scheduler = launch::find_scheduler(flags.scheduler, real_environment());
  if (!scheduler) return refuse("metrics", scheduler.error().message);
  const auto security = launch::find_security(real_environment(), *scheduler);
  if (!security) return refuse("metrics", security.error().message);
  const auto ask = [&] { return launch::ask_status(*scheduler, *security, real_clock()); };
  if (flags.listen.empty()) {
    const auto job = ask();
    if (!job) return refuse("metrics", job.error().message, 1);
    fmt::print("{}", launch::metrics_text(*job));
    return 0;
  }
  auto server = launch::JobServer::open(launch::JobServer::Shows::numbers, flags.listen);
  if (!server) return refuse("metrics", fmt::format("--listen {}: {}", flags.listen, server.error().message));
  fmt::print("{}\n", server->url());
  std::fflush(stdout);
  const auto served = server->serve(ask, real_clock());
  return served ? 0 : refuse("metrics", served.error().message, 1);
}

void add_metrics(CLI::App& app, Invocation& invocation) {
  const auto flags = std::make_shared<WatchFlags>();
  CLI::App* command = app.add_subcommand("metrics", "Print or serve the numbers of a job, for Prometheus");
  command
      ->add_option("--scheduler", flags->scheduler,
                   "Where its scheduler listens (default: MS_SCHED_HOST and MS_SCHED_PORT)")
      ->type_name("HOST:PORT");
  command
      ->add_option("--listen", flags->listen,
                   "Serve them at /metrics until the job has ended; a port alone is of this host alone")
      ->type_name("[HOST:]PORT");
  command->callback([flags, &invocation] { invocation.exit_code = give_metrics(*flags); });
}

void add_doctor(CLI::App& app, Invocation& invocation) {
  const auto flags = std::make_shared<WatchFlags>();
  CLI::App* command = app.add_subcommand("doctor", "Check this host and the network for what a job needs");
  command
      ->add_option("--scheduler", flags->scheduler,
                   "Check the network to this scheduler too, and between all hosts that run this command at "
                   "the same time")
      ->type_name("HOST:PORT");
  command->add_option("--wait", flags->patience_s, "Seconds to wait for other hosts (default: 3)")
      ->check(CLI::Range(0.0, 600.0))
      ->type_name("SECONDS");
  command->callback([flags, &invocation] { invocation.exit_code = print_doctor(*flags); });
}

}  // namespace

void add_watching(CLI::App& app, Invocation& invocation) {
  add_status(app, invocation);
  add_metrics(app, invocation);
  add_doctor(app, invocation);
}

}  // namespace muster::app
