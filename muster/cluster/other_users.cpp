#include "muster/cluster/other_users.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

namespace muster::cluster {
namespace {

namespace fs = std::filesystem;

constexpr uid_t first_person = 1000;  // below are the system's own accounts

// "pid (name) state parent ...". The name may hold anything.
std::optional<OwnedProcess> read_process(const fs::path& folder) {
  OwnedProcess process;
  const std::string name = folder.filename().string();
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process.pid);
  struct stat status {};
  if (error != std::errc{} || end != name.data() + name.size() || ::stat(folder.c_str(), &status) != 0)
    return std::nullopt;
  process.user = status.st_uid;
  std::ifstream file(folder / "stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text.size()) return std::nullopt;
  std::from_chars(text.data() + name_end + 4, text.data() + text.size(), process.parent);
  return process;
}

// An account with a shell: not that of a daemon, and not a number that some container happens to use.
std::optional<std::string> name_with_shell(uid_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> bytes;
  ::getpwuid_r(user, &entry, bytes.data(), bytes.size(), &found);
  if (found == nullptr) return std::nullopt;
  const std::string_view shell = found->pw_shell;
  if (shell.ends_with("/nologin") || shell.ends_with("/false")) return std::nullopt;
  return std::string(found->pw_name);
}

}  // namespace

std::optional<std::string> other_person(
    const std::vector<OwnedProcess>& processes, pid_t self,
    const std::function<std::optional<std::string>(uid_t)>& name_of_person) {
  std::map<pid_t, OwnedProcess> by_pid;
  for (const OwnedProcess& process : processes) by_pid[process.pid] = process;
  std::set<uid_t> asked;  // or the same person
  std::size_t steps = 0;  // processes come and go while they are read: no circle may hold us
  for (auto at = by_pid.find(self); at != by_pid.end() && ++steps <= by_pid.size();
       at = by_pid.find(at->second.parent))
    asked.insert(at->second.user);
  for (const OwnedProcess& process : processes) {
    if (process.user < first_person || !asked.insert(process.user).second) continue;
    if (auto name = name_of_person(process.user)) return name;
  }
  return std::nullopt;
}

std::optional<std::string> other_person_here() {
  std::vector<OwnedProcess> processes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error))
    if (const auto process = read_process(entry.path())) processes.push_back(*process);
  return other_person(processes, ::getpid(), name_with_shell);
}

}  // namespace muster::cluster
