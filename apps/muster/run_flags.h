// The command line of `muster run`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "muster/launch/launch.h"

namespace muster::app {

struct RunFlags {
  using Text = std::optional<std::string>;
  using Number = std::optional<std::int64_t>;

  Text preset, roles, hosts, hostfile, ssh, scheduler, style, rank_table, log_folder, tail, preload, restart,
      metrics_port, metrics_file, profile, dashboard;
  Text tls_config, client_password_file, server_password_file, token_file;
  Number slots, servers, host_count, host_index, port, max_restarts;
  std::vector<std::string> environment;  // NAME=VALUE
  std::string job_file;
  bool is_open = false;
  bool is_dry = false;
  bool explains = false;
  std::vector<std::string> command;
};

void add_run_flags(CLI::App& command, RunFlags& flags);

// What the flags say, with their names as origins. Reads the hostfile.
Result<launch::PartialSettings> settings_of(const RunFlags& flags);

}  // namespace muster::app
