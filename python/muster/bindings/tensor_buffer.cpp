#include "python/muster/bindings/tensor_buffer.h"

#include <memory>
#include <utility>
#include <vector>

#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

// What a Py_buffer points into while it is read: it keeps the elements alive by itself.
struct View {
  Tensor tensor;
  std::vector<Py_ssize_t> sizes;
  std::vector<Py_ssize_t> strides_bytes;
};

const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "f";
    case DType::float64:
      return "d";
    case DType::int32:
      return "i";
    case DType::int64:
      return "q";
    case DType::uint8:
      return "B";
    case DType::uint32:
      return "I";
    case DType::int8:
      return "b";
    case DType::bool_:
      return "?";
    case DType::float16:
      return "e";
    case DType::int16:
      return "h";
    case DType::uint16:
      return "H";
    case DType::uint64:
      return "Q";
    case DType::bfloat16:  // Python has no name for it
      break;
  }
  return nullptr;
}

std::unique_ptr<View> view_of(const Tensor& tensor) {
  auto view = std::make_unique<View>();
  view->tensor = tensor;
  view->sizes.assign(tensor.shape().begin(), tensor.shape().end());
  view->strides_bytes.resize(view->sizes.size());
  auto stride = static_cast<Py_ssize_t>(size_bytes(tensor.dtype()));
  for (std::size_t axis = view->sizes.size(); axis-- > 0;) {
    view->strides_bytes[axis] = stride;
    stride *= view->sizes[axis];
  }
  return view;
}

int get_buffer(PyObject* self, Py_buffer* out, int flags) {
  out->obj = nullptr;
  if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
    PyErr_SetString(PyExc_BufferError, "the elements of a tensor are read-only");
    return -1;
  }
  std::unique_ptr<View> view;
  try {
    view = view_of(elements_of(nb::cast<const graph::Value&>(nb::handle(self))));
  } catch (nb::python_error& exception) {  // this is called by C code
    exception.restore();
    return -1;
  }
  const Tensor& tensor = view->tensor;
  if (tensor.dtype() == DType::bfloat16) {
    PyErr_SetString(PyExc_BufferError,
                    "elements of bfloat16 are of no type that buffers have: asnumpy() gives them as float32");
    return -1;
  }
  out->buf = tensor.bytes();
  out->len = static_cast<Py_ssize_t>(tensor.size_bytes());
  out->readonly = 1;
  out->itemsize = static_cast<Py_ssize_t>(size_bytes(tensor.dtype()));
  out->format =
      (flags & PyBUF_FORMAT) == PyBUF_FORMAT ? const_cast<char*>(format_of(tensor.dtype())) : nullptr;
  out->ndim = static_cast<int>(view->sizes.size());
  out->shape = (flags & PyBUF_ND) == PyBUF_ND ? view->sizes.data() : nullptr;
  out->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? view->strides_bytes.data() : nullptr;
  out->suboffsets = nullptr;
  out->internal = view.release();
  out->obj = nb::handle(self).inc_ref().ptr();
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<View*>(view->internal); }

}  // namespace

PyType_Slot tensor_buffer_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
    {0, nullptr},
};

}  // namespace muster::python
