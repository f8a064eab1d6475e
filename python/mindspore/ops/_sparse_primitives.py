"""mindspore.ops.operations.sparse_ops: ops of tensors with few elements as classes.

A tensor is (indices, values, shape), or in rows (CSR) (shape, where batches begin, where rows begin, columns,
values).
Where the result has as many elements as the values say, numpy makes it.
"""

import muster
from mindspore.ops import _places
from mindspore.ops._primitive import class_keeper, sizes_of
from muster import ops

_made = {}
_class = class_keeper(_made)


def _arrays(name, *tensors):
    import numpy

    return [
        _places.eager(name, each) if isinstance(each, muster.Tensor) else numpy.array(each)
        for each in tensors
    ]


def _tensors(*arrays):
    import numpy

    return tuple(muster.Tensor(numpy.ascontiguousarray(each)) for each in arrays)


# ---- Tensors with few elements: (indices, values, shape) ---------------------------------------------------


def _dense(indices, values, shape):
    indices = ops.reshape(indices, (-1, 1)) if indices.ndim == 1 else indices
    return ops.scatter_nd_update(ops.zeros(sizes_of(shape), values.dtype), indices, values, "add")


@_class("SparseToDense")
def _sparse_to_dense(indices, values, dense_shape):
    """The values at the indices, 0 elsewhere."""
    return _dense(indices, values, dense_shape)


@_class("SparseTensorDenseAdd")
def _sparse_add(x1_indices, x1_values, x1_shape, x2):
    """The sum of a sparse tensor and a dense one."""
    return ops.add(_dense(x1_indices, x1_values, x1_shape), x2)


@_class("SparseTensorDenseMatmul", adjoint_st=False, adjoint_dt=False)
def _sparse_matmul(indices, values, sparse_shape, dense, adjoint_st, adjoint_dt):
    """The product of a sparse matrix and a dense one; `adjoint` transposes."""
    left = _dense(indices, values, sparse_shape)
    left = ops.swapaxes(left, 0, 1) if adjoint_st else left
    return ops.matmul(left, ops.swapaxes(dense, 0, 1) if adjoint_dt else dense)


@_class("Coalesce")
def _coalesce(x_indices, x_values, x_shape):
    """In order, values of one place added; indices have a column for each value."""
    import numpy

    indices, at = numpy.unique(_places.eager("Coalesce", x_indices), axis=1, return_inverse=True)
    values = _places.unsorted_segment_sum(x_values, muster.Tensor(at.reshape(-1)), indices.shape[1])
    return muster.Tensor(indices), values, x_shape


@_class("SparseSlice")
def _sparse_slice(indices, values, shape, start, size):
    """The part from `start` of `size`."""
    import numpy

    rows, first, sizes = (_places.eager("SparseSlice", each) for each in (indices, start, size))
    sizes = numpy.minimum(sizes, _places.eager("SparseSlice", shape) - first)
    kept = ((rows >= first) & (rows < first + sizes)).all(axis=1).nonzero()[0]
    return muster.Tensor(rows[kept] - first), ops.gather(values, muster.Tensor(kept), 0), muster.Tensor(sizes)


@_class("SparseGatherV2")
def _gather(input_params, input_indices, axis):
    """Gather."""
    return ops.gather(input_params, input_indices, axis)


def _segments(x, indices, segment_ids, count):
    """The sums of rows of x at `indices`, those of a segment together, and how many each has, at least 1."""
    count = count.item() if isinstance(count, muster.Tensor) else count
    rows = ops.gather(x, indices, 0)
    total = _places.unsorted_segment_sum(rows, segment_ids, count)
    ones = ops.ones((rows.shape[0],) + (1,) * (rows.ndim - 1), x.dtype)
    return total, ops.maximum(_places.unsorted_segment_sum(ones, segment_ids, count), 1)


