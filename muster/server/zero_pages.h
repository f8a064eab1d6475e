// Zero pages: memory that the system gives page by page as it is touched, zeroed. Private to server.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "muster/base/base.h"

namespace muster::server {

class ZeroPages {
 public:
  ZeroPages() = default;
  // Address space for so many bytes; `what` is for the error.
  static Result<ZeroPages> reserve(std::size_t size_bytes, std::string_view what);
  ZeroPages(ZeroPages&& other) noexcept { *this = std::move(other); }
  ZeroPages& operator=(ZeroPages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  ~ZeroPages();

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  ZeroPages(std::byte* data, std::size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}

  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace muster::server
