#include "muster/launch/hosts/programs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <sstream>

#include "muster/launch/process.h"

namespace muster::launch {
namespace {

std::string find_program(const std::string& name, const Environment& environment) {
  std::istringstream folders(environment.get("PATH").value_or("") + ":/usr/local/sbin:/usr/sbin:/sbin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = folder + '/' + name;
    struct stat found {};
    if (folder.starts_with('/') && ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
        ::access(path.c_str(), X_OK) == 0)
      return path;
  }
  return {};
}

// What it has written until it closed its output; it is killed when that takes too long.
Result<std::string> output_of(ChildProcess& child, std::string_view name, const Clock& clock) {
  constexpr Duration limit = std::chrono::seconds(20);
  constexpr std::size_t text_max = 4096;
  const TimePoint deadline = clock.now() + limit;
  std::string text;
  std::array<char, 1024> bytes;
  while (true) {
    std::array polled = {pollfd{.fd = child.error.get(), .events = POLLIN, .revents = 0}, pollfd{}};
    const auto ready = net::poll_until(polled, {.deadline = deadline});
    if (!ready) return fail(ready.error());
    if (*ready == net::Readiness::deadline) {
      ::kill(child.pid, SIGKILL);
      return fail(Code::timeout,
                  fmt::format("{} has not ended after {} s", name, limit / std::chrono::seconds(1)));
    }
    const ssize_t size = ::read(child.error.get(), bytes.data(), bytes.size());
    if (size == 0) return text;
    if (size > 0 && text.size() < text_max) text.append(bytes.data(), static_cast<std::size_t>(size));
    if (size < 0 && errno != EAGAIN && errno != EINTR)
      return fail_errno(fmt::format("cannot read from {}", name), errno);
  }
}

Result<> run_to_end(const ProcessSpec& spec, std::string_view name, const Clock& clock) {
  MUSTER_TRY(ChildProcess child, start_process(spec));
  const auto text = output_of(child, name, clock);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!text) return fail(text.error());
  if (exit_code_of(status) == 0) return {};
  return fail(Code::io, fmt::format("{} {}: {}", name, describe_exit(status), *text));
}

}  // namespace

Result<std::map<std::string, std::string>> find_programs(const std::vector<ProgramNeeded>& needed,
                                                         const Environment& environment) {
  std::map<std::string, std::string> found;
  for (const ProgramNeeded& program : needed) {
    std::string path = find_program(program.name, environment);
    if (path.empty())
      return fail(Code::not_found,
                  fmt::format("'{}' is not on this host: install {}, or add its folder to PATH", program.name,
                              program.package));
    found[program.name] = std::move(path);
  }
  return found;
}

Result<std::string> user_name() {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> bytes;
  const int error = ::getpwuid_r(::geteuid(), &entry, bytes.data(), bytes.size(), &found);
  if (found != nullptr) return std::string(found->pw_name);
  return fail(
      Code::not_found,
      fmt::format(
          "the user of this process, {}, has no name on this host ({}), and ssh does not work for a user "
          "without one: add the user to /etc/passwd",
          ::geteuid(), error == 0 ? "it is not in /etc/passwd" : std::strerror(error)));
}

Result<std::string> make_host_key(const std::string& folder, const std::string& ssh_keygen,
                                  const Clock& clock) {
  const std::string path = fmt::format("{}/{}", folder, host_key_name);
  MUSTER_TRY_VOID(
      run_to_end({.arguments = {ssh_keygen, "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path}},
                 "ssh-keygen", clock));
  constexpr std::size_t key_bytes_max = 4096;
  MUSTER_TRY(net::SmallFile file, net::read_small_file(path + ".pub", key_bytes_max));
  std::string key = std::move(file.text);
  key.erase(key.find_last_not_of(" \n") + 1);
  return key;
}

Result<> make_sshd_folder() {
  const char* const folder = "/run/sshd";
  if (::geteuid() != 0 || ::mkdir(folder, 0755) == 0 || errno == EEXIST) return {};
  return fail_errno(fmt::format("cannot make the folder '{}', which an sshd of root's needs", folder), errno);
}

}  // namespace muster::launch
