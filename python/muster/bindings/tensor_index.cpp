#include "python/muster/bindings/tensor_index.h"

#include <string>
#include <utility>
#include <vector>

namespace muster::python {
namespace {

Tensor rows(const Tensor& tensor, nb::handle slice) {
  if (tensor.shape().rank() == 0) throw nb::index_error("a scalar has no elements to slice");
  Py_ssize_t start = 0;
  Py_ssize_t stop = 0;
  Py_ssize_t step = 0;
  if (PySlice_Unpack(slice.ptr(), &start, &stop, &step) != 0) throw nb::python_error();
  const Py_ssize_t count = PySlice_AdjustIndices(tensor.shape()[0], &start, &stop, step);
  if (step != 1)
    throw nb::index_error("slices with a step are not provided; index the view that asnumpy() gives");
  Shape shape = tensor.shape();
  shape[0] = count;
  const std::size_t row_bytes =
      tensor.shape()[0] == 0 ? 0 : tensor.size_bytes() / static_cast<std::size_t>(tensor.shape()[0]);
  return Tensor(tensor.dtype(), std::move(shape), tensor.buffer(),
                tensor.offset_bytes() + static_cast<std::size_t>(start) * row_bytes);
}

}  // namespace

Tensor row(const Tensor& tensor, Py_ssize_t index) {
  if (tensor.shape().rank() == 0) throw nb::index_error("a scalar has no elements to index");
  const std::int64_t size = tensor.shape()[0];
  if (index < 0) index += size;
  if (index < 0 || index >= size)
    throw nb::index_error(("index out of range for a dimension of " + std::to_string(size)).c_str());
  const auto& sizes = tensor.shape().sizes();
  Shape inner(std::vector<std::int64_t>(sizes.begin() + 1, sizes.end()));
  const auto step = static_cast<std::size_t>(inner.elements()) * size_bytes(tensor.dtype());
  return Tensor(tensor.dtype(), std::move(inner), tensor.buffer(),
                tensor.offset_bytes() + static_cast<std::size_t>(index) * step);
}

Tensor part(const Tensor& tensor, nb::handle index) {
  if (PySlice_Check(index.ptr())) return rows(tensor, index);
  if (PyIndex_Check(index.ptr())) {
    const Py_ssize_t at = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
    if (at == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return row(tensor, at);
  }
  if (nb::isinstance<nb::tuple>(index)) {
    Tensor view = tensor;
    for (const nb::handle inner : nb::borrow<nb::tuple>(index)) view = part(view, inner);
    return view;
  }
  throw nb::index_error(
      "a tensor is indexed by whole numbers or a slice of its first dimension; "
      "for more, index the view that asnumpy() gives");
}

}  // namespace muster::python
