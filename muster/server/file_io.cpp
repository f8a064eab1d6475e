#include "muster/server/file_io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "muster/net/net.h"

namespace muster::server {

Result<std::size_t> read_at(int file, std::uint64_t offset, std::span<std::byte> bytes,
                            const std::string& path) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        ::pread(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(fmt::format("cannot read '{}'", path), errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<> write_at(int file, std::uint64_t offset, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail_errno(fmt::format("cannot write '{}'", path), errno);
    offset += static_cast<std::uint64_t>(wrote);
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return {};
}

Result<> sync_folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const net::ProcessDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened && ::fsync(opened.get()) == 0) return {};
  return fail_errno(fmt::format("cannot bring the folder '{}' to the disk", folder), errno);
}

Result<> sync_file(const std::string& path) {
  const net::ProcessDescriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened && ::fsync(opened.get()) == 0) return {};
  return fail_errno(fmt::format("cannot bring '{}' to the disk", path), errno);
}

}  // namespace muster::server
