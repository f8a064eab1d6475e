// Public header of `tensor`: dense arrays in memory. The kernels that compute on them are in kernels.h, for
// `graph` alone.
//
// A Tensor is a value: a dtype, a shape and a share of an immutable-by-convention Buffer. Copying a Tensor
// shares the buffer; only the kernel that just made a buffer, and an optimizer updating a parameter in place,
// write to it. Elements are always contiguous, in row-major order; only between the kernels of a plan do they
// lie otherwise (format.h). Threads: Tensors are values; reading one from several threads is safe while
// no thread writes its buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "muster/base/base.h"
#include "muster/tensor/buffer.h"  // IWYU pragma: export
#include "muster/tensor/cpu.h"     // IWYU pragma: export
#include "muster/tensor/format.h"  // IWYU pragma: export

namespace muster {

class Tensor {
 public:
  // No elements, no buffer.
  Tensor() = default;
  // Uninitialised elements in a new buffer.
  Tensor(DType dtype, Shape shape);
  // A view of `buffer` from `offset_bytes` on; the buffer must be large enough.
  Tensor(DType dtype, Shape shape, std::shared_ptr<Buffer> buffer, std::size_t offset_bytes = 0);

  static Tensor zeros(DType dtype, Shape shape);
  // Without elements: they are elsewhere, as `reason` says (Buffer::absent). It may be handed on, but not
  // read.
  static Tensor absent(DType dtype, Shape shape, std::string reason);
  template <class T>
  static Tensor scalar(T value) {
    Tensor made(dtype_of<T>, {});
    *made.data<T>() = value;
    return made;
  }
  template <class T>
  static Tensor from(std::span<const T> values, Shape shape);

  bool defined() const { return buffer_ != nullptr; }
  // Why there are no elements, and who has them; null when there are.
  const std::string* absence() const { return buffer_ ? buffer_->absence() : nullptr; }
  // The rank of the one process that has these elements, of several that work on one thing; all of them know.
  // Nothing where all have elements, or where the rank is not known.
  std::optional<std::uint32_t> home() const { return home_; }
  void set_home(std::uint32_t rank) { home_ = rank; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t elements() const { return elements_; }
  std::size_t size_bytes() const { return static_cast<std::size_t>(elements_) * muster::size_bytes(dtype_); }

  std::byte* bytes() const {
    MUSTER_CHECK(absence() == nullptr, "elements were read that another process has");
    return buffer_ ? buffer_->data() + offset_bytes_ : nullptr;
  }
  template <class T>
  T* data() const {
    MUSTER_CHECK(dtype_of<T> == dtype_, "a tensor was read as another dtype");
    return reinterpret_cast<T*>(bytes());
  }
  template <class T>
  std::span<T> span() const {
    return {data<T>(), static_cast<std::size_t>(elements_)};
  }

  // The element of a tensor that has one.
  template <class T>
  T item() const {
    MUSTER_CHECK(elements_ == 1, "item() reads a tensor of one element");
    return *data<T>();
  }

  // The same elements under another shape of as many elements.
  Tensor reshaped(Shape shape) const;
  // Own buffer, equal elements.
  Tensor clone() const;
  // Own buffer, each element as another dtype (kernels::cast).
  Tensor cast(DType dtype) const;

  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  std::size_t offset_bytes() const { return offset_bytes_; }

 private:
  DType dtype_ = DType::float32;
  Shape shape_;
  std::int64_t elements_ = 0;
  std::shared_ptr<Buffer> buffer_;
  std::size_t offset_bytes_ = 0;
  std::optional<std::uint32_t> home_;
};

// Each of `count` elements as another dtype (kernels::cast), on the calling thread.
void cast_elements(const std::byte* from, DType from_dtype, std::byte* to, DType to_dtype, std::size_t count);

// The library of kernels that is loaded here ("oneDNN 3.2.0"). Empty: there is none, and convolutions are
// many times slower.
std::string_view kernel_library_name();

template <class T>
Tensor Tensor::from(std::span<const T> values, Shape shape) {
  Tensor made(dtype_of<T>, std::move(shape));
  MUSTER_CHECK(static_cast<std::size_t>(made.elements()) == values.size(), "values do not fill the shape");
  std::copy(values.begin(), values.end(), made.data<T>());
  return made;
}

}  // namespace muster
