#include "muster/tensor/buffer.h"

#include <new>
#include <utility>

namespace muster {

Buffer::Buffer(std::byte* data, std::size_t size_bytes, std::function<void()> release)
    : data_(data), size_bytes_(size_bytes), release_(std::move(release)) {}

Buffer::~Buffer() {
  if (release_)
    release_();
  else
    ::operator delete (data_, std::align_val_t{alignment_bytes});
}

std::shared_ptr<Buffer> Buffer::allocate(std::size_t size_bytes) {
  auto* data = static_cast<std::byte*>(::operator new (size_bytes, std::align_val_t{alignment_bytes}));
  return std::shared_ptr<Buffer>(new Buffer(data, size_bytes, nullptr));
}

std::shared_ptr<Buffer> Buffer::borrow(std::byte* data, std::size_t size_bytes,
                                       std::function<void()> release) {
  if (!release) release = [] {};
  return std::shared_ptr<Buffer>(new Buffer(data, size_bytes, std::move(release)));
}

std::shared_ptr<Buffer> Buffer::absent(std::size_t size_bytes, std::string reason) {
  auto made = borrow(nullptr, size_bytes, nullptr);
  made->absence_ = std::make_unique<const std::string>(std::move(reason));
  return made;
}

}  // namespace muster