def _of_segments(name, reduced):
    @_class(name)
    def of_segments(x, indices, segment_ids):
        """Rows of x at `indices`, those of one segment together; segment_ids are in order."""
        count = int(_places.eager(name, segment_ids).max(initial=-1)) + 1
        return reduced(*_segments(x, indices, segment_ids, count))


_of_segments("SparseSegmentSum", lambda total, sizes: total)
_of_segments("SparseSegmentMean", ops.div)
_of_segments("SparseSegmentSqrtN", lambda total, sizes: ops.div(total, ops.sqrt(sizes)))


@_class("SparseSegmentSumWithNumSegments")
def _segment_sum(x, indices, segment_ids, num_segments):
    """SparseSegmentSum with empty segments at the end."""
    return _segments(x, indices, segment_ids, num_segments)[0]


@_class("SparseSegmentMeanWithNumSegments")
def _segment_mean(x, indices, segment_ids, num_segments):
    """SparseSegmentMean with empty segments at the end."""
    return ops.div(*_segments(x, indices, segment_ids, num_segments))


@_class("SparseSegmentSqrtNWithNumSegments")
def _segment_sqrt_n(x, indices, segment_ids, num_segments):
    """SparseSegmentSqrtN with empty segments at the end."""
    total, sizes = _segments(x, indices, segment_ids, num_segments)
    return ops.div(total, ops.sqrt(sizes))


@_class("SparseToDenseV2", validate_indices=True)
def _to_dense(indices, output_shape, values, default_value, validate_indices):
    """The values at the indices, default_value elsewhere."""
    shape = sizes_of(output_shape)
    indices = ops.reshape(indices, (-1, len(shape)))
    values = ops.broadcast_to(values, (indices.shape[0],))
    return ops.scatter_nd_update(ops.broadcast_to(default_value, shape), indices, values, "update")


@_class("SparseAddmm")
def _addmm(indices, values, sparse_shape, x2_dense, x3_dense, alpha, beta):
    """alpha sparse x2 + beta x3."""
    product = ops.matmul(_dense(indices, values, sparse_shape), x2_dense)
    return ops.add(ops.mul(product, alpha), ops.mul(x3_dense, beta))


def _element_wise(name, function):
    @_class(name)
    def of_values(x1_indices, x1_values, x1_shape, x2):
        """The values after an operation with the elements of x2 at their places, x2 broadcast."""
        return function(x1_values, ops.gather_nd(ops.broadcast_to(x2, sizes_of(x1_shape)), x1_indices))


_element_wise("SparseDenseCwiseAdd", ops.add)
_element_wise("SparseDenseCwiseMul", ops.mul)
_element_wise("SparseDenseCwiseDiv", ops.div)


def _joined(name, function):
    """Of the places of either tensor: (indices in order, function(values of both), whether there are two)."""
    import numpy

    def both(x1_indices, x1_values, x2_indices, x2_values):
        first, a, second, b = _arrays(name, x1_indices, x1_values, x2_indices, x2_values)
        places, at = numpy.unique(numpy.concatenate([first, second]), axis=0, return_inverse=True)
        columns, counts = numpy.zeros((2, len(places)), a.dtype), numpy.bincount(at.reshape(-1))
        numpy.add.at(columns[0], at.reshape(-1)[: len(first)], a)
        numpy.add.at(columns[1], at.reshape(-1)[len(first) :], b)
        return places, function(*columns), counts > 1

    return both


@_class("SparseAdd")
def _add(x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape, thresh):
    """The sum; where both have a value, one that is below thresh in size is left out."""
    import numpy

    places, values, is_sum = _joined("SparseAdd", numpy.add)(x1_indices, x1_values, x2_indices, x2_values)
    kept = ~is_sum | (numpy.abs(values) >= _arrays("SparseAdd", thresh)[0])
    return (*_tensors(places[kept], values[kept]), x1_shape)


