#include "muster/tensor/tensor.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "muster/tensor/kernels/elementwise.h"
#include "muster/tensor/primitives.h"

namespace muster {

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype), shape_(std::move(shape)), elements_(shape_.elements()) {
  buffer_ = Buffer::allocate(size_bytes());
}

Tensor::Tensor(DType dtype, Shape shape, std::shared_ptr<Buffer> buffer, std::size_t offset_bytes)
    : dtype_(dtype),
      shape_(std::move(shape)),
      elements_(shape_.elements()),
      buffer_(std::move(buffer)),
      offset_bytes_(offset_bytes) {
  MUSTER_CHECK(buffer_ != nullptr && offset_bytes_ + size_bytes() <= buffer_->size_bytes(),
               "a tensor reaches past its buffer");
}

Tensor Tensor::zeros(DType dtype, Shape shape) {
  Tensor made(dtype, std::move(shape));
  std::memset(made.bytes(), 0, made.size_bytes());
  return made;
}

Tensor Tensor::absent(DType dtype, Shape shape, std::string reason) {
  const auto bytes = static_cast<std::size_t>(shape.elements()) * muster::size_bytes(dtype);
  return Tensor(dtype, std::move(shape), Buffer::absent(bytes, std::move(reason)));
}

Tensor Tensor::reshaped(Shape shape) const {
  if (shape.elements() != elements_)
    throw Exception(Code::invalid_argument,
                    fmt::format("a tensor of shape {} cannot be reshaped to {}, which has {} elements",
                                to_string(shape_), to_string(shape), shape.elements()));
  Tensor view = *this;
  view.shape_ = std::move(shape);
  return view;
}

Tensor Tensor::clone() const {
  Tensor copy(dtype_, shape_);
  std::memcpy(copy.bytes(), bytes(), size_bytes());
  return copy;
}

Tensor Tensor::cast(DType dtype) const {
  Tensor made(dtype, shape_);
  kernels::cast(bytes(), dtype_, made.bytes(), dtype, elements_);
  return made;
}

void Tensor::refuse_absent() const {
  throw Exception(Code::invalid_argument, "this process has no elements of the tensor: " + *absence());
}

void Tensor::refuse_dtype(DType wanted) const {
  throw Exception(Code::invalid_argument,
                  fmt::format("a tensor of {} was read as {}: cast(DType::{}) gives its elements so",
                              to_string(dtype_), to_string(wanted), to_string(wanted)));
}

void Tensor::refuse_item() const {
  throw Exception(
      Code::invalid_argument,
      fmt::format("item() reads a tensor of one element, not one of shape {}", to_string(shape_)));
}

void Tensor::refuse_values(std::size_t count) const {
  throw Exception(Code::invalid_argument, fmt::format("{} values do not fill shape {}, which has {} elements",
                                                      count, to_string(shape_), elements_));
}

void cast_elements(const std::byte* from, DType from_dtype, std::byte* to, DType to_dtype,
                   std::size_t count) {
  kernels::cast(from, from_dtype, to, to_dtype, static_cast<std::int64_t>(count));
}

std::string_view kernel_library_name() {
  const PrimitiveLibrary* const library = primitive_library();
  return library == nullptr ? std::string_view() : library->name;
}

}  // namespace muster
