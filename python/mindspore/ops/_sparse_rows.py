"""mindspore.ops.operations.sparse_ops: matrices kept by rows (CSR), and ragged tensors, as classes.

A matrix is (shape, where batches begin, where rows begin, columns, values).
"""

import muster
from mindspore.ops import _places
from mindspore.ops._primitive import class_keeper, sizes_of
from muster import ops

_made = {}
_class = class_keeper(_made)


def _places_of(name, shape, rows, columns):
    """Batch, row and column of each value, as arrays."""
    import numpy

    sizes = sizes_of(shape)
    begins = _places.eager(name, rows).reshape(-1, sizes[-2] + 1)
    counts = numpy.diff(begins, axis=1)
    batch = numpy.repeat(numpy.arange(len(begins)), counts.sum(1))
    row = numpy.concatenate([numpy.repeat(numpy.arange(sizes[-2]), each) for each in counts])
    return batch, row, _places.eager(name, columns)


def _by_rows(sizes, batch, row, column, values, like):
    """The matrix of values at these places, in the dtypes of the tensors `like`, and their order."""
    import numpy

    order = numpy.lexsort((column, row, batch))
    batches = sizes[0] if len(sizes) == 3 else 1
    counts = numpy.zeros((batches, sizes[-2] + 1), numpy.int64)
    numpy.add.at(counts, (batch, row + 1), 1)
    begins = numpy.concatenate([[0], counts.sum(1).cumsum()])
    pointers = sizes, begins, counts.cumsum(1).ravel(), column[order]
    made = [
        muster.Tensor(numpy.array(each)).astype(tensor.dtype)
        for each, tensor in zip(pointers, like, strict=True)
    ]
    return (*made, ops.gather(values, muster.Tensor(order.astype(numpy.int32)), 0))


@_class("SparseTensorToCSRSparseMatrix")
def _from_coordinates(x_indices, x_values, x_dense_shape):
    """The matrix of (indices, values, shape)."""
    places = _places.eager("SparseTensorToCSRSparseMatrix", x_indices)
    batch = places[:, 0] if places.shape[1] == 3 else places[:, 0] * 0
    like = x_dense_shape, x_indices, x_indices, x_indices
    return _by_rows(sizes_of(x_dense_shape), batch, *places[:, -2:].T, x_values, like)


@_class("CSRSparseMatrixToSparseTensor")
def _to_coordinates(x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values):
    """(indices, values, shape) of a matrix."""
    import numpy

    name = "CSRSparseMatrixToSparseTensor"
    places = _places_of(name, x_dense_shape, x_row_pointers, x_col_indices)
    indices = numpy.stack(places[3 - len(sizes_of(x_dense_shape)) :], 1)
    return muster.Tensor(indices).astype(x_col_indices.dtype), x_values, x_dense_shape


@_class("DenseToCSRSparseMatrix")
def _from_dense(dense_input, indices):
    """The matrix of the elements at `indices`."""
    values = ops.gather_nd(dense_input, indices)
    shape = muster.Tensor(dense_input.shape).astype(indices.dtype)
    return _from_coordinates(indices, values, shape)


@_class("SparseMatrixNNZ")
def _counted(x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values):
    """How many values each batch has, int32."""
    return ops.cast(ops.sub(x_batch_pointers[1:], x_batch_pointers[:-1]), muster.int32)


@_class("SparseMatrixTranspose", conjugate=False)
def _transposed(x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values, conjugate):
    """Rows and columns change places."""
    batch, row, column = _places_of("SparseMatrixTranspose", x_dense_shape, x_row_pointers, x_col_indices)
    *outer, high, wide = sizes_of(x_dense_shape)
    like = x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices
    return _by_rows((*outer, wide, high), batch, column, row, x_values, like)


@_class("SparseMatrixSoftmax", dtype=...)
def _softmax(x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values, dtype):
    """The softmax of each row over the values that it has."""
    places = _places_of("SparseMatrixSoftmax", x_dense_shape, x_row_pointers, x_col_indices)
    high = sizes_of(x_dense_shape)[-2]
    at = muster.Tensor(places[0] * high + places[1])
    count = int(places[0].max(initial=0) + 1) * high
    raised = ops.exp(ops.sub(x_values, ops.reduce_max(x_values)))
    totals = _places.unsorted_segment_sum(raised, at, count)
    share = ops.div(raised, ops.gather(totals, at, 0))
    return x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, ops.cast(share, dtype)


