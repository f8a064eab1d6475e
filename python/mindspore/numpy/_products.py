"""Products of vectors and matrices, and norms."""

import builtins
import math

from mindspore.numpy import _shared, array_ops
from mindspore.numpy._elementwise import multiply
from mindspore.numpy._shared import (
    axes_of,
    axis_of,
    cast,
    is_float,
    moved,
    real,
    same_dtype,
    tensor,
)
from muster import ops


def _contracted(a, b, first, second):
    """The sum of products over the axes `first` of a and `second` of b; the other axes follow each other."""
    a, b = same_dtype([a, b])
    rest = [[at for at in range(each.ndim) if at not in axes] for each, axes in ((a, first), (b, second))]
    inner_size = math.prod(a.shape[at] for at in first)
    if [a.shape[at] for at in first] != [b.shape[at] for at in second]:
        raise ValueError(f"axes {first} of {a.shape} and {second} of {b.shape} differ in size")
    rows = ops.reshape(array_ops.transpose(a, [*rest[0], *first]), (-1, inner_size))
    columns = ops.reshape(array_ops.transpose(b, [*second, *rest[1]]), (inner_size, -1))
    shape = [*(a.shape[at] for at in rest[0]), *(b.shape[at] for at in rest[1])]
    return ops.reshape(_product(rows, columns), shape)


def _product(rows, columns):
    """The product of matrices; of whole numbers exact, term by term."""
    if is_float(rows.dtype):
        return ops.matmul(rows, columns)
    return cast(
        ops.reduce_sum(
            ops.mul(ops.expand_dims(rows, rows.ndim), ops.expand_dims(columns, columns.ndim - 2)), -2
        ),
        rows.dtype,
    )


def dot(a, b):
    """The sum of products over the last axis of a and the last but one of b (its only one of one)."""
    a, b = tensor(a), tensor(b)
    if a.ndim == 0 or b.ndim == 0:
        return multiply(a, b)
    return _contracted(a, b, [a.ndim - 1], [builtins.max(b.ndim - 2, 0)])


def inner(a, b):
    """The sum of products over the last axes."""
    a, b = tensor(a), tensor(b)
    if a.ndim == 0 or b.ndim == 0:
        return multiply(a, b)
    return _contracted(a, b, [a.ndim - 1], [b.ndim - 1])


def outer(a, b):
    """The product of each element of a with each of b, as a matrix."""
    return multiply(ops.reshape(tensor(a), (-1, 1)), ops.reshape(tensor(b), (1, -1)))


def tensordot(a, b, axes=2):
    """The sum of products over axes: the last ones of a and first ones of b, or (axes of a, axes of b)."""
    a, b = tensor(a), tensor(b)
    if isinstance(axes, int):
        first, second = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        first, second = (
            list(axes_of(each, one.ndim, "tensordot")) for each, one in zip(axes, (a, b), strict=True)
        )
    return _contracted(a, b, first, second)


def matmul(x1, x2, dtype=None):
    """The product of matrices, or of a matrix and an axis; axes in front broadcast."""
    x1, x2 = same_dtype([tensor(x1), tensor(x2)])
    if is_float(x1.dtype):
        return cast(ops.matmul(x1, x2), dtype)
    rows = ops.expand_dims(x1, 0) if x1.ndim == 1 else x1
    columns = ops.expand_dims(x2, 1) if x2.ndim == 1 else x2
    made = _product(rows, columns)
    dropped = [at for at, given in ((-2, x1), (-1, x2)) if given.ndim == 1]
    return cast(array_ops.squeeze(made, tuple(dropped)) if dropped else made, dtype)


def multi_dot(arrays):
    """The product of several matrices; the first and the last may have one axis."""
    result = tensor(arrays[0])
    for each in arrays[1:]:
        result = matmul(result, each)
    return result


def matrix_power(a, n):
    """The product of n square matrices, of their inverses for n below 0."""
    from mindspore.ops import _lapack

    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"matrix_power: n is a whole number, not {type(n).__name__}")
    return _lapack.matrix_power(tensor(a), n)


