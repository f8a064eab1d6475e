#include "muster/telemetry/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace muster::telemetry {
namespace {

tl::unexpected<Error> failed(const char* what, const std::string& path) {
  return fail(Code::io, fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno)));
}

// Pipes, terminals and /dev/full keep nothing: who read them would wait, or never come to an end.
bool keeps_nothing(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

}  // namespace

AppendFile::~AppendFile() {
  if (is_open()) ::close(descriptor_);
}
AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Result<AppendFile> AppendFile::open(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error)
    return fail(Code::io, fmt::format("cannot make the folder '{}': {}", folder.string(), error.message()));
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return failed("open", path);
  return AppendFile(path, descriptor);
}

Result<AppendFile> AppendFile::open_behind(
    const std::string& path, const std::function<std::size_t(std::span<const std::byte>)>& whole) {
  if (keeps_nothing(path)) return open(path);
  const auto contents = real_files().read(path);
  if (!contents && contents.error().code != Code::not_found) return fail(contents.error());
  MUSTER_TRY(AppendFile file, open(path));
  if (!contents) return file;
  const std::size_t kept = whole(*contents);
  if (kept < contents->size() && ::ftruncate(file.descriptor_, static_cast<off_t>(kept)) != 0)
    return failed("cut the end off", path);
  return file;
}

Result<> AppendFile::append(std::span<const std::byte> bytes) {
  if (!is_open()) return fail(Code::invalid_argument, "the file is closed");
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write to", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(written));  // the rest of a full disk's last write
  }
  return {};
}

}  // namespace muster::telemetry
