#include "muster/server/zero_pages.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

namespace muster::server {

Result<ZeroPages> ZeroPages::reserve(std::size_t size_bytes, std::string_view what) {
  if (size_bytes == 0) return ZeroPages();
  void* const data =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return fail_errno(fmt::format("no memory for {} more bytes of {}", size_bytes, what), errno);
  // Rows lie anywhere: with pages of 2 MiB most of them are found without a walk through the page tables.
  ::madvise(data, size_bytes, MADV_HUGEPAGE);
  return ZeroPages(static_cast<std::byte*>(data), size_bytes);
}

ZeroPages::~ZeroPages() {
  if (data_ != nullptr) ::munmap(data_, size_bytes_);
}

}  // namespace muster::server