def _extreme(name, numpy_name):
    @_class(name)
    def of_both(x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape):
        """Of each place that either has the extreme of both values."""
        import numpy

        made = _joined(name, getattr(numpy, numpy_name))(x1_indices, x1_values, x2_indices, x2_values)
        return _tensors(*made[:2])


_extreme("SparseSparseMaximum", "maximum")
_extreme("SparseSparseMinimum", "minimum")


@_class("Sspaddmm")
def _sparse_addmm(x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape, x3_dense, alpha, beta):
    """beta x1 + alpha x2 x3 with x1's places first; indices have a column for each value."""
    import numpy

    names = (x1_indices, x1_values, x2_indices, x2_values, x3_dense, alpha, beta)
    first, a, second, b, dense, alpha, beta = _arrays("Sspaddmm", *names)
    columns = numpy.arange(dense.shape[1])
    places, values = [first], [a * beta.astype(a.dtype)]
    for (row, column), value in zip(second.T, b, strict=True):
        places.append(numpy.stack([numpy.full_like(columns, row), columns]))
        values.append(alpha.astype(a.dtype) * value * dense[column])
    return (*_tensors(numpy.concatenate(places, 1).astype(numpy.int64), numpy.concatenate(values)), x1_shape)


# ---- Places in order ---------------------------------------------------------------------------------------


def _in_order(places):
    """The order of rows of indices."""
    import numpy

    return numpy.lexsort(places.T[::-1])


@_class("SparseReorder")
def _reorder(indices, values, shape):
    """The same in order."""
    places, numbers = _arrays("SparseReorder", indices, values)
    order = _in_order(places)
    return _tensors(places[order], numbers[order])


