#include "muster/launch/runs/run_description.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "muster/base/base.h"
#include "muster/net/net.h"

namespace muster::launch {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What changes how a training computes, beside its own code.
constexpr std::array variable_beginnings = {
    "MS_",    "MUSTER_", "OMP_",    "GOMP_",  "KMP_",  "MKL_",        "OPENBLAS_", "ONEDNN_",
    "DNNL_",  "CUDA_",   "NCCL_",   "TORCH_", "TF_",   "ASCEND_",     "HCCL_",     "SLURM_",
    "PYTHON", "GLIBC_",  "MALLOC_", "LD_",    "CONDA", "VIRTUAL_ENV", "UCX_"};
constexpr std::array secret_words = {"SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY"};
constexpr std::size_t packages_max = 5000;

json settings_json(const std::vector<JobFileEntry>& entries, bool are_variables) {
  json made = json::object();
  for (const JobFileEntry& entry : entries)
    if (entry.is_variable == are_variables)
      made[entry.key] = {{"value", entry.value}, {"origin", entry.origin}};
  return made;
}

json environment_json(const Environment& environment) {
  json made = json::object();
  for (const char* beginning : variable_beginnings)
    for (const std::string& name : environment.names(beginning))
      if (!names_secret(name)) made[name] = environment.get(name).value_or("");
  return made;
}

// "Intel(R) Xeon(R) ..."; empty where the kernel does not tell.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos)
      return printable(line.substr(line.find(": ") + 2));
  return {};
}

json host_json() {
  utsname system{};
  const bool is_known = ::uname(&system) == 0;
  return {
      {"name", net::host_name()},
      {"processor", processor_name()},
      {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
      {"memory_bytes", static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE)},
      {"system", is_known ? fmt::format("{} {} {}", system.sysname, system.release, system.machine) : ""}};
}

// Where a Python without a folder is found.
std::string path_of_program(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos) return name;
  std::istringstream folders(environment.get("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + '/' + name).c_str(), X_OK) == 0) return folder + '/' + name;
  return name;
}

std::string version_of_environment(const fs::path& prefix) {
  std::ifstream file(prefix / "pyvenv.cfg");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("version") && line.find("= ") != std::string::npos)
      return printable(line.substr(line.find("= ") + 2));
  return {};
}

// "numpy-1.26.4.dist-info", "PyYAML-6.0.egg-info", "six-1.16.0-py3.11.egg-info".
void add_package(json& packages, std::string name) {
  const bool is_package = name.ends_with(".dist-info") || name.ends_with(".egg-info");
  if (!is_package || packages.size() >= packages_max) return;
  name.erase(name.rfind('.'));
  const auto dash = name.find('-');
  if (dash == std::string::npos) return;
  const std::string version = name.substr(dash + 1, name.find("-py", dash + 1) - dash - 1);
  name = name.substr(0, dash);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  packages[printable(name)] = printable(version);
}

json hosts_json(const JobSettings& job) {
  json made = json::array();
  for (const HostSlots& host : job.hosts.value)
    made.push_back({{"name", host.name.empty() ? net::host_name() : host.name}, {"slots", host.slots}});
  return made;
}

std::string script_name(const std::vector<std::string>& command) {
  if (command.front() == module_flag && command.size() > 1) return command[1];
  const auto script = std::ranges::find_if(command, is_python_script);
  return script != command.end() ? *script : command.front();
}

// Empty: it is no file of a script's size, as of a module.
std::string hash_of_script(const std::string& name) {
  constexpr std::uintmax_t size_bytes_max = 16 << 20;
  std::error_code error;
  if (!fs::is_regular_file(name, error) || fs::file_size(name, error) > size_bytes_max) return {};
  std::ifstream file(name, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return fmt::format("{:016x}", hash_text(text));
}

}  // namespace

bool names_secret(std::string_view name) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  // The names of files are none, and Muster's own settings have no others.
  if (upper.starts_with("MUSTER_") || upper.ends_with("_FILE")) return false;
  return std::ranges::any_of(secret_words,
                             [&](const char* word) { return upper.find(word) != std::string::npos; });
}

std::vector<JobFileEntry> without_secrets(std::vector<JobFileEntry> entries) {
  std::erase_if(entries,
                [](const JobFileEntry& entry) { return entry.is_variable && names_secret(entry.key); });
  return entries;
}

json python_packages(const std::string& python, const Environment& environment) {
  const fs::path prefix = fs::path(path_of_program(python, environment)).parent_path().parent_path();
  json packages = json::object();
  std::error_code ignored;
  for (const char* libraries : {"lib", "lib64"})
    for (const auto& version : fs::directory_iterator(prefix / libraries, ignored)) {
      if (!version.path().filename().string().starts_with("python3")) continue;
      for (const char* place : {"site-packages", "dist-packages"})
        for (const auto& entry : fs::directory_iterator(version.path() / place, ignored))
          add_package(packages, entry.path().filename().string());
    }
  return packages;
}

std::string folder_of_code(const std::vector<std::string>& command) {
  if (command.front() == module_flag) return ".";
  const std::string folder = fs::path(script_name(command)).parent_path().string();
  return folder.empty() ? "." : folder;
}

json describe_run(const JobSettings& job, const Environment& environment, double time) {
  const auto entries = without_secrets(job_file_entries(job));
  const std::string python = path_of_program(job.python, environment);
  std::error_code ignored;
  json made = {{"version", run_format},
               {"muster", MUSTER_VERSION},
               {"began", time},
               {"command", job.command.value},
               {"script", script_name(job.command.value)},
               {"script_hash", hash_of_script(script_name(job.command.value))},
               {"folder", fs::current_path(ignored).string()},
               {"preset", job.preset.value},
               {"ranks", job.slot_count()},
               {"servers", job.servers.value},
               {"hosts", hosts_json(job)},
               {"host", host_json()},
               {"settings", settings_json(entries, false)},
               {"variables", settings_json(entries, true)},
               {"environment", environment_json(environment)},
               {"python",
                {{"program", python},
                 {"version", version_of_environment(fs::path(python).parent_path().parent_path())},
                 {"packages", python_packages(python, environment)}}}};
  const auto metrics = job.environment.find("MUSTER_METRICS_FILE");
  if (metrics != job.environment.end()) made["metrics_file"] = metrics->second.value;
  return made;
}

}  // namespace muster::launch
