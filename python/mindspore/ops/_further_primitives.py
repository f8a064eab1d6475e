"""mindspore.ops: classes of ops that few scripts use by name, made of other ops or of numpy."""

import muster
from mindspore.ops import _math, _places
from mindspore.ops._primitive import CONVOLUTION, class_keeper, sizes_of
from muster import ops

_made = {}
_class = class_keeper(_made)


# ---- Gradients that have names of ops ----------------------------------------------------------------------

_INPUT_GRADIENT = {"out_channel": ..., "kernel_size": ..., **CONVOLUTION}


@_class("Conv2DTranspose", **_INPUT_GRADIENT)
@_class("Conv2DBackpropInput", **_INPUT_GRADIENT)
def _input_gradient(dout, weight, input_size, **settings):
    """The gradient of Conv2D for its input of `input_size`."""
    from mindspore.ops import _gradient_primitives  # it asks for names of mindspore.ops

    return _gradient_primitives.conv2d_input_grad(dout, weight, input_size, **settings)


# ---- Bits, boxes, factors ----------------------------------------------------------------------------------


@_class("CompareAndBitpack")
def _bitpack(x, threshold):
    """x > threshold, eight to a byte, the first one its highest bit."""
    bits = ops.cast(ops.greater(x, threshold), muster.int32)
    bits = ops.reshape(bits, (*x.shape[:-1], -1, 8))
    weights = muster.Tensor([128, 64, 32, 16, 8, 4, 2, 1], muster.int32)
    return ops.cast(ops.reduce_sum(ops.mul(bits, weights), -1), muster.uint8)


@_class("NonMaxSuppressionWithOverlaps")
def _suppressed(overlaps, scores, max_output_size, overlap_threshold, score_threshold):
    """The places of the best scores that overlap none of those before by more than overlap_threshold."""
    table, points, most, overlap, least = (
        _places.eager("NonMaxSuppressionWithOverlaps", each)
        for each in (overlaps, scores, max_output_size, overlap_threshold, score_threshold)
    )
    kept: list[int] = []
    for at in sorted(range(points.size), key=lambda place: (-points[place], place)):
        if len(kept) < most and points[at] > least and all(table[at, each] <= overlap for each in kept):
            kept.append(at)
    return muster.Tensor(kept, muster.int32) if kept else ops.zeros((0,), muster.int32)


@_class("LuUnpack", unpack_data=True, unpack_pivots=True)
def _lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots):  # noqa: N803 - MindSpore's names
    """(the permutation, L, U) of what a decomposition has packed."""
    import numpy

    packed, pivots = (_places.eager("LuUnpack", each) for each in (LU_data, LU_pivots))
    rows, columns = packed.shape[-2:]
    small = min(rows, columns)
    order = numpy.broadcast_to(numpy.arange(rows), (*pivots.shape[:-1], rows)).copy()
    for place in numpy.ndindex(*pivots.shape):
        *batch, at = place
        row, other = order[tuple(batch)], pivots[place] - 1
        row[[at, other]] = row[[other, at]]
    turned = numpy.swapaxes(numpy.eye(rows, dtype=packed.dtype)[order], -1, -2)
    lower = numpy.tril(packed[..., :small], -1) + numpy.eye(rows, small, dtype=packed.dtype)
    return tuple(
        muster.Tensor(numpy.ascontiguousarray(each))
        for each in (turned, lower, numpy.triu(packed[..., :small, :]))
    )


@_class("Orgqr")
def _orgqr(x, tau):
    """The first columns of the product of the reflections of a QR decomposition."""
    import numpy

    vectors, factors = (_places.eager("Orgqr", each) for each in (x, tau))
    rows, columns = vectors.shape[-2:]
    made = numpy.broadcast_to(numpy.eye(rows, columns, dtype=vectors.dtype), vectors.shape).copy()
    for at in reversed(range(factors.shape[-1])):
        v = numpy.where(numpy.arange(rows) > at, vectors[..., at], numpy.arange(rows) == at)[..., None]
        made -= factors[..., at, None, None] * v * (numpy.swapaxes(v, -1, -2) @ made)
    return muster.Tensor(made)