@_class("SparseMatrixAdd")
def _added(*inputs):
    """alpha times a matrix plus beta times another."""
    import numpy

    first, second, (alpha, beta) = inputs[:5], inputs[5:10], inputs[10:]
    sizes = sizes_of(first[0])
    both = [_places_of("SparseMatrixAdd", each[0], each[2], each[3]) for each in (first, second)]
    whole = [numpy.concatenate(pair) for pair in zip(*both, strict=True)]
    places, at = numpy.unique(numpy.stack(whole), axis=1, return_inverse=True)
    values = ops.concat([ops.mul(first[4], alpha), ops.mul(second[4], beta)], 0)
    summed = _places.unsorted_segment_sum(values, muster.Tensor(at.reshape(-1)), places.shape[1])
    return _by_rows(sizes, *places, summed, first[:4])


# ---- Ragged tensors ----------------------------------------------------------------------------------------


def _splits(name, types, partitions):
    """Where the rows of each level begin."""
    import numpy

    found, rows = [], None
    for kind, tensor in zip(types, partitions, strict=True):
        given = _places.eager(name, tensor)
        if kind == "FIRST_DIM_SIZE":
            rows = int(given.ravel()[0])
        elif kind == "ROW_SPLITS":
            found.append(given.tolist())
        elif kind == "VALUE_ROWIDS":
            rows = found[-1][-1] if found else rows
            counts = numpy.bincount(given, minlength=rows or 0)
            found.append([0, *counts.cumsum().tolist()])
        else:
            raise ValueError(f"{name}: types are FIRST_DIM_SIZE, VALUE_ROWIDS and ROW_SPLITS, not {kind!r}")
    return found


def _filled(made, values, splits, row):
    """Writes the values of a row, and of those below it, as far as there is place."""
    first, last = splits[0][row], splits[0][row + 1]
    for at, place in enumerate(range(first, min(last, first + made.shape[0]))):
        if len(splits) == 1:
            made[at] = values[place]
        else:
            _filled(made[at], values, splits[1:], place)


@_class("RaggedTensorToTensor", row_partition_types=...)
def _ragged(shape, values, default_value, row_partition_tensors, row_partition_types):
    """Rows of different lengths as one tensor of `shape` (-1: of the longest), default_value between."""
    import numpy

    name = "RaggedTensorToTensor"
    splits = _splits(name, row_partition_types, row_partition_tensors)
    numbers, sizes = _places.eager(name, values), list(sizes_of(shape))
    whole = [len(splits[0]) - 1, *(max(numpy.diff(each), default=0) for each in splits), *numbers.shape[1:]]
    sizes = [int(most) if size < 0 else size for size, most in zip(sizes, whole, strict=True)]
    made = numpy.empty(sizes, numbers.dtype)
    made[...] = _places.eager(name, default_value)
    for row in range(min(len(splits[0]) - 1, sizes[0])):
        _filled(made[row], numbers, splits, row)
    return muster.Tensor(made)


@_class("RaggedTensorToSparse", Tsplits=...)
def _from_ragged(rt_nested_splits, rt_dense_values, Tsplits):  # noqa: N803 - MindSpore's name
    """(indices, values, shape) of the rows of different lengths that nested splits say; all int64."""
    import numpy

    name = "RaggedTensorToSparse"
    splits = [_places.eager(name, each) for each in rt_nested_splits]
    values = _places.eager(name, rt_dense_values)
    indices = numpy.array(list(numpy.ndindex(*values.shape))).reshape(-1, values.ndim)
    for level in reversed(splits):  # the place in all values becomes the row, and the place in it
        row = numpy.searchsorted(level, indices[:, 0], "right") - 1
        indices = numpy.column_stack([row, indices[:, 0] - level[row], indices[:, 1:]])
    widest = [max(numpy.diff(each), default=0) for each in splits]
    sizes = numpy.array([len(splits[0]) - 1, *widest, *values.shape[1:]], numpy.int64)
    return tuple(muster.Tensor(each) for each in (indices.astype(numpy.int64), values.ravel(), sizes))


globals().update(_made)
__all__ = sorted(_made)
