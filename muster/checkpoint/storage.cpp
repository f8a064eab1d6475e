#include "muster/checkpoint/storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "muster/checkpoint/direct_writer.h"
#include "muster/checkpoint/write_throttle.h"

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// A file that is new: no other process writes to it, so its bytes may come late and in blocks.
class NewOutput final : public OutputFile {
 public:
  NewOutput(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), writer_(descriptor_.get(), std::move(path)) {}

  Result<> append(std::span<const std::byte> bytes) override { return writer_.append(bytes); }
  Result<> sync() override { return writer_.sync(); }

 private:
  Descriptor descriptor_;
  DirectWriter writer_;
};

// A file that grows: what was appended is in the system's hands at once.
class GrowingOutput final : public OutputFile {
 public:
  GrowingOutput(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Result<> append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return fail_errno(fmt::format("cannot write '{}'", path_), errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }

  Result<> sync() override {
    if (::fsync(descriptor_.get()) != 0) return fail_errno(fmt::format("cannot sync '{}'", path_), errno);
    return {};
  }

 private:
  Descriptor descriptor_;
  std::string path_;
};

class RealInput final : public InputFile {
 public:
  RealInput(Descriptor descriptor, std::string path, std::uint64_t size)
      : descriptor_(std::move(descriptor)), path_(std::move(path)), size_(size) {}

  std::uint64_t size_bytes() const override { return size_; }

  Result<> read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    while (!into.empty()) {
      const ssize_t got = ::pread(descriptor_.get(), into.data(), into.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail_errno(fmt::format("cannot read '{}'", path_), errno);
      if (got == 0) return fail(Code::corrupt, fmt::format("'{}' ends at byte {}", path_, offset));
      into = into.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return {};
  }

 private:
  Descriptor descriptor_;
  std::string path_;
  std::uint64_t size_;
};

// ---- Locks ------------------------------------------------------------------------------------------------

constexpr std::chrono::milliseconds lock_pause{5};
constexpr std::size_t locked_text_max = 4096;

// Of the open file, not of the process: two of one process keep each other out, and closing another
// descriptor of the file releases nothing.
struct flock whole_file(short type) {
  struct flock record {};
  record.l_type = type;
  record.l_whence = SEEK_SET;
  return record;
}

bool has_no_locks(int error_number) {
  return error_number == ENOSYS || error_number == ENOLCK || error_number == EOPNOTSUPP ||
         error_number == EINVAL;
}

tl::unexpected<Error> cannot_lock(const std::string& path, int error_number) {
  auto failed = fail_errno(fmt::format("cannot lock '{}'", path), error_number);
  if (has_no_locks(error_number)) failed.value().code = Code::not_provided;
  return failed;
}

class RealLockedFile final : public LockedFile {
 public:
  RealLockedFile(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
  // A forked child has the descriptor too: closing it here would not be enough.
  ~RealLockedFile() override {
    struct flock record = whole_file(F_UNLCK);
    ::fcntl(descriptor_.get(), F_OFD_SETLK, &record);
  }
  RealLockedFile(const RealLockedFile&) = delete;
  RealLockedFile& operator=(const RealLockedFile&) = delete;

  Result<std::string> read() const override {
    std::string text(locked_text_max, '\0');
    const ssize_t got = ::pread(descriptor_.get(), text.data(), text.size(), 0);
    if (got < 0) return fail_errno(fmt::format("cannot read '{}'", path_), errno);
    text.resize(static_cast<std::size_t>(got));
    return text;
  }
  Result<> write(std::string_view text) override {
    if (::ftruncate(descriptor_.get(), 0) != 0 ||
        ::pwrite(descriptor_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      return fail_errno(fmt::format("cannot write '{}'", path_), errno);
    return {};
  }

 private:
  Descriptor descriptor_;
  std::string path_;
};

// A process that clears a folder away removes the locks in it: one that was waited for may be of no file any
// more.
bool is_at(const std::string& path, int fd) {
  struct stat opened {
  }, there{};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &there) == 0 && opened.st_ino == there.st_ino &&
         opened.st_dev == there.st_dev;
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Result<> write_all(int fd, std::span<const std::span<const std::byte>> pieces, const std::string& path) {
  DirectWriter writer(fd, path);
  const auto append = [&](std::span<const std::byte> bytes) { return writer.append(bytes); };
  for (const std::span<const std::byte> piece : pieces)
    MUSTER_TRY_VOID(WriteThrottle::in_pieces(piece, append));
  return writer.sync();
}

class RealStorage final : public Storage {
 public:
  Result<std::vector<std::byte>> read(const std::string& path) const override {
    return real_files().read(path);
  }
  Result<> write_pieces(const std::string& path,
                        std::span<const std::span<const std::byte>> pieces) override {
    std::string temporary = path + ".XXXXXX";
    const Descriptor descriptor(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!descriptor) return fail_errno(fmt::format("cannot create '{}'", temporary), errno);
    Result<> written = write_all(descriptor.get(), pieces, temporary);
    if (written) written = rename(temporary, path);
    if (written) return sync_folder(folder_of(path));
    ::unlink(temporary.c_str());
    return written;
  }
  Result<std::vector<std::string>> list(const std::string& folder) const override {
    return real_files().list(folder);
  }

  Result<> make_folder(const std::string& path) override {
    std::error_code error;
    if (path.empty() || fs::is_directory(path, error)) return {};
    const std::string parent = fs::path(path).parent_path().string();
    if (parent != path) MUSTER_TRY_VOID(make_folder(parent));
    if (::mkdir(path.c_str(), 0777) != 0) {
      const int number = errno;
      if (number == EEXIST && fs::is_directory(path, error)) return {};  // another process was faster
      return fail_errno(fmt::format("cannot make folder '{}'", path), number);
    }
    return sync_folder(parent.empty() ? "." : parent);
  }

  Result<std::string> make_temporary_folder(const std::string& prefix) override {
    std::string path = prefix + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return fail_errno(fmt::format("cannot make folder '{}'", path), errno);
    return path;
  }

  Result<std::unique_ptr<OutputFile>> create(const std::string& path) override {
    Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!descriptor) return fail_errno(fmt::format("cannot create '{}'", path), errno);
    return std::make_unique<NewOutput>(std::move(descriptor), path);
  }

  Result<std::unique_ptr<OutputFile>> append_to(const std::string& path, std::uint64_t size_bytes) override {
    Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!descriptor) return fail_errno(fmt::format("cannot open '{}'", path), errno);
    if (::ftruncate(descriptor.get(), static_cast<off_t>(size_bytes)) != 0)
      return fail_errno(fmt::format("cannot cut '{}' to {} bytes", path, size_bytes), errno);
    return std::make_unique<GrowingOutput>(std::move(descriptor), path);
  }

  Result<std::unique_ptr<InputFile>> open(const std::string& path) const override {
    Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!descriptor) return fail_errno(fmt::format("cannot open '{}'", path), errno);
    struct stat status {};
    if (::fstat(descriptor.get(), &status) != 0)
      return fail_errno(fmt::format("cannot stat '{}'", path), errno);
    if (!S_ISREG(status.st_mode)) return fail(Code::io, fmt::format("cannot read '{}': it is no file", path));
    return std::make_unique<RealInput>(std::move(descriptor), path,
                                       static_cast<std::uint64_t>(status.st_size));
  }