@_class("MatrixSolveLs", fast=True)
def _solve_least_squares(matrix, rhs, l2_regularizer, fast):
    """The x with the least |matrix x - rhs|^2 + l2 |x|^2."""
    from mindspore.ops import _lapack

    turned = ops.swapaxes(matrix, -1, -2)
    small = ops.matmul(turned, matrix)
    weight = (
        ops.cast(l2_regularizer, matrix.dtype)
        if isinstance(l2_regularizer, muster.Tensor)
        else l2_regularizer
    )
    eye = ops.cast(
        muster.Tensor([[float(i == j) for j in range(small.shape[-1])] for i in range(small.shape[-1])]),
        matrix.dtype,
    )
    return _lapack.matrix_solve(ops.add(small, ops.mul(eye, weight)), ops.matmul(turned, rhs))


@_class("NoRepeatNGram", ngram_size=1)
def _no_repeat(state_seq, log_probs, ngram_size):
    """log_probs, the least number where a word would end an n-gram that state_seq already has."""
    import numpy

    words, made = (_places.eager("NoRepeatNGram", each) for each in (state_seq, log_probs))
    made = made.copy()
    before = ngram_size - 1
    for place in numpy.ndindex(*words.shape[:-1]):
        row = words[place].tolist()
        last = row[len(row) - before :]
        for at in range(len(row) - before):
            if row[at : at + before] == last:
                made[place][row[at + before]] = numpy.finfo(made.dtype).min
    return muster.Tensor(made)


@_class("LuSolve")
def _lu_solve(x, lu_data, lu_pivots):
    """The y with A y = x, for the packed decomposition of A."""
    from mindspore.ops import _lapack

    turned, lower, upper = _lu_unpack(lu_data, lu_pivots, True, True)
    rows = ops.matmul(ops.swapaxes(turned, -1, -2), x)
    return _lapack.matrix_solve(upper, _lapack.matrix_solve(lower, rows))


@_class("TridiagonalSolve", partial_pivoting=True)
def _tridiagonal_solve(diagonals, rhs, partial_pivoting):
    """The x with A x = rhs; diagonals has the rows above, on and below the diagonal of A."""
    from mindspore.ops import _lapack

    size = diagonals.shape[-1]
    places = ops.arange(size)
    away = ops.sub(ops.expand_dims(places, 0), ops.expand_dims(places, 1))
    whole = ops.zeros((*diagonals.shape[:-2], size, size), diagonals.dtype)
    for row, offset in enumerate((1, 0, -1)):
        column = ops.expand_dims(diagonals[..., row, :], -1)
        whole = ops.select(ops.equal(away, offset), ops.add(whole, column), whole)
    return _lapack.matrix_solve(whole, rhs)


# ---- Others ------------------------------------------------------------------------------------------------


@_class("EqualCount")
def _equal_count(x, y):
    """How many elements are equal, in their dtype."""
    return ops.reshape(ops.cast(ops.reduce_sum(ops.cast(ops.equal(x, y), muster.int32)), x.dtype), (1,))


@_class("DynamicBroadcastTo")
def _broadcast(x, shape):
    """x in a shape that broadcasting gives."""
    return ops.broadcast_to(x, sizes_of(shape))


@_class("DynamicStitch")
def _stitch(indices, data):
    """The rows of all `data` at their indices; of several for one place the last one."""
    count = 1 + max(int(_places.eager("DynamicStitch", each).max(initial=-1)) for each in indices)
    tail = data[0].shape[indices[0].ndim :]
    made = ops.zeros((count, *tail), data[0].dtype)
    for at, rows in zip(indices, data, strict=True):
        made = ops.scatter_nd_update(made, ops.reshape(at, (-1, 1)), ops.reshape(rows, (-1, *tail)), "update")
    return made


@_class("SiLU")
def _silu(x):
    """x sigmoid(x)."""
    return ops.silu(x)


@_class("ReLUV3")
def _relu(x):
    """x where it is positive, else 0."""
    return _math.relu(x)


@_class("ArgminV2")
def _argmin(x, axis=-1):
    """The place of the least element along the axis."""
    axis = axis.item() if isinstance(axis, muster.Tensor) else axis
    return ops.cast(ops.argmin(x, axis), muster.int32)


@_class("BatchToSpaceNDV2")
def _batch_to_space(x, block_shape, crops):
    """BatchToSpaceND with settings as inputs."""
    from mindspore.ops import _moves

    blocks, cut = (
        each.asnumpy().tolist() if isinstance(each, muster.Tensor) else each for each in (block_shape, crops)
    )
    return _moves.batch_to_space_nd(x, blocks, cut)


globals().update(_made)
__all__ = sorted(_made)