@_class("SparseReshape")
def _reshape(indices, shape, new_shape):
    """(indices, shape) in another shape of as many elements, of which one size may be -1."""
    import numpy

    places, old, new = _arrays("SparseReshape", indices, shape, new_shape)
    count = int(old.prod())
    new = numpy.where(new < 0, count // -int(new.prod()) if (new < 0).any() else 0, new)
    if int(new.prod()) != count:
        raise ValueError(f"SparseReshape: {count} elements are not those of {tuple(new.tolist())}")
    moved = numpy.unravel_index(numpy.ravel_multi_index(tuple(places.T), tuple(old)), tuple(new))
    return _tensors(numpy.stack(moved, -1).astype(numpy.int64), new.astype(numpy.int64))


@_class("SparseConcat", concat_dim=0)
def _concat(sp_input_indices, sp_input_values, sp_input_shapes, concat_dim):
    """Several tensors after each other along an axis."""
    import numpy

    places, values, away = [], [], 0
    for at, numbers, shape in zip(sp_input_indices, sp_input_values, sp_input_shapes, strict=True):
        at, numbers, sizes = _arrays("SparseConcat", at, numbers, shape)
        at = at.copy()
        at[:, concat_dim] += away
        away += int(sizes[concat_dim])
        places.append(at)
        values.append(numbers)
    whole, order = numpy.concatenate(places), _in_order(numpy.concatenate(places))
    sizes = sizes.copy()
    sizes[concat_dim] = away
    return _tensors(whole[order], numpy.concatenate(values)[order], sizes)


@_class("SparseSplit", num_split=1)
def _split(split_dim, indices, values, shape, num_split):
    """(indices, values, shapes) of parts along an axis; the first ones are larger where it is uneven."""
    places, numbers, sizes = _arrays("SparseSplit", indices, values, shape)
    axis = split_dim.item() if isinstance(split_dim, muster.Tensor) else split_dim
    each, rest = divmod(int(sizes[axis]), num_split)
    made, begin = [], 0
    for part in range(num_split):
        size = each + (part < rest)
        kept = (places[:, axis] >= begin) & (places[:, axis] < begin + size)
        moved, whole = places[kept].copy(), sizes.copy()
        moved[:, axis] -= begin
        whole[axis] = size
        made.append(_tensors(moved, numbers[kept], whole))
        begin += size
    return tuple(zip(*made, strict=True))


@_class("SparseFillEmptyRows")
def _fill_empty_rows(indices, values, dense_shape, default_value):
    """default_value in empty rows: (indices, values, which rows were empty, new places of old values)."""
    import numpy

    places, numbers, sizes, filler = _arrays(
        "SparseFillEmptyRows", indices, values, dense_shape, default_value
    )
    empty = numpy.ones(int(sizes[0]), bool)
    empty[places[:, 0]] = False
    added = numpy.zeros((int(empty.sum()), places.shape[1]), places.dtype)
    added[:, 0] = empty.nonzero()[0]
    whole = numpy.concatenate([places, added])
    order = numpy.argsort(whole[:, 0], kind="stable")
    filled = numpy.concatenate([numbers, numpy.full(len(added), filler, numbers.dtype)])
    places_of = numpy.argsort(order, kind="stable")[: len(places)]
    return _tensors(whole[order], filled[order], empty, places_of.astype(numpy.int64))


@_class("SparseSoftmax")
def _softmax(indices, values, shape):
    """The softmax of the values of each row, along the last axis."""
    import numpy

    places, numbers = _arrays("SparseSoftmax", indices, values)
    _, row = numpy.unique(places[:, :-1], axis=0, return_inverse=True)
    row = row.reshape(-1)
    most = numpy.full(row.max(initial=-1) + 1, -numpy.inf, numbers.dtype)
    numpy.maximum.at(most, row, numbers)
    grown = numpy.exp(numbers - most[row])
    total = numpy.zeros_like(most)
    numpy.add.at(total, row, grown)
    return muster.Tensor(grown / total[row])


# ---- Rows (CSR) --------------------------------------------------------------------------------------------


def _dense_of_rows(name, shape, batches, rows, columns, values):
    """The whole tensor; `rows` holds a list for each batch."""
    import numpy

    shape, batches, rows, columns, values = _arrays(name, shape, batches, rows, columns, values)
    count, (height, width) = len(batches) - 1, shape[-2:]
    made = numpy.zeros((count, height, width), values.dtype)
    for batch in range(count):
        ends = rows[batch * (height + 1) : (batch + 1) * (height + 1)]
        row = numpy.repeat(numpy.arange(height), numpy.diff(ends))
        part = slice(batches[batch], batches[batch + 1])
        made[batch, row, columns[part]] = values[part]
    return made.reshape(tuple(shape))


@_class("CSRSparseMatrixToDense")
def _rows_to_dense(x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values):
    """The whole matrix, or batch of them."""
    return muster.Tensor(
        _dense_of_rows(
            "CSRSparseMatrixToDense", x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values
        )
    )


@_class(
    "SparseMatrixMatMul",
    **dict.fromkeys(
        ("transpose_x1", "transpose_x2", "adjoint_x1", "adjoint_x2", "transpose_output", "conjugate_output"),
        False,
    ),
)
def _rows_matmul(
    x1_dense_shape,
    x1_batch_pointers,
    x1_row_pointers,
    x1_col_indices,
    x1_values,
    x2_dense,
    transpose_x1,
    transpose_x2,
    adjoint_x1,
    adjoint_x2,
    transpose_output,
    conjugate_output,
):
    """The product with a dense matrix; real numbers are their conjugates."""
    left = muster.Tensor(
        _dense_of_rows(
            "SparseMatrixMatMul",
            x1_dense_shape,
            x1_batch_pointers,
            x1_row_pointers,
            x1_col_indices,
            x1_values,
        )
    )
    left = ops.swapaxes(left, -1, -2) if transpose_x1 or adjoint_x1 else left
    right = ops.swapaxes(x2_dense, -1, -2) if transpose_x2 or adjoint_x2 else x2_dense
    made = ops.matmul(left, right)
    return ops.swapaxes(made, -1, -2) if transpose_output else made


globals().update(_made)
__all__ = sorted(_made)
