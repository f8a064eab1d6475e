#include "muster/launch/presets/families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "muster/launch/hosts/ssh.h"
#include "muster/launch/presets/checks.h"
#include "muster/launch/settings/wrong.h"

namespace muster::launch {
namespace {

using Words = std::vector<std::string>;

constexpr const char* port_variable = "MY_SSHD_PORT";
constexpr const char* interfaces_variable = "MY_MPI_BTL_TCP_IF";
constexpr const char* temporary_variable = "TMPDIR";  // also of what mpirun leaves behind when it is killed

bool is_several(const JobSettings& job) { return job.hosts.value.size() > 1; }

std::string text_of(const Environment& environment, std::string_view name) {
  return environment.get(name).value_or("");
}

// ---- Settings ---------------------------------------------------------------------------------------------

Result<std::uint16_t> sshd_port(const Environment& environment) {
  constexpr int port_max = 65535;
  const std::string text = text_of(environment, port_variable);
  if (text.empty()) return sshd_port_default;
  int port = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc{} || parsed != end || port < 1 || port > port_max)
    return wrong(fmt::format("{}={}: the port of the job's own sshd is a whole number from 1 to {}",
                             port_variable, text, port_max));
  return static_cast<std::uint16_t>(port);
}

Result<> check_interfaces(const Environment& environment) {
  const std::string text = text_of(environment, interfaces_variable);
  const bool is_list = std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("._-,/:").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (is_list) return {};
  return wrong(fmt::format("{}={}: name interfaces, by commas, as in eth0,bond0", interfaces_variable, text));
}

Result<> check(const JobSettings& job, const Environment& environment) {
  MUSTER_TRY_VOID(check_uses(job, {}));
  if (job.reach.value == Reach::ssh)
    return wrong(
        fmt::format("{}: the mpi preset has a launcher on each host. Run the same line on every host, with "
                    "--node-rank 0, 1, ... and --scheduler <address of the first>:<port> in place of it",
                    job.hosts.origin));
  MUSTER_TRY_VOID(sshd_port(environment));
  MUSTER_TRY_VOID(check_interfaces(environment));
  return check_first_address(job);
}

bool needs_rendezvous(const JobSettings& job, const Environment&) {
  return job.reach.value == Reach::each && is_several(job);
}

std::vector<ProgramNeeded> programs(const JobSettings& job) {
  std::vector<ProgramNeeded> needed = {{"mpirun", "Open MPI (on Debian: apt-get install openmpi-bin)"}};
  if (!is_several(job)) return needed;
  needed.push_back({"ssh", "OpenSSH's client (on Debian: apt-get install openssh-client)"});
  needed.push_back({"ssh-keygen", "OpenSSH's client (on Debian: apt-get install openssh-client)"});
  if (job.self.value != 0)
    needed.push_back({"sshd", "OpenSSH's server (on Debian: apt-get install openssh-server)"});
  return needed;
}

// ---- The job's own ssh ------------------------------------------------------------------------------------

std::string in_folder(const PresetInput& input, std::string_view name) {
  return fmt::format("{}/{}", input.run_folder, name);
}

// As the hosts have seen each other; by name as long as none has.
std::string address_of(const PresetInput& input, std::size_t host) {
  if (host < input.addresses.size()) return input.addresses[host];
  const std::string& name = input.job.hosts.value[host].name;
  return name.empty() ? fmt::format("<host {}>", host) : name;
}

std::string key_of(const PresetInput& input, std::size_t host) {
  return host < input.host_keys.size() ? input.host_keys[host] : fmt::format("<key of host {}>", host);
}

// The keys that the first host's ssh trusts: those that the hosts have told each other, and no others.
std::string known_hosts(const PresetInput& input, std::uint16_t port) {
  std::string text;
  for (std::size_t i = 1; i < input.job.hosts.value.size(); ++i)
    text += fmt::format("[{}]:{} {}\n", address_of(input, i), port, key_of(input, i));
  return text;
}

// The others' sshd may start a moment later than ssh, which then asks again, each second.
std::string ssh_config(const PresetInput& input) {
  return fmt::format(
      "BatchMode yes\n"
      "ConnectTimeout 10\n"
      "ConnectionAttempts 60\n"
      "IdentityFile {}\n"
      "IdentitiesOnly yes\n"
      "PreferredAuthentications publickey\n"
      "UserKnownHostsFile {}\n"
      "GlobalKnownHostsFile /dev/null\n"
      "StrictHostKeyChecking yes\n"
      "ServerAliveInterval 5\n"
      "ServerAliveCountMax 3\n"
      "LogLevel ERROR\n",
      in_folder(input, host_key_name), in_folder(input, "known_hosts"));
}

// What mpirun's daemon on this host has to find, as this launcher found it.
std::string session_variables(const PresetInput& input) {
  std::string words = fmt::format("SetEnv {}={}", temporary_variable, input.run_folder);
  for (const char* name : {"PATH", "LD_LIBRARY_PATH"}) {
    const std::string value = text_of(input.environment, name);
    if (!value.empty() && value.find_first_of("\"\\\n") == std::string::npos)
      words += fmt::format(" {}=\"{}\"", name, value);
  }
  return words + "\n";
}

// Only from where the first host's connections come, and only for mpirun's daemon.
std::string authorized_keys(const PresetInput& input) {
  std::string command;
  for (const char c : fmt::format("{} mpi-daemon", shell_word(input.own_program)))
    command += c == '"' ? std::string("\\\"") : std::string(1, c);
  std::vector<std::string> sources = input.first_sources;
  if (sources.empty()) sources.push_back(address_of(input, 0));
  return fmt::format("restrict,from=\"{}\",command=\"{}\" {}\n", fmt::join(sources, ","), command,
                     key_of(input, 0));
}

// Only the job's key opens it, and only for this user. StrictModes would look at the folders above this one,
// of which /tmp belongs to all users: ours is for this user alone, under a name that cannot be guessed.
std::string sshd_config(const PresetInput& input, std::uint16_t port) {
  const std::string listening =
      input.own_address.empty() ? "" : fmt::format("ListenAddress {}\n", input.own_address);
  return fmt::format(
             "Port {}\n"
             "{}HostKey {}\n"
             "PidFile none\n"
             "AuthorizedKeysFile {}\n"
             "StrictModes no\n"
             "AllowUsers {}\n"
             "AuthenticationMethods publickey\n"
             "PasswordAuthentication no\n"
             "KbdInteractiveAuthentication no\n"
             "PermitRootLogin prohibit-password\n"
             "UsePAM no\n"
             "X11Forwarding no\n"
             "AllowTcpForwarding no\n"
             "PrintMotd no\n"
             "UseDNS no\n"
             "ClientAliveInterval 5\n"
             "ClientAliveCountMax 3\n",
             port, listening, in_folder(input, host_key_name), in_folder(input, "authorized_keys"),
             input.user) +
         session_variables(input);
}

LaunchSpec waiting_host(const PresetInput& input, std::uint16_t port) {
  const auto sshd = input.programs.find("sshd");
  LaunchSpec spec{.waits_for_release = true};
  spec.files = {
      {in_folder(input, "authorized_keys"), authorized_keys(input)},
      {in_folder(input, "sshd_config"), sshd_config(input, port)},
  };
  // By its whole path: it starts itself again for each connection.
  spec.processes.push_back({.kind = ProcessSpec::Kind::service,
                            .role = "sshd",
                            .label = "sshd",
                            .arguments = {sshd == input.programs.end() ? "sshd" : sshd->second, "-D", "-e",
                                          "-f", in_folder(input, "sshd_config")},
                            .log_name = log_name_of("sshd")});
  return spec;
}

// ---- mpirun -----------------------------------------------------------------------------------------------

std::string hostfile(const PresetInput& input) {
  const auto& hosts = input.job.hosts.value;
  if (hosts.size() == 1) return fmt::format("localhost slots={}\n", hosts.front().slots);
  std::string text;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    text += fmt::format("{} slots={}\n", address_of(input, i), hosts[i].slots);
  return text;
}

bool is_name(std::string_view text) {
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
  return !text.empty() && is_letter(static_cast<unsigned char>(text.front())) &&
         std::ranges::all_of(text, [&](unsigned char c) { return is_letter(c) || std::isdigit(c) != 0; });
}

std::vector<std::string> travelling(const Environment& environment) {
  std::vector<std::string> names;
  for (const std::string& name : environment.names(""))
    if (is_name(name) && travels(name, text_of(environment, name))) names.push_back(name);
  return names;
}

// The interfaces to use: the user's choice, else those by which the hosts reach each other.
std::string interfaces(const PresetInput& input) {
  const std::string chosen = text_of(input.environment, interfaces_variable);
  if (!chosen.empty()) return chosen;
  std::set<std::string> names(input.interfaces.begin(), input.interfaces.end());
  names.erase("");
  return fmt::format("{}", fmt::join(names, ","));
}

// NCCL and Horovod, as run_mpi.sh sets them, unless the user has.
Words library_variables(const PresetInput& input) {
  Words words;
  const auto add = [&](const std::string& name, const std::string& value) {
    const bool is_chosen = input.environment.get(name) || input.job.environment.contains(name);
    if (!is_chosen && value.empty()) return;
    words.insert(words.end(), {"-x", is_chosen ? name : fmt::format("{}={}", name, value)});
  };
  const std::string used = interfaces(input);
  const bool is_v6 = !input.addresses.empty() && net::is_ip_v6(input.addresses.front());
  add("NCCL_DEBUG", "INFO");
  add("NCCL_SOCKET_IFNAME", used);
  add("NCCL_SOCKET_FAMILY", used.empty() ? "" : is_v6 ? "AF_INET6" : "AF_INET");
  add("HOROVOD_MPI_THREADS_DISABLE", "1");
  add("LD_LIBRARY_PATH", "");
  return words;
}

// One interface that all hosts have serves MPI itself as well; where their names differ it finds its way.
Words interface_options(const PresetInput& input) {
  const std::string used = interfaces(input);
  const bool is_chosen = !text_of(input.environment, interfaces_variable).empty();
  if (used.empty() || (!is_chosen && used.find(',') != std::string::npos)) return {};
  return {"-mca", "btl_tcp_if_include", used};
}

// On several hosts mpirun would hand the file's name on to processes that do not have the file, and complain.
// The names go there by themselves: what they stand for travels from mpirun's own variables.
Words own_variables(const PresetInput& input, LaunchSpec& spec) {
  const std::vector<std::string> names = travelling(input.environment);
  Words words;
  if (!is_several(input.job)) {
    std::string text;
    for (const std::string& name : names) text += fmt::format("-x {}\n", name);
    spec.files.push_back({in_folder(input, "env_for_user_process"), text});
    words = {"-tune", spec.files.back().path};
  } else {
    for (const std::string& name : names) words.insert(words.end(), {"-x", name});
  }
  for (const auto& [name, setting] : input.job.environment)
    if (!std::ranges::binary_search(names, name)) words.insert(words.end(), {"-x", name});
  return words;
}

LaunchSpec first_host(const PresetInput& input, std::uint16_t port) {
  const JobSettings& job = input.job;
  LaunchSpec spec;
  spec.files.push_back({in_folder(input, "hostfile"), hostfile(input)});
  Words words = {"mpirun"};
  const auto add = [&](const Words& more) { words.insert(words.end(), more.begin(), more.end()); };
  if (input.is_root) add({"--allow-run-as-root"});
  add({"-np", std::to_string(job.slot_count()), "-hostfile", spec.files.back().path});
  if (is_several(job)) {
    spec.files.push_back({in_folder(input, "known_hosts"), known_hosts(input, port)});
    spec.files.push_back({in_folder(input, "ssh_config"), ssh_config(input)});
    add({"-mca", "plm_rsh_args", fmt::format("-F {} -p {}", spec.files.back().path, port)});
  }
  const Words handed_on = own_variables(input, spec);
  add(handed_on);
  add({"-bind-to", "none", "-map-by", "slot"});
  add(library_variables(input));
  add({"-mca", "pml", "ob1", "-mca", "btl", "^openib", "-mca", "plm_rsh_no_tree_spawn", "true"});
  add(interface_options(input));
  add(job.argv());
  ProcessSpec process{
      .role = "mpirun", .label = "mpirun", .arguments = words, .log_name = log_name_of("mpirun")};
  process.environment[temporary_variable] = input.run_folder;
  add_own_variables(process.environment, job);
  spec.processes.push_back(std::move(process));
  return spec;
}

Result<LaunchSpec> spec(const PresetInput& input) {
  MUSTER_TRY(const std::uint16_t port, sshd_port(input.environment));
  // ssh and mpirun read the names of their files in words of their own.
  if (is_several(input.job) && input.run_folder.find_first_of(" \t\n\"'\\%") != std::string::npos)
    return wrong(
        fmt::format("the folder '{}' for temporary files has a name that ssh cannot be given: set "
                    "TMPDIR to one without spaces, quotes and percent signs",
                    input.run_folder));
  return input.job.self.value == 0 ? first_host(input, port) : waiting_host(input, port);
}

}  // namespace

bool travels(std::string_view name, std::string_view value) {
  if (value.empty() || value.ends_with('=')) return false;
  constexpr std::array beginnings = {"MA_", "S3_", "PATH", "VC_WORKER_", "SCC", "CRED"};
  constexpr std::string_view anywhere = "SHARED_";
  return std::ranges::any_of(beginnings, [&](const char* begin) { return name.starts_with(begin); }) ||
         name.find(anywhere) != std::string_view::npos || value.find(anywhere) != std::string_view::npos;
}

const Preset mpi_preset = {
    .name = "mpi",
    .summary = "mpirun starts the script, for MPI, Horovod and MindSpore on GPUs",
    .check = check,
    .ports_wanted = no_ports,
    .needs_rendezvous = needs_rendezvous,
    .spec = spec,
    .programs = programs,
    .needs_host_key = needs_rendezvous,
    .needs_secret = needs_rendezvous,
    .openness = "any process that reaches the first host's port can run programs as you on all of them",
};

}  // namespace muster::launch
