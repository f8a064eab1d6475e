// A preset: what one family of scripts expects of the launcher, as pure functions. They start nothing, open
// nothing and ask no process.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/launch_spec.h"
#include "muster/launch/settings/job_settings.h"
#include "muster/net/net.h"

namespace muster::launch {

// Free ports that a job needs on its hosts.
struct PortsWanted {
  std::int64_t count = 0;
  std::uint16_t min = 0, max = 0;  // both 0: whatever the system gives
  bool only_first = false;         // on the first host alone
};

struct PresetInput {
  const JobSettings& job;
  const Environment& environment;  // of the launcher, whose variables the processes inherit
  // ports[i]: of host i, as many as were wanted. Empty where none were.
  std::vector<std::vector<std::uint16_t>> ports = {};
  // A folder of this user alone, for files; removed at the end.
  std::string run_folder = {};
  std::string log_folder = {};
  std::string rank_table = {};  // what is in the file of that name
  std::string token = {};       // that the launcher hands to the processes; empty: it does not
  // Of each host, where they have met: its address, its interface towards the others, its own sshd's public
  // key.
  std::vector<std::string> addresses = {};
  std::vector<std::string> interfaces = {};
  std::vector<std::string> host_keys = {};
  // Where the first host's connections to the others come from, and where it finds this one. Empty where
  // they did not meet; the latter also where the address is none of this host's, behind a NAT.
  std::vector<std::string> first_sources = {};
  std::string own_address = {};
  // Of this host: where the programs are that the preset named, and who starts them.
  std::map<std::string, std::string> programs = {};
  std::string own_program = {};  // the launcher's file
  std::string user = {};
  bool is_root = false;
};

struct ProgramNeeded {
  std::string name = {};
  std::string package = {};  // what to install where it is missing, for people
};

inline constexpr std::string_view host_key_name = "host_key";

struct Preset {
  std::string_view name;
  std::string_view summary;  // one line for --help
  // What is wrong with the settings for this preset, found before anything is opened.
  Result<> (*check)(const JobSettings& job, const Environment& environment);
  PortsWanted (*ports_wanted)(const JobSettings& job, const Environment& environment);
  // Whether hosts that run the same line each have to tell each other something before they can start.
  bool (*needs_rendezvous)(const JobSettings& job, const Environment& environment);
  // The processes of host job.self.
  Result<LaunchSpec> (*spec)(const PresetInput& input);

  // What has to be installed on this host. Null: nothing.
  std::vector<ProgramNeeded> (*programs)(const JobSettings& job) = nullptr;
  // Whether each host needs a key of ssh, whose public half the hosts tell each other when they meet. Its
  // private half is host_key_name in the folder of this run. Null: no.
  bool (*needs_host_key)(const JobSettings& job, const Environment& environment) = nullptr;
  // Whether Muster keeps unauthorized peers out: by certificates or a token, unless the job is to be open,
  // and `openness` is what that means. Null: no, the processes speak among themselves as their own framework
  // does.
  bool (*needs_secret)(const JobSettings& job, const Environment& environment) = nullptr;
  std::string_view openness = {};
};

std::span<const Preset> presets();
// Errors name the choices.
Result<const Preset*> find_preset(const Setting<std::string>& name);

// ---- What presets share -----------------------------------------------------------------------------------

PortsWanted no_ports(const JobSettings& job, const Environment& environment);
bool never_meets(const JobSettings& job, const Environment& environment);

// The address that all hosts find the first one at: what --scheduler names, else the first host's name, else
// loopback where the job has one host. The port is that of --scheduler or --port, else of `ports`, else
// `default_port`. check_first_address finds out before whether there is one.
net::HostPort first_address(const PresetInput& input, std::uint16_t default_port);
Result<> check_first_address(const JobSettings& job);
// One free port on the first host where neither --scheduler nor --port names one, and this launcher knows it.
PortsWanted port_of_first(const JobSettings& job, const Environment& environment);

// Variables that help every Python process under a launcher, unless the user or the job chose: lines are
// written at once, and threads of OpenMP and OpenBLAS leave the cores to each other.
void add_python_variables(std::map<std::string, std::string>& variables, const PresetInput& input);
// Those of --env and of the job file: they win over all others.
void add_own_variables(std::map<std::string, std::string>& variables, const JobSettings& job);

// "worker 2" and "worker_2.log".
std::string log_name_of(std::string_view label);

}  // namespace muster::launch
