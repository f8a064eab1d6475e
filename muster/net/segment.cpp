#include "muster/net/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace muster::net {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Result<Segment> Segment::create(std::size_t size_bytes) {
  ProcessDescriptor fd(::memfd_create("muster", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno("cannot make shared memory", errno);
  const int status = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(size_bytes));
  if (status != 0)
    return fail_errno(fmt::format("cannot reserve {} bytes of shared memory", size_bytes), status);
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return fail_errno("cannot seal shared memory", errno);
  return map(std::move(fd), size_bytes);
}

Result<Segment> Segment::open(ProcessDescriptor fd, std::size_t size_bytes) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("cannot examine shared memory", errno);
  const int found = ::fcntl(fd.get(), F_GET_SEALS);
  if (found < 0 || (found & seals) != seals)
    return fail(Code::corrupt, "shared memory that was handed over is not sealed");
  if (static_cast<std::size_t>(status.st_size) != size_bytes)
    return fail(Code::corrupt, fmt::format("shared memory that was handed over has {} bytes instead of {}",
                                           status.st_size, size_bytes));
  return map(std::move(fd), size_bytes);
}

Result<Segment> Segment::map(ProcessDescriptor fd, std::size_t size_bytes) {
  void* data = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return fail_errno("cannot map shared memory", errno);
  return Segment(std::move(fd), static_cast<std::byte*>(data), size_bytes);
}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Segment::~Segment() {
  if (data_ != nullptr) ::munmap(data_, size_bytes_);
}

}  // namespace muster::net
