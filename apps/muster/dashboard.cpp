// muster dashboard: a page of a job that runs, or of one that has ended.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "commands.h"
#include "muster/launch/dashboard/job_server.h"
#include "muster/launch/launch.h"

namespace muster::app {
namespace {

struct DashboardFlags {
  std::string folder;
  std::string scheduler;
  std::string logs;
  std::string listen = "0";
};

using launch::JobServer;

void announce(const JobServer& server) {
  fmt::print("{}\n", server.url());
  std::fflush(stdout);
}

int show_recorded(JobServer& server, const DashboardFlags& flags) {
  server.set_logs(flags.folder, false);
  if (const auto found = server.read_record(); !found) return refuse("dashboard", found.error().message, 1);
  announce(server);
  server.serve_recorded(real_clock());
}

int show_job(JobServer& server, const DashboardFlags& flags) {
  const auto scheduler = launch::find_scheduler(flags.scheduler, real_environment());
  if (!scheduler) return refuse("dashboard", scheduler.error().message + ", or name the folder of a run");
  const auto security = launch::find_security(real_environment(), *scheduler);
  if (!security) return refuse("dashboard", security.error().message);
  const auto ask = [&] { return launch::ask_status(*scheduler, *security, real_clock()); };
  if (const auto job = ask(); !job) return refuse("dashboard", job.error().message, 1);
  if (!server.is_local() && *security != nullptr && (*security)->uses_certificates())
    server.encrypt(*security);
  if (!flags.logs.empty()) server.set_logs(flags.logs, false);
  announce(server);
  const auto served = server.serve(ask, real_clock());
  return served ? 0 : refuse("dashboard", served.error().message, 1);
}

int show(const DashboardFlags& flags) {
  if (!flags.folder.empty() && !flags.scheduler.empty())
    return refuse("dashboard", "a folder and --scheduler name two jobs: leave one out");
  auto server = JobServer::open(JobServer::Shows::page, flags.listen);
  if (!server)
    return refuse("dashboard", fmt::format("--listen {}: {}", flags.listen, server.error().message));
  return flags.folder.empty() ? show_job(*server, flags) : show_recorded(*server, flags);
}

}  // namespace

void add_dashboard(CLI::App& app, Invocation& invocation) {
  const auto flags = std::make_shared<DashboardFlags>();
  CLI::App* command =
      app.add_subcommand("dashboard", "Serve a page of a job that runs, or of one that has ended");
  command->add_option("folder", flags->folder,
                      "Folder of a run that `muster run --dashboard` has kept (muster-logs/<time>)");
  command
      ->add_option(
          "--scheduler", flags->scheduler,
          "Where the scheduler of a job that runs listens (default: MS_SCHED_HOST and MS_SCHED_PORT)")
      ->type_name("HOST:PORT");
  command->add_option("--logs", flags->logs, "Folder with the logs of that job")->type_name("FOLDER");
  command
      ->add_option("--listen", flags->listen,
                   "Where the page is; a port alone is of this host alone (default: a free one)")
      ->type_name("[HOST:]PORT");
  command->callback([flags, &invocation] { invocation.exit_code = show(*flags); });
}

}  // namespace muster::app
