#include "muster/launch/secret_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
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
  // At first every user may open it, of which the children would warn, or fail when strict.
  if (!copy || ::fchmod(copy.get(), S_IRUSR | S_IWUSR) != 0)
    return fail_errno("cannot keep a secret in memory", errno);
  const ssize_t written = ::write(copy.get(), file.text.data(), file.text.size());
  if (written != static_cast<ssize_t>(file.text.size()))
    return fail_errno("cannot keep a secret in memory", errno);
  return fmt::format("fd:{}", copy.release());
}

}  // namespace muster::launch
