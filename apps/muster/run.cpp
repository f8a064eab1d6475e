// muster run: scheduler and workers of one job on this host.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "muster/launch/launch.h"
#include "muster/net/net.h"
#include "places.h"

namespace muster::app {
namespace {

struct RunFlags {
  launch::LocalFlags local;
  std::string log_folder;
};

int refuse(const std::string& message) {
  fmt::print(stderr, "muster run: {}\n", message);
  return exit_code_usage;
}

Result<std::string> log_folder(const std::string& wanted) {
  std::error_code error;
  if (wanted.empty()) {
    std::string made = make_log_folder("muster-logs");
    if (!made.empty()) return made;
  } else if (std::filesystem::create_directories(wanted, error); !error) {
    return wanted;
  }
  return fail(Code::io, fmt::format("cannot make the folder '{}' for the logs: name another with --log-dir",
                                    wanted.empty() ? "muster-logs" : wanted));
}

// Files of secrets as every process can read them: those of the flags, or of this process's own variables.
Result<> hand_on_secrets(launch::LocalFlags& local) {
  struct Secret {
    std::string& name;
    const char* variable;
    const char* flag;
    const char* what;
  };
  for (const Secret& secret : {Secret{local.client_password_file, "MUSTER_TLS_CLIENT_PASSWORD_FILE",
                                      "--client-password-file", "a password"},
                               Secret{local.server_password_file, "MUSTER_TLS_SERVER_PASSWORD_FILE",
                                      "--server-password-file", "a password"},
                               Secret{local.token_file, "MUSTER_TOKEN_FILE", "--token-file", "a token"}}) {
    const bool is_flag = !secret.name.empty();
    if (!is_flag) secret.name = real_environment().get(secret.variable).value_or("");
    if (secret.name.empty()) continue;
    auto name = launch::handed_on(secret.name, secret.what);
    if (!name)
      return fail(name.error().code, fmt::format("{} {}: {}", is_flag ? secret.flag : secret.variable,
                                                 secret.name, name.error().message));
    secret.name = *std::move(name);
  }
  return {};
}

// The configuration's name in a folder that may be another than the processes'.
Result<> find_tls_config(launch::LocalFlags& local) {
  if (local.tls_config.empty()) return {};
  std::error_code error;
  if (!std::filesystem::exists(local.tls_config, error))
    return fail(Code::not_found, fmt::format("--tls-config {}: there is no such file", local.tls_config));
  local.tls_config = std::filesystem::absolute(local.tls_config).string();
  return {};
}

int run(RunFlags flags, const std::string& program) {
  launch::LocalFlags& local = flags.local;
  if (const auto complete = complete_command(local.command, program); !complete)
    return refuse(complete.error().message);
  const auto needs_port = launch::needs_port(local);
  if (!needs_port) return refuse(needs_port.error().message);

  if (const auto found = find_tls_config(local); !found) return refuse(found.error().message);
  if (const auto secrets = hand_on_secrets(local); !secrets) return refuse(secrets.error().message);

  // Held until the job has ended, so that nobody else is given the port before the scheduler listens on it.
  std::optional<net::PortReservation> reservation;
  if (*needs_port) {
    auto opened = net::PortReservation::open("127.0.0.1");
    if (!opened) return refuse(opened.error().message);
    reservation = std::move(*opened);
  }
  const auto logs = log_folder(flags.log_folder);
  if (!logs) return refuse(logs.error().message);
  local.recovery_folder = std::filesystem::absolute(*logs) / "recovery";
  const auto spec = launch::local_spec(local, real_environment(), reservation ? reservation->port() : 0);
  if (!spec) return refuse(spec.error().message);

  const auto& variables = spec->processes.front().environment;
  fmt::print(stderr, "muster: starting {} processes, scheduler at {}:{}, logs in {}\n",
             spec->processes.size(), variables.at("MS_SCHED_HOST"), variables.at("MS_SCHED_PORT"), *logs);
  const std::string own_folder = real_environment().get("MS_RECOVERY_PATH").value_or("");
  return launch::keep([&](int keeper_fd) {
    return launch::supervise(*spec,
                             {.log_folder = *logs,
                              .restarts_max = static_cast<std::size_t>(local.max_restarts),
                              .recovery_folder = own_folder.empty() ? local.recovery_folder : own_folder,
                              .keeper_fd = keeper_fd});
  });
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<RunFlags>();
  launch::LocalFlags& local = flags->local;
  CLI::App* command =
      app.add_subcommand("run", "Start a scheduler and workers on this host and watch over them");
  command->footer(
      "\nAfter the options come the script or program and its own arguments, which are passed on as they "
      "are:\n"
      "  muster run -n 4 train.py --epochs 10\n"
      "  muster run -n 2 ./train\n"
      "A script ends in .py; it is run by the Python of the environment that `muster` was installed into.\n\n"
      "On several hosts, run the same line on each, with its own rank:\n"
      "  muster run -n 4 --nnodes 2 --node-rank 0 --scheduler 10.0.0.1:8118 train.py    (on 10.0.0.1)\n"
      "  muster run -n 4 --nnodes 2 --node-rank 1 --scheduler 10.0.0.1:8118 train.py\n\n"
      "Every line of output begins with who wrote it. When a process fails, the others are ended, its last\n"
      "lines are repeated and its exit code is the job's. Ctrl-C ends the job; a second one kills it.\n\n"
      "With --max-restarts a process that dies or fails is started again instead, at once the first time "
      "and\n"
      "after 1, 2, 4 ... 30 s when the job gets no further. It sets MS_ENABLE_RECOVERY=1, and "
      "MS_RECOVERY_PATH\n"
      "to <log folder>/recovery unless you set it. The job ends when one process has the same failure three\n"
      "times without a newer recovery point in between, or no restart left.");
  command->add_option("-n,--workers", local.workers, "Workers on this host")->type_name("NUMBER");
  command->add_option("--servers", local.servers, "Parameter servers of the job (default: 0)")
      ->type_name("NUMBER");
  command->add_option("--port", local.port, "Port of the scheduler (default: a free one)")->type_name("PORT");
  command
      ->add_option("--log-dir", flags->log_folder,
                   "Folder for one log of each process (default: muster-logs/<time>)")
      ->type_name("FOLDER");
  command->add_option("--nnodes", local.node_count, "Hosts that take part (default: 1)")->type_name("NUMBER");
  command->add_option("--node-rank", local.node_rank, "Which of them this is: 0 runs the scheduler")
      ->type_name("NUMBER");
  command->add_option("--scheduler", local.scheduler, "Where the scheduler of several hosts listens")
      ->type_name("HOST:PORT");
  command
      ->add_option("--max-restarts", local.max_restarts,
                   "How often each process that dies is started again (default: 0)")
      ->type_name("NUMBER");
  const auto add_file = [&](const char* flag, std::string& file, const char* description) {
    command->add_option(flag, file, description)->type_name("FILE");
  };
  add_file("--tls-config", local.tls_config, "Encrypt with the certificates that this JSON file names");
  add_file("--client-password-file", local.client_password_file,
           "Holds the password of client_cert_path; fd:N reads a descriptor");
  add_file("--server-password-file", local.server_password_file, "The same of server_cert_path");
  add_file("--token-file", local.token_file, "Keep strangers out with this secret, without certificates");
  command->prefix_command();
  command->callback([command, flags, &invocation] {
    flags->local.command = command->remaining();
    invocation.exit_code = run(*flags, invocation.program);
  });
}

}  // namespace muster::app
