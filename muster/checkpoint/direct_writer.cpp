#include "muster/checkpoint/direct_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

namespace muster::checkpoint {
namespace {

// Small enough to be written from the cache into which it was just copied; large enough that a thread of low
// priority, which may have to wait for a core after each, is soon done.
constexpr std::size_t block_bytes = std::size_t{4} << 20;
// What need not be copied is written from where it is, if it is as much as this.
constexpr std::size_t worth_a_call_bytes = std::size_t{1} << 20;

}  // namespace

void DirectWriter::Free::operator()(std::byte* data) const {
  ::operator delete[](data, std::align_val_t{alignment_bytes});
}

Result<> DirectWriter::append(std::span<const std::byte> bytes) {
  if (lies_as_in_file(bytes)) {
    const std::size_t to_border = (alignment_bytes - filled_ % alignment_bytes) % alignment_bytes;
    bytes = bytes.subspan(take(bytes.first(to_border)));
    MUSTER_TRY_VOID(write_block());
    while (bytes.size() >= alignment_bytes) {
      const auto span = bytes.first(std::min(bytes.size() / alignment_bytes * alignment_bytes, block_bytes));
      set_direct(true);
      MUSTER_TRY_VOID(write(span));
      bytes = bytes.subspan(span.size());
    }
  }
  while (!bytes.empty()) {
    bytes = bytes.subspan(take(bytes));
    if (filled_ == block_bytes) MUSTER_TRY_VOID(write_block());
  }
  return {};
}

Result<> DirectWriter::sync() {
  MUSTER_TRY_VOID(write_block());
  if (::fsync(fd_) != 0) return fail_errno(fmt::format("cannot sync '{}'", path_), errno);
  return {};
}

// Whether the bytes are so many, and their addresses so, that they can be written from where they are.
bool DirectWriter::lies_as_in_file(std::span<const std::byte> bytes) const {
  return possible_ && bytes.size() >= worth_a_call_bytes &&
         reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment_bytes == filled_ % alignment_bytes;
}

// Copies what fits into the block.
std::size_t DirectWriter::take(std::span<const std::byte> bytes) {
  if (!block_) block_.reset(new (std::align_val_t{alignment_bytes}) std::byte[block_bytes]);
  const std::size_t taken = std::min(bytes.size(), block_bytes - filled_);
  std::memcpy(block_.get() + filled_, bytes.data(), taken);
  filled_ += taken;
  return taken;
}

Result<> DirectWriter::write_block() {
  if (filled_ == 0) return {};
  set_direct(filled_ % alignment_bytes == 0);  // the end of a file has any size
  MUSTER_TRY_VOID(write({block_.get(), filled_}));
  filled_ = 0;
  return {};
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
