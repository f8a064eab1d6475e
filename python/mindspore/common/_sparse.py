"""Sparse tensors, as far as scripts name them."""


class RowTensor:
    """Some rows of a tensor: `values`, at `indices` of the first axis of `dense_shape`."""

    def __init__(self, indices=None, values=None, shape=None, row_tensor=None):
        given = row_tensor is not None
        self.indices = row_tensor.indices if given else indices
        self.values = row_tensor.values if given else values
        self.dense_shape = row_tensor.dense_shape if given else tuple(shape)


__all__ = ["RowTensor"]
