#include "muster/checkpoint/direct_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace muster::checkpoint {
namespace {

// What every disk is content with, for memory, sizes and places in the file.
constexpr std::size_t alignment_bytes = 4096;
// Small enough to be written from the core's own cache, into which it was just copied.
constexpr std::size_t block_bytes = std::size_t{1} << 20;

}  // namespace

void DirectWriter::Free::operator()(std::byte* data) const {
  ::operator delete[](data, std::align_val_t{alignment_bytes});
}

Result<> DirectWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    bytes = bytes.subspan(take(bytes));
    if (filled_ < block_bytes) continue;
    set_direct(true);
    MUSTER_TRY_VOID(write({block_.get(), filled_}));
    filled_ = 0;
  }
  return {};
}

Result<> DirectWriter::sync() {
  if (filled_ > 0) {
    set_direct(false);  // the end of a file has any size
    MUSTER_TRY_VOID(write({block_.get(), filled_}));
    filled_ = 0;
  }
  if (::fsync(fd_) != 0) return fail_errno(fmt::format("cannot sync '{}'", path_), errno);
  return {};
}

// Copies what fits into the block.
std::size_t DirectWriter::take(std::span<const std::byte> bytes) {
  if (!block_) block_.reset(new (std::align_val_t{alignment_bytes}) std::byte[block_bytes]);
  const std::size_t taken = std::min(bytes.size(), block_bytes - filled_);
  std::memcpy(block_.get() + filled_, bytes.data(), taken);
  filled_ += taken;
  return taken;
}

Result<> DirectWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EINVAL && direct_) {  // the flag could be set, but means nothing here
      possible_ = false;
      set_direct(false);
      continue;
    }
    if (written < 0) return fail_errno(fmt::format("cannot write '{}'", path_), errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    if (!bytes.empty()) set_direct(false);  // a part was written: what is left may begin anywhere
  }
  return {};
}

// A file system that cannot do it takes the bytes through its cache: the file is the same.
void DirectWriter::set_direct(bool on) {
  if (on && !possible_) return;
  if (on == direct_) return;
  const int flags = ::fcntl(fd_, F_GETFL);
  if (flags >= 0 && ::fcntl(fd_, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0)
    direct_ = on;
  else
    possible_ = false;
}

}  // namespace muster::checkpoint
