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
  // Throws where there are not as many values as elements.
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

  // Throws where another process has the elements.
  std::byte* bytes() const {
    if (absence() != nullptr) refuse_absent();
    return buffer_ ? buffer_->data() + offset_bytes_ : nullptr;
  }
  // Throws where T is not the type of the elements: cast() gives them as another one.
  template <class T>
  T* data() const {
    if (dtype_of<T> != dtype_) refuse_dtype(dtype_of<T>);
    return reinterpret_cast<T*>(bytes());
  }
  template <class T>
  std::span<T> span() const {
    return {data<T>(), static_cast<std::size_t>(elements_)};
  }

  // The element of a tensor that has one; throws for others.
  template <class T>
  T item() const {
    if (elements_ != 1) refuse_item();
    return *data<T>();
  }

  // The same elements under another shape of as many elements; throws for one of others.
  Tensor reshaped(Shape shape) const;
  // Own buffer, equal elements.
  Tensor clone() const;
  // Own buffer, each element as another dtype (kernels::cast).
  Tensor cast(DType dtype) const;

  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  std::size_t offset_bytes() const { return offset_bytes_; }

 private:
  [[noreturn]] void refuse_absent() const;
  [[noreturn]] void refuse_dtype(DType wanted) const;
  [[noreturn]] void refuse_item() const;
  [[noreturn]] void refuse_values(std::size_t count) const;

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
  if (static_cast<std::size_t>(made.elements()) != values.size()) made.refuse_values(values.size());
  std::copy(values.begin(), values.end(), made.data<T>());
  return made;
}

}  // namespace muster