  Result<> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0)
      return fail_errno(fmt::format("cannot rename '{}' to '{}'", from, to), errno);
    return {};
  }

  Result<> exchange(const std::string& first, const std::string& second) override {
    if (::renameat2(AT_FDCWD, first.c_str(), AT_FDCWD, second.c_str(), RENAME_EXCHANGE) == 0) return {};
    if (errno == EINVAL || errno == ENOSYS)
      return fail(Code::not_provided, fmt::format("'{}' and '{}' cannot be exchanged here", first, second));
    return fail_errno(fmt::format("cannot exchange '{}' and '{}'", first, second), errno);
  }

  Result<> sync_folder(const std::string& path) override {
    const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!descriptor || ::fsync(descriptor.get()) != 0)
      return fail_errno(fmt::format("cannot sync folder '{}'", path), errno);
    return {};
  }

  Result<> remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return fail_errno(fmt::format("cannot remove '{}'", path), errno);
    return {};
  }

  Result<> remove_folder(const std::string& path) override {
    std::error_code error;
    do fs::remove_all(path, error);
    while (error == std::errc::no_such_file_or_directory);  // another process removes what is in it, too
    if (error) return fail_errno(fmt::format("cannot remove folder '{}'", path), error.value());
    return {};
  }

  Result<std::unique_ptr<LockedFile>> lock(const std::string& path, Sharing sharing,
                                           std::chrono::milliseconds patience) override {
    for (std::chrono::milliseconds waited{0};; waited += lock_pause) {
      Descriptor descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
      if (!descriptor) return fail_errno(fmt::format("cannot open '{}'", path), errno);
      struct flock record = whole_file(sharing == Sharing::shared ? F_RDLCK : F_WRLCK);
      const bool is_locked = ::fcntl(descriptor.get(), F_OFD_SETLK, &record) == 0;
      if (!is_locked && errno != EAGAIN && errno != EACCES && errno != EINTR) return cannot_lock(path, errno);
      if (is_locked && is_at(path, descriptor.get()))
        return std::make_unique<RealLockedFile>(std::move(descriptor), path);
      if (waited >= patience) return fail(Code::refused, fmt::format("'{}' is locked", path));
      std::this_thread::sleep_for(lock_pause);
    }
  }

  Result<bool> is_locked(const std::string& path) const override {
    const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!descriptor && errno == ENOENT) return false;
    if (!descriptor) return fail_errno(fmt::format("cannot open '{}'", path), errno);
    struct flock record = whole_file(F_WRLCK);
    if (::fcntl(descriptor.get(), F_OFD_GETLK, &record) != 0) return cannot_lock(path, errno);
    return record.l_type != F_UNLCK;
  }
};

}  // namespace

Storage& real_storage() {
  static RealStorage storage;
  return storage;
}

bool has(const std::vector<std::string>& names, std::string_view wanted) {
  return std::find(names.begin(), names.end(), wanted) != names.end();
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace muster::checkpoint
