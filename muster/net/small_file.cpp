#include "muster/net/credentials.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>

#include "muster/net/descriptor.h"

namespace muster::net {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view descriptor_prefix = "fd:";
constexpr std::chrono::seconds writer_time{10};  // for the writer of a pipe

// "fd:7" is 7; nothing for a path.
std::optional<int> descriptor_number(std::string_view name) {
  if (!name.starts_with(descriptor_prefix)) return std::nullopt;
  const std::string_view digits = name.substr(descriptor_prefix.size());
  int number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// A descriptor of our own in both cases. Opening a pipe does not wait for its writer.
Result<Descriptor> open_named(const std::string& name) {
  if (const auto number = descriptor_number(name)) {
    Descriptor copy(::fcntl(*number, F_DUPFD_CLOEXEC, 0));
    if (!copy)
      return fail(Code::not_found, fmt::format("'{}': this process has no such descriptor open", name));
    ::fcntl(*number, F_SETFD, FD_CLOEXEC);
    return copy;
  }
  Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return fail_errno(fmt::format("cannot open '{}'", name), errno);
  return file;
}

Result<> wait_for_bytes(int fd, const std::string& name, TimePoint deadline) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - real_clock().now()).count();
    pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = left <= 0 ? 0 : ::poll(&polled, 1, static_cast<int>(left));
    if (ready > 0) return {};
    if (ready == 0)
      return fail(Code::timeout,
                  fmt::format("'{}': no process wrote it within {} s", name, writer_time.count()));
    if (errno != EINTR) return fail_errno(fmt::format("cannot read '{}'", name), errno);
  }
}

Result<std::string> read_to_end(int fd, const std::string& name, bool is_regular,
                                std::size_t size_bytes_max) {
  const TimePoint deadline = real_clock().now() + writer_time;
  std::string text(size_bytes_max + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    if (!is_regular) MUSTER_TRY_VOID(wait_for_bytes(fd, name, deadline));
    // At a position of its own: others may read through the same descriptor.
    const ssize_t got = is_regular
                            ? ::pread(fd, text.data() + size, text.size() - size, static_cast<off_t>(size))
                            : ::read(fd, text.data() + size, text.size() - size);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return fail_errno(fmt::format("cannot read '{}'", name), errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > size_bytes_max)
    return fail(Code::invalid_argument,
                fmt::format("'{}' has more than the {} bytes that it may have", name, size_bytes_max));
  text.resize(size);
  return text;
}

}  // namespace

Result<SmallFile> read_small_file(const std::string& name, std::size_t size_bytes_max) {
  MUSTER_TRY(const Descriptor fd, open_named(name));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(fmt::format("cannot stat '{}'", name), errno);
  if (S_ISDIR(status.st_mode)) return fail(Code::io, fmt::format("cannot read '{}': it is a folder", name));
  const bool is_regular = S_ISREG(status.st_mode);
  SmallFile file{.is_open_to_all = is_regular && (status.st_mode & S_IROTH) != 0};
  MUSTER_TRY(file.text, read_to_end(fd.get(), name, is_regular, size_bytes_max));
  return file;
}

Result<SmallFile> read_secret(const std::string& name, std::string_view what) {
  MUSTER_TRY(SmallFile file, read_small_file(name, secret_bytes_max));
  std::string& text = file.text;
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  if (text.empty())
    return fail(Code::invalid_argument, fmt::format("'{}' is empty, and should hold {}", name, what));
  if (text.find_first_of(std::string_view("\n\0", 2)) != std::string::npos)
    return fail(Code::invalid_argument,
                fmt::format("'{}' has more than one line, and should hold {} alone", name, what));
  return file;
}

}  // namespace muster::net
