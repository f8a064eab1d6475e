#include "muster/net/host.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace muster::net {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string link_target(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? std::string() : target.string();
}

// The inodes, as "socket:[123]", of the sockets that listen on a port, from a table like /proc/net/tcp:
// "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode".
void add_listening_sockets(const fs::path& table, std::uint16_t port, std::set<std::string>& sockets) {
  constexpr std::string_view listening = "0A";
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);  // the heading
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >>
        inode;
    if (state == listening && local.ends_with(fmt::format(":{:04X}", port)))
      sockets.insert(fmt::format("socket:[{}]", inode));
  }
}

bool holds_any(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  for (fs::directory_iterator entry(process / "fd", error), end; !error && entry != end;
       entry.increment(error))
    if (sockets.contains(link_target(entry->path()))) return true;
  return false;
}

// The first version of the kernel's struct pidfd_info, which the headers of this system may be too old to
// have.
struct ProcessInformation {
  static constexpr std::uint64_t has_exit_code = 1 << 3;

  std::uint64_t mask = has_exit_code;  // asked for, then what was told
  std::uint64_t cgroup_id = 0;
  std::uint32_t ids[11] = {};
  std::int32_t exit_code = 0;
};
static_assert(sizeof(ProcessInformation) == 64);
constexpr unsigned long get_information = _IOWR(0xFF, 11, ProcessInformation);

}  // namespace

std::optional<int> wait_status(const ProcessDescriptor& process) {
  ProcessInformation information;
  if (::ioctl(process.get(), get_information, &information) != 0) return std::nullopt;
  if ((information.mask & ProcessInformation::has_exit_code) == 0) return std::nullopt;
  return information.exit_code;
}

Result<ProcessDescriptor> open_process(std::int32_t pid) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));  // glibc 2.36 declares it for C only
  if (fd >= 0) return ProcessDescriptor(fd);
  if (errno == ESRCH) return fail(Code::not_found, fmt::format("there is no process {}", pid));
  return fail_errno(fmt::format("cannot watch process {}", pid), errno);
}

std::string process_space() {
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
  const std::string space = link_target("/proc/self/ns/pid");
  return boot.empty() || space.empty() ? std::string() : fmt::format("{}/{}", boot, space);
}

std::string port_owner(std::uint16_t port) {
  std::set<std::string> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) add_listening_sockets(table, port, sockets);
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end && !sockets.empty();
       entry.increment(error)) {
    const std::string pid = entry->path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos || !holds_any(entry->path(), sockets))
      continue;
    return fmt::format("process {} ({})", pid, first_line(entry->path() / "comm"));
  }
  return "another process";
}

}  // namespace muster::net
