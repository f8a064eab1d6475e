#include "muster/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace muster {
namespace {

// Closes on the way out; an error of close() after a good fsync() tells nothing new.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Result<> write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return fail_errno(fmt::format("cannot write '{}'", path), errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<> sync_folder(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() < 0 || ::fsync(descriptor.get()) != 0)
    return fail_errno(fmt::format("cannot sync folder '{}'", folder), errno);
  return {};
}

class RealFiles final : public Files {
 public:
  Result<std::vector<std::byte>> read(const std::string& path) const override {
    const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (descriptor.get() < 0) return fail_errno(fmt::format("cannot open '{}'", path), errno);
    struct stat status {};
    if (::fstat(descriptor.get(), &status) != 0)
      return fail_errno(fmt::format("cannot stat '{}'", path), errno);
    if (S_ISDIR(status.st_mode)) return fail(Code::io, fmt::format("cannot read '{}': it is a folder", path));
    // One byte more than the file should have: a read that leaves it free has seen the end, without growing.
    std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size) + 1);
    std::size_t filled = 0;
    while (true) {
      if (filled == bytes.size()) bytes.resize(2 * bytes.size());  // the file grew
      const ssize_t got = ::read(descriptor.get(), bytes.data() + filled, bytes.size() - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail_errno(fmt::format("cannot read '{}'", path), errno);
      if (got == 0) break;
      filled += static_cast<std::size_t>(got);
    }
    bytes.resize(filled);
    return bytes;
  }

  Result<> write_pieces(const std::string& path,
                        std::span<const std::span<const std::byte>> pieces) override {
    std::string temporary = path + ".XXXXXX";
    const Descriptor descriptor(::mkostemp(temporary.data(), O_CLOEXEC));
    if (descriptor.get() < 0) return fail_errno(fmt::format("cannot create '{}'", temporary), errno);
    Result<> result;
    for (const std::span<const std::byte> piece : pieces)
      if (result) result = write_all(descriptor.get(), piece, temporary);
    if (result && ::fsync(descriptor.get()) != 0)
      result = fail_errno(fmt::format("cannot sync '{}'", temporary), errno);
    if (result && ::rename(temporary.c_str(), path.c_str()) != 0)
      result = fail_errno(fmt::format("cannot rename '{}' to '{}'", temporary, path), errno);
    if (!result) {
      ::unlink(temporary.c_str());
      return result;
    }
    return sync_folder(path);
  }

  Result<std::vector<std::string>> list(const std::string& folder) const override {
    std::error_code error;
    std::filesystem::directory_iterator entries(folder, error);
    if (error) return fail_errno(fmt::format("cannot list folder '{}'", folder), error.value());
    std::vector<std::string> names;
    for (const auto& entry : entries) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

}  // namespace

Files& real_files() {
  static RealFiles files;
  return files;
}

Result<std::vector<std::byte>> MemoryFiles::read(const std::string& path) const {
  const auto found = contents_.find(path);
  if (found == contents_.end()) return fail_errno(fmt::format("cannot open '{}'", path), ENOENT);
  return found->second;
}

Result<> MemoryFiles::write_pieces(const std::string& path,
                                   std::span<const std::span<const std::byte>> pieces) {
  std::vector<std::byte>& content = contents_[path];
  content.clear();
  for (const std::span<const std::byte> piece : pieces)
    content.insert(content.end(), piece.begin(), piece.end());
  return {};
}

Result<std::vector<std::string>> MemoryFiles::list(const std::string& folder) const {
  const std::string prefix = folder.ends_with('/') ? folder : folder + '/';
  std::set<std::string> names;
  for (const auto& [path, bytes] : contents_)
    if (path.starts_with(prefix))
      names.insert(path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size()));
  if (names.empty()) return fail_errno(fmt::format("cannot list folder '{}'", folder), ENOENT);
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace muster