def kron(a, b):
    """Each element of a times the whole of b, in its place."""
    a, b = same_dtype([tensor(a), tensor(b)])
    ndim = builtins.max(a.ndim, b.ndim)
    a, b = (ops.reshape(each, (1,) * (ndim - each.ndim) + tuple(each.shape)) for each in (a, b))
    spread = ops.reshape(a, [size for each in a.shape for size in (each, 1)])
    tiled = ops.reshape(b, [size for each in b.shape for size in (1, each)])
    shape = [first * second for first, second in zip(a.shape, b.shape, strict=True)]
    return ops.reshape(ops.mul(spread, tiled), shape)


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The cross product of vectors of two or three elements."""
    a, b = same_dtype([tensor(a), tensor(b)])
    axisa, axisb, axisc = (axis,) * 3 if axis is not None else (axisa, axisb, axisc)
    a, b = (
        moved(each, axis_of(at, each.ndim, "cross"), each.ndim - 1) for each, at in ((a, axisa), (b, axisb))
    )
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError(f"cross: vectors have two or three elements, not {a.shape[-1]} and {b.shape[-1]}")
    flat = a.shape[-1] == b.shape[-1] == 2
    x, y = ([each[..., at] for at in range(each.shape[-1])] for each in (a, b))
    x, y = (each if len(each) == 3 else [*each, ops.zeros_like(each[0])] for each in (x, y))
    parts = [ops.sub(ops.mul(x[i], y[j]), ops.mul(x[j], y[i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    if flat:
        return parts[2]
    made = ops.stack(parts, parts[0].ndim)
    return moved(made, made.ndim - 1, axis_of(axisc, made.ndim, "cross"))


def norm(x, ord=None, axis=None, keepdims=False):
    """The norm of a vector or matrix along an axis or two; None is the root of the sum of squares."""
    x = real(x)
    if axis is None and (ord is None or (ord == "fro" and x.ndim == 2) or (ord == 2 and x.ndim == 1)):
        found = ops.sqrt(ops.reduce_sum(ops.square(x)))
        return ops.reshape(found, (1,) * x.ndim) if keepdims else found
    axes = axes_of(axis, x.ndim, "norm")
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ValueError(f"norm: a vector or a matrix is needed, not the axes {axes} of {x.shape}")


def _vector_norm(x, order, axes, keepdims):
    if order in (math.inf, -math.inf):
        return (ops.reduce_max if order > 0 else ops.reduce_min)(ops.abs(x), axes, keepdims)
    if not isinstance(order, int | float):
        raise ValueError(f"norm: ord of a vector is a number, not {order!r}")
    if order == 0:
        return ops.reduce_sum(ops.cast(ops.not_equal(x, 0), x.dtype), axes, keepdims)
    if order == 1:
        return ops.reduce_sum(ops.abs(x), axes, keepdims)
    if order == 2:
        return ops.sqrt(ops.reduce_sum(ops.square(x), axes, keepdims))
    return ops.pow(ops.reduce_sum(ops.pow(ops.abs(x), float(order)), axes, keepdims), 1 / order)


def _matrix_norm(x, order, axes, keepdims):
    if order in (None, "fro"):
        return ops.sqrt(ops.reduce_sum(ops.square(x), axes, keepdims))
    if order not in (1, -1, math.inf, -math.inf):
        raise NotImplementedError(
            f"norm: ord of a matrix is None, 'fro', 1, -1, inf or -inf here, not {order!r}"
        )
    row, column = axes
    summed, kept = (row, column) if order in (1, -1) else (column, row)
    sums = ops.reduce_sum(ops.abs(x), summed, True)
    found = (ops.reduce_max if order > 0 else ops.reduce_min)(sums, kept, True)
    return found if keepdims else array_ops.squeeze(found, axes)


__all__ = _shared.public(globals(), __name__)
