"""Sparse tensors: what they hold, and the dense tensor of it."""

import numpy

import muster


class RowTensor:
    """Some rows of a tensor: `values`, at `indices` of the first axis of `dense_shape`."""

    def __init__(self, indices=None, values=None, shape=None, row_tensor=None):
        given = row_tensor is not None
        self.indices = row_tensor.indices if given else indices
        self.values = row_tensor.values if given else values
        self.dense_shape = row_tensor.dense_shape if given else tuple(shape)


def _text(tensor):
    """A tensor in the text of a sparse one: its numbers without commas."""
    array = tensor.asnumpy()

    def number(x):
        return f"{x:.8e}".rjust(15)

    numbers = numpy.array2string(array, formatter={"float_kind": number}) if array.size else ""
    line = "\n" if array.ndim > 1 else ""
    return f"Tensor(shape={list(array.shape)}, dtype={tensor.dtype}, value={line}{numbers})"


class _Sparse:
    """`values` at some places of a tensor of `shape`, zero elsewhere. There are no ops on it."""

    @property
    def dtype(self):
        """That of the values."""
        return self.values.dtype

    @property
    def itemsize(self):
        """Bytes of a value."""
        return self.values.itemsize

    @property
    def ndim(self):
        """How many axes there are."""
        return len(self.shape)

    @property
    def size(self):
        """How many values there are."""
        return self.values.size

    def astype(self, dtype):
        """The same places with values of another dtype."""
        return self._with(self.values.astype(dtype))

    def abs(self):
        """The same places with the absolute values."""
        return self._with(self.values.abs())

    def to_dense(self):
        """The tensor with its zeros."""
        dense = numpy.zeros(self.shape, self.values.asnumpy().dtype)
        numpy.add.at(dense, self._places(), self.values.asnumpy())
        return muster.Tensor(dense)

    def __repr__(self):
        parts = ", ".join(f"{name}={_text(getattr(self, name))}" for name in (*self._parts, "values"))
        return f"{type(self).__name__}(shape={list(self.shape)}, dtype={self.dtype}, {parts})"


class COOTensor(_Sparse):
    """A row of `indices` for each value."""

    _parts = ("indices",)

    def __init__(self, indices=None, values=None, shape=None, coo_tensor=None):
        if coo_tensor is not None:
            indices, values, shape = coo_tensor.to_tuple()
        if not isinstance(indices, muster.Tensor) or not isinstance(values, muster.Tensor):
            raise TypeError("Inputs must be all of the type Tensor: indices and values")
        self.indices, self.values, self.shape = indices, values, tuple(shape)
        if indices.ndim != 2 or indices.shape[1] != len(self.shape) or indices.shape[0] != values.shape[0]:
            raise ValueError(
                f"COOTensor: indices are (values, axes), not {indices.shape} for {values.shape} and "
                f"{self.shape}"
            )

    def _places(self):
        return tuple(self.indices.asnumpy().T)

    def _with(self, values):
        return COOTensor(self.indices, values, self.shape)

    def to_tuple(self):
        """indices, values and shape."""
        return self.indices, self.values, self.shape


class CSRTensor(_Sparse):
    """The columns of a row are `indices` from one of `indptr` to the next."""

    _parts = ("indptr", "indices")

    def __init__(self, indptr=None, indices=None, values=None, shape=None, csr_tensor=None):
        if csr_tensor is not None:
            indptr, indices, values, shape = csr_tensor.to_tuple()
        if not all(isinstance(each, muster.Tensor) for each in (indptr, indices, values)):
            raise TypeError("Inputs must be all of the type Tensor: indptr, indices and values")
        self.indptr, self.indices, self.values, self.shape = indptr, indices, values, tuple(shape)
        if indptr.shape != (self.shape[0] + 1,) or indices.shape[0] != values.shape[0]:
            raise ValueError(
                f"CSRTensor: indptr {indptr.shape}, indices {indices.shape}, values {values.shape} and shape "
                f"{self.shape} do not fit"
            )

    def _places(self):
        pointers = self.indptr.asnumpy()
        return numpy.repeat(numpy.arange(self.shape[0]), numpy.diff(pointers)), self.indices.asnumpy()

    def _with(self, values):
        return CSRTensor(self.indptr, self.indices, values, self.shape)

    def to_tuple(self):
        """indptr, indices, values and shape."""
        return self.indptr, self.indices, self.values, self.shape

    def to_coo(self):
        """The same with a row of indices for each value."""
        rows, columns = self._places()
        indices = numpy.stack([rows, columns], 1).astype(self.indices.asnumpy().dtype)
        return COOTensor(muster.Tensor(indices), self.values, self.shape)


__all__ = ["COOTensor", "CSRTensor", "RowTensor"]
