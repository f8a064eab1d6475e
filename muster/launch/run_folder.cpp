#include "muster/launch/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "muster/launch/secret_file.h"

namespace muster::launch {
namespace {

namespace fs = std::filesystem;

Result<> make_file(const FileSpec& file) {
  const net::Descriptor fd(
      ::open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(fmt::format("cannot make the file '{}'", file.path), errno);
  std::string_view rest = file.contents;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno(fmt::format("cannot write '{}'", file.path), errno);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// Any process of this user finds it through this one, however it was started: descriptors are often closed
// on the way.
Result<net::Descriptor> make_secret(const FileSpec& file) {
  MUSTER_TRY(net::Descriptor memory, memory_file(file.contents));
  std::error_code error;
  fs::create_symlink(fmt::format("/proc/{}/fd/{}", ::getpid(), memory.get()), file.path, error);
  if (error) return fail_errno(fmt::format("cannot make the link '{}'", file.path), error.value());
  return memory;
}

bool lies_in(const std::string& folder, const std::string& path) {
  const fs::path inner = fs::path(path).lexically_normal().lexically_relative(folder);
  return !folder.empty() && !inner.empty() && *inner.begin() != ".." && *inner.begin() != ".";
}

}  // namespace

std::string run_folder_like(const Environment& environment, std::uint64_t number) {
  std::string place = environment.get("TMPDIR").value_or("");
  if (place.empty() || place.front() != '/') place = "/tmp";
  while (place.size() > 1 && place.back() == '/') place.pop_back();
  return fmt::format("{}/muster-{}-{:016x}", place, ::getuid(), number);
}

std::string new_run_folder(const Environment& environment) { return run_folder_like(environment, entropy()); }

Result<> make_run_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0) return {};
  return fail_errno(
      fmt::format("cannot make the folder '{}' for temporary files (TMPDIR names another place)", folder),
      errno);
}

Result<std::vector<net::Descriptor>> make_files(const std::string& folder,
                                                const std::vector<FileSpec>& files) {
  std::vector<net::Descriptor> in_memory;
  for (const FileSpec& file : files) {
    if (!lies_in(folder, file.path))
      return fail(Code::internal, fmt::format("the file '{}' would not lie in the folder '{}', which is what "
                                              "is removed in the end",
                                              file.path, folder));
    std::error_code ignored;
    fs::create_directories(fs::path(file.path).parent_path(), ignored);
    if (file.is_secret) {
      MUSTER_TRY(net::Descriptor secret, make_secret(file));
      in_memory.push_back(std::move(secret));
    } else {
      MUSTER_TRY_VOID(make_file(file));
    }
  }
  return in_memory;
}

void remove_run_folder(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

}  // namespace muster::launch
