#include "muster/launch/secret_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "muster/net/net.h"

namespace muster::launch {

Result<std::string> handed_on(const std::string& name, std::string_view what) {
  std::error_code error;
  if (std::filesystem::is_regular_file(name, error)) return std::filesystem::absolute(name).string();
  MUSTER_TRY(const net::SmallFile file, net::read_secret(name, what));
  net::Descriptor copy(::memfd_create("muster-secret", 0));  // not closed by exec
  if (!copy) return fail_errno("cannot keep a secret in memory", errno);
  const ssize_t written = ::write(copy.get(), file.text.data(), file.text.size());
  if (written != static_cast<ssize_t>(file.text.size()))
    return fail_errno("cannot keep a secret in memory", errno);
  return fmt::format("fd:{}", copy.release());
}

}  // namespace muster::launch
