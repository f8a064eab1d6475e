// Regular file: the bytes of a file in the folder of a run, for who shows them to others.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "muster/net/net.h"

namespace muster::launch {

// A file of bytes; a link, a pipe and a device are none.
class RegularFile {
 public:
  explicit RegularFile(const std::string& path)
      : file_(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    if (!file_ || ::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
      file_.reset();
      return;
    }
    size_bytes_ = static_cast<std::uint64_t>(status.st_size);
    changed_ns_ = std::int64_t{1'000'000'000} * status.st_mtim.tv_sec + status.st_mtim.tv_nsec;
  }
  bool is_there() const { return static_cast<bool>(file_); }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::int64_t changed_ns() const { return changed_ns_; }  // since 1970

  // Less where the file ends.
  std::string read(std::uint64_t begin, std::uint64_t bytes) const {
    std::string text(file_ ? bytes : 0, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
      const ssize_t got =
          ::pread(file_.get(), text.data() + size, text.size() - size, static_cast<off_t>(begin + size));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      size += static_cast<std::size_t>(got);
    }
    text.resize(size);
    return text;
  }

 private:
  net::Descriptor file_;
  std::uint64_t size_bytes_ = 0;
  std::int64_t changed_ns_ = 0;
};

}  // namespace muster::launch
