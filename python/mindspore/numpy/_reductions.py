"""Sums, means and extremes along axes."""

import builtins
import math

import muster
from mindspore.numpy import _shared, array_ops
from mindspore.numpy._shared import (
    axes_of,
    axis_of,
    cast,
    dtype_named,
    is_float,
    real,
    tensor,
)
from muster import ops

# ---- Sums and extremes -------------------------------------------------------------------------------------


def _summed(a, axes, keepdims):
    """The sum over axes; of whole numbers and bool, int64."""
    a = a if is_float(a.dtype) else ops.cast(a, muster.int64)
    return ops.reduce_sum(a, axes, keepdims) if axes else a


def sum(a, axis=None, dtype=None, keepdims=False, initial=None):
    """The sum over the axes, plus `initial`; of whole numbers int64."""
    a = cast(tensor(a), dtype)
    total = _summed(a, axes_of(axis, a.ndim, "sum"), keepdims)
    total = total if initial is None else ops.add(total, initial)
    return cast(total, dtype)


def _mean(a, axes, keepdims):
    return ops.reduce_mean(a, axes, keepdims) if axes else a


def mean(a, axis=None, keepdims=False, dtype=None):
    """The mean over the axes, in the dtype of `a`, so rounded of whole numbers, or in `dtype`."""
    a = tensor(a)
    if dtype is not None:
        a = cast(a, dtype)
    elif a.dtype == muster.bool_:
        raise TypeError("mean: bool has no mean in its own dtype: give a dtype, as float32")
    found = _mean(real(a), axes_of(axis, a.ndim, "mean"), keepdims)
    return cast(found, dtype or a.dtype)


def average(x, axis=None, weights=None, returned=False):
    """The mean over an axis, weighed; with `returned`, and the sum of the weights."""
    x = real(x)
    if weights is None:
        found = _mean(x, axes_of(axis, x.ndim, "average"), False)
        count = tensor(x.size / builtins.max(found.size, 1), x.dtype)
        return (found, ops.broadcast_to(count, found.shape)) if returned else found
    weights = cast(tensor(weights), x.dtype)
    if weights.shape != x.shape:
        if axis is None or weights.ndim != 1 or isinstance(axis, tuple):
            raise ValueError(f"average: weights {weights.shape} fit neither {x.shape} nor one axis")
        at = axis_of(axis, x.ndim, "average")
        weights = ops.reshape(weights, [-1 if each == at else 1 for each in range(x.ndim)])
        weights = ops.broadcast_to(weights, x.shape)
    axes = axes_of(axis, x.ndim, "average")
    total = ops.reduce_sum(weights, axes)
    found = ops.div(ops.reduce_sum(ops.mul(x, weights), axes), total)
    return (found, total) if returned else found


def _spread(x, axis, ddof, keepdims, name):
    x = real(x)
    axes = axes_of(axis, x.ndim, name)
    if not isinstance(ddof, int | float) or ddof < 0:
        raise ValueError(f"{name}: ddof is a number from 0, not {ddof!r}")
    count = math.prod(x.shape[at] for at in axes)
    away = ops.square(ops.sub(x, ops.reduce_mean(x, axes, True)))
    return ops.div(ops.reduce_sum(away, axes, keepdims), float(count - ddof))


def var(x, axis=None, ddof=0, keepdims=False):
    """The variance over the axes, divided by the number of elements less ddof."""
    return _spread(x, axis, ddof, keepdims, "var")


def std(x, axis=None, ddof=0, keepdims=False):
    """The square root of the variance."""
    return ops.sqrt(_spread(x, axis, ddof, keepdims, "std"))


def _extreme(a, axis, keepdims, initial, where, reduce, pick, name):
    a = tensor(a)
    if where is not True and where is not None:
        if initial is None:
            raise ValueError(f"{name}: `where` leaves elements out: `initial` is needed, too")
        a = array_ops.where(where, a, tensor(initial, a.dtype))
    axes = axes_of(axis, a.ndim, name)
    found = reduce(a, axes, keepdims) if axes else a
    return found if initial is None else pick(found, tensor(initial, a.dtype))


def max(a, axis=None, keepdims=False, initial=None, where=True):
    """The greatest element over the axes, at least `initial`; `where` says which elements count."""
    return _extreme(a, axis, keepdims, initial, where, ops.reduce_max, ops.maximum, "max")


def min(a, axis=None, keepdims=False, initial=None, where=True):
    """The smallest element over the axes, at most `initial`; `where` says which elements count."""
    return _extreme(a, axis, keepdims, initial, where, ops.reduce_min, ops.minimum, "min")


def amax(a, axis=None, keepdims=False, initial=None, where=True):
    """The same as max."""
    return max(a, axis, keepdims, initial, where)


def amin(a, axis=None, keepdims=False, initial=None, where=True):
    """The same as min."""
    return min(a, axis, keepdims, initial, where)


