#include "muster/launch/secret_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace muster::launch {

Result<net::Descriptor> memory_file(std::string_view contents) {
  net::Descriptor copy(::memfd_create("muster-secret", MFD_CLOEXEC));
  // At first every user may open it, of which the readers would warn, or fail when strict.
  if (!copy || ::fchmod(copy.get(), S_IRUSR | S_IWUSR) != 0)
    return fail_errno("cannot keep a secret in memory", errno);
  const ssize_t written = ::write(copy.get(), contents.data(), contents.size());
  if (written != static_cast<ssize_t>(contents.size()))
    return fail_errno("cannot keep a secret in memory", errno);
  return copy;
}

Result<std::string> handed_on(const std::string& name, std::string_view what) {
  std::error_code error;
  if (std::filesystem::is_regular_file(name, error)) return std::filesystem::absolute(name).string();
  MUSTER_TRY(const net::SmallFile file, net::read_secret(name, what));
  MUSTER_TRY(net::Descriptor copy, memory_file(file.text));
  ::fcntl(copy.get(), F_SETFD, 0);  // not closed by exec
  return fmt::format("fd:{}", copy.release());
}

std::string new_token() {
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", entropy(), entropy(), entropy(), entropy());
}

}  // namespace muster::launch
