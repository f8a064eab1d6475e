#include "muster/net/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace muster::net {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Result<std::byte*> map_pages(int fd, Extent extent) {
  void* data = ::mmap(nullptr, extent.size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                      static_cast<off_t>(extent.offset_bytes));
  if (data == MAP_FAILED)
    return fail_errno(fmt::format("cannot map {} bytes of shared memory", extent.size_bytes), errno);
  return static_cast<std::byte*>(data);
}

Result<> reserve_pages(int fd, Extent extent) {
  const int status =
      ::posix_fallocate(fd, static_cast<off_t>(extent.offset_bytes), static_cast<off_t>(extent.size_bytes));
  if (status != 0)
    return fail_errno(fmt::format("cannot reserve {} bytes of shared memory", extent.size_bytes), status);
  return {};
}

// Growing a file beyond the limit of the process (ulimit -f) raises a signal.
std::size_t allowed_room(std::size_t size_bytes, std::size_t room_bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return room_bytes;
  return limit.rlim_cur <= size_bytes ? 0 : std::min<std::size_t>(room_bytes, limit.rlim_cur - size_bytes);
}

}  // namespace

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_bytes_);
}

Result<Segment> Segment::create(std::size_t size_bytes, std::size_t room_bytes) {
  ProcessDescriptor fd(::memfd_create("muster", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd)
    return fail_errno("cannot make shared memory (memfd_create), which MUSTER_TRANSPORT=tcp does without",
                      errno);
  MUSTER_TRY_VOID(reserve_pages(fd.get(), {0, size_bytes}));
  room_bytes = allowed_room(size_bytes, room_bytes);
  if (room_bytes > 0 && ::ftruncate(fd.get(), static_cast<off_t>(size_bytes + room_bytes)) != 0)
    return fail_errno("cannot extend shared memory", errno);
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return fail_errno("cannot seal shared memory", errno);
  MUSTER_TRY(std::byte* const data, map_pages(fd.get(), {0, size_bytes}));
  return Segment(std::move(fd), Mapping(data, size_bytes), room_bytes);
}

Result<Segment> Segment::open(ProcessDescriptor fd, std::size_t size_bytes, std::size_t room_bytes) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("cannot examine shared memory", errno);
  const int found = ::fcntl(fd.get(), F_GET_SEALS);
  if (found < 0 || (found & seals) != seals)
    return fail(Code::corrupt, "shared memory that was handed over is not sealed");
  const auto file_bytes = static_cast<std::size_t>(status.st_size);
  if (file_bytes < size_bytes || file_bytes - size_bytes > room_bytes)
    return fail(Code::corrupt, fmt::format("shared memory that was handed over has {} bytes instead of {}",
                                           file_bytes, size_bytes));
  MUSTER_TRY(std::byte* const data, map_pages(fd.get(), {0, size_bytes}));
  return Segment(std::move(fd), Mapping(data, size_bytes), file_bytes - size_bytes);
}

Result<> Segment::reserve(Extent extent) const { return reserve_pages(fd(), extent); }

Result<Mapping> Segment::map(Extent extent) const {
  MUSTER_TRY(std::byte* const data, map_pages(fd(), extent));
  return Mapping(data, extent.size_bytes);
}

void Segment::release(Extent extent) const {
  // Where it fails the memory stays reserved: nothing worse.
  static_cast<void>(::fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(extent.offset_bytes),
                                static_cast<off_t>(extent.size_bytes)));
}

}  // namespace muster::net