def ptp(x, axis=None, keepdims=False):
    """The greatest less the smallest element over the axes."""
    return ops.sub(max(x, axis, keepdims), min(x, axis, keepdims))


def _index_of(a, axis, index_of, name):
    a = tensor(a)
    if axis is None:
        a, axis = ops.reshape(a, (-1,)), 0
    return index_of(a, axis_of(axis, a.ndim, name))


def argmax(a, axis=None):
    """The first index of the greatest element, of all or along an axis, int64."""
    return ops.cast(_index_of(a, axis, ops.argmax, "argmax"), muster.int64)


def argmin(a, axis=None):
    """The first index of the smallest element, of all or along an axis, int32."""
    return ops.cast(_index_of(a, axis, ops.argmin, "argmin"), muster.int32)


def count_nonzero(x, axis=None, keepdims=False):
    """How many elements over the axes are not 0, int32."""
    x = tensor(x)
    there = ops.cast(cast(x, muster.bool_), muster.int32)
    return ops.cast(_summed(there, axes_of(axis, x.ndim, "count_nonzero"), keepdims), muster.int32)


_NARROW = {"bool": muster.int32, "int8": muster.int32, "int16": muster.int32, "uint8": muster.int32}


def _running(a, axis, compute, name):
    if axis is None:
        a, axis = ops.reshape(a, (-1,)), 0
    return compute(a, axis_of(axis, a.ndim, name))


def cumsum(a, axis=None, dtype=None):
    """The sums of the elements up to each, along an axis or of all; of narrow whole numbers and bool int32.

    `dtype` casts the sums; the dtype of `a` itself leaves them as they are.
    """
    a, dtype = tensor(a), dtype_named(dtype)
    found = _running(cast(a, _NARROW.get(a.dtype.name)), axis, ops.cumsum, "cumsum")
    return found if dtype == a.dtype else cast(found, dtype)


def cumprod(a, axis=None, dtype=None):
    """The products of the elements up to each, along an axis or of all; of narrow whole numbers int32.

    Of uint8 and uint16 they are uint32; those of float16 are computed in float32. `dtype` casts the products.
    """
    a = tensor(a)
    wide = _NARROW | {"uint8": muster.uint32, "uint16": muster.uint32, "float16": muster.float32}
    found = _running(cast(a, wide.get(a.dtype.name)), axis, ops.cumprod, "cumprod")
    return cast(found, dtype or (a.dtype if is_float(a.dtype) else None))


# ---- Without what is no number -----------------------------------------------------------------------------


def _numbers(a, otherwise):
    """`a` with `otherwise` for what is no number, and whether each is a number."""
    a = tensor(a)
    there = ops.logical_not(ops.isnan(a))
    return (ops.select(there, a, tensor(otherwise, a.dtype)) if is_float(a.dtype) else a), there


def nansum(a, axis=None, dtype=None, keepdims=False):
    """The sum over the axes of what is a number."""
    filled = _numbers(a, 0)[0]
    return cast(sum(filled, axis, dtype, keepdims), dtype or filled.dtype)


def nancumsum(a, axis=None, dtype=None):
    """The sums of the numbers up to each element, along an axis or of all."""
    return cumsum(_numbers(a, 0)[0], axis, dtype)


def nanmax(a, axis=None, dtype=None, keepdims=False):
    """The greatest number over the axes."""
    return cast(max(_numbers(a, -math.inf)[0], axis, keepdims), dtype)


def nanmin(a, axis=None, dtype=None, keepdims=False):
    """The smallest number over the axes."""
    return cast(min(_numbers(a, math.inf)[0], axis, keepdims), dtype)


def _nan_mean(a, axis, keepdims):
    kept, there = _numbers(real(a), 0)
    axes = axes_of(axis, kept.ndim, "nanmean")
    count = _summed(ops.cast(there, kept.dtype), axes, keepdims)
    return ops.div(_summed(kept, axes, keepdims), count), count


def nanmean(a, axis=None, dtype=None, keepdims=False):
    """The mean over the axes of what is a number."""
    return cast(_nan_mean(a, axis, keepdims)[0], dtype)


def nanvar(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """The variance over the axes of what is a number, divided by how many less ddof."""
    a = real(a)
    average_of, count = _nan_mean(a, axis, True)
    away = _summed(
        _numbers(ops.square(ops.sub(a, average_of)), 0)[0], axes_of(axis, a.ndim, "nanvar"), keepdims
    )
    count = ops.reshape(count, away.shape)
    return cast(ops.div(away, ops.sub(count, float(ddof))), dtype)


def nanstd(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """The square root of nanvar."""
    return cast(ops.sqrt(nanvar(a, axis, None, ddof, keepdims)), dtype)


__all__ = _shared.public(globals(), __name__)
