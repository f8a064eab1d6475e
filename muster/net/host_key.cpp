#include "muster/net/host.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "muster/base/base.h"

namespace muster::net {

Result<std::string> host_key(const Environment& environment) {
  constexpr std::size_t key_limit = 128;
  if (auto chosen = environment.get("MUSTER_HOST_KEY"); chosen && !chosen->empty()) {
    if (chosen->size() > key_limit)
      return fail(Code::invalid_argument, fmt::format("MUSTER_HOST_KEY has {} characters; the limit is {}",
                                                      chosen->size(), key_limit));
    return *std::move(chosen);
  }
  MUSTER_TRY(const auto bytes, real_files().read("/proc/sys/kernel/random/boot_id"));
  std::string boot_id(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!boot_id.empty() && boot_id.back() == '\n') boot_id.pop_back();
  struct stat status {};
  if (::stat("/proc/self/ns/net", &status) != 0) return fail_errno("cannot read /proc/self/ns/net", errno);
  return fmt::format("{}-{}", boot_id, status.st_ino);
}

std::string host_name() {
  constexpr std::size_t name_limit = 64;  // Linux'
  char name[name_limit + 1] = {};
  return ::gethostname(name, name_limit) == 0 ? name : "";
}

}  // namespace muster::net
