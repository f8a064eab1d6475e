"""Covariances, counts and bins."""

import builtins

import muster
from mindspore.numpy import _shared, array_ops, logic_ops
from mindspore.numpy._reductions import max, min
from mindspore.numpy._shared import (
    cast,
    real,
    same_dtype,
    tensor,
)
from mindspore.numpy.array_creations import diagonal, linspace
from muster import ops


def _observations(m, y, rowvar):
    """A row for each variable."""
    rows = []
    for each in (m,) if y is None else (m, y):
        each = real(each)
        if each.ndim > 2:
            raise ValueError(f"cov: one or two axes are needed, not {each.shape}")
        each = ops.reshape(each, (1, -1)) if each.ndim < 2 else each
        rows.append(each if rowvar or each.shape[0] == 1 else ops.transpose(each, (1, 0)))
    return ops.concat(same_dtype(rows), 0)


def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, dtype=None):
    """The covariances of variables, which are the rows (columns without `rowvar`)."""
    rows = cast(_observations(m, y, rowvar), dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = [cast(tensor(each), rows.dtype) for each in (fweights, aweights) if each is not None]
    shares = weights[0] if weights else None
    shares = ops.mul(*weights) if len(weights) == 2 else shares
    if shares is None:
        total, factor = None, float(rows.shape[1] - ddof)
        middle = ops.reduce_mean(rows, 1, True)
    else:
        total = ops.reduce_sum(shares)
        middle = ops.div(ops.reduce_sum(ops.mul(rows, shares), 1, True), total)
        factor = ops.sub(total, float(ddof))
        if aweights is not None and ddof:
            lost = ops.reduce_sum(ops.mul(shares, cast(tensor(aweights), rows.dtype)))
            factor = ops.sub(total, ops.div(ops.mul(lost, float(ddof)), total))
    away = ops.sub(rows, middle)
    other = away if shares is None else ops.mul(away, shares)
    made = ops.div(ops.matmul(other, ops.transpose(away, (1, 0))), factor)
    return array_ops.squeeze(made)


def corrcoef(x, y=None, rowvar=True, dtype=None):
    """The correlations of variables, which are the rows (columns without `rowvar`), from -1 to 1."""
    made = cov(x, y, rowvar)
    if made.ndim == 0:
        return cast(ops.div(made, made), dtype)
    deviations = ops.sqrt(diagonal(made))
    made = ops.div(made, ops.mul(ops.expand_dims(deviations, 1), ops.expand_dims(deviations, 0)))
    return cast(ops.clip(made, -1.0, 1.0), dtype)


def bincount(x, weights=None, minlength=0, length=None):
    """How often each whole number from 0 on is there, or the sum of its weights, float32."""
    x = ops.reshape(tensor(x), (-1,))
    size = length or builtins.max(int(_shared.host(x).max(initial=-1)) + 1, minlength)
    if size == 0:
        return ops.zeros((0,), muster.float32)
    hits = ops.cast(ops.equal(ops.expand_dims(ops.arange(size), 1), x), muster.float32)
    hits = hits if weights is None else ops.mul(hits, cast(tensor(weights), muster.float32))
    return ops.reduce_sum(hits, 1)


def searchsorted(a, v, side="left", sorter=None):
    """Where v would stand in the ascending `a`: in front of equal elements, or behind them, int32."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    a, v = tensor(a), tensor(v)
    a = a if sorter is None else ops.gather(a, tensor(sorter), 0)
    before = (logic_ops.less if side == "left" else logic_ops.less_equal)(a, ops.expand_dims(v, v.ndim))
    return ops.cast(ops.reduce_sum(ops.cast(before, muster.int32), -1), muster.int32)


def digitize(x, bins, right=False):
    """The number of the bin of each element, int32; bins ascend or descend."""
    x, bins = tensor(x), tensor(bins)
    if bins.size == 0:
        return ops.zeros(x.shape, muster.int32)
    edges = _shared.host(bins)
    side = "left" if right else "right"
    if edges[0] <= edges[-1]:
        return searchsorted(bins, x, side)
    turned = searchsorted(ops.flip(bins, (0,)), x, "right" if right else "left")
    return ops.sub(tensor(bins.size, muster.int32), turned)


def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The edges of bins that hold all elements, or those in `range`; tensors and lists are edges already."""
    if not isinstance(bins, int):
        return tensor(bins)
    a = real(ops.reshape(tensor(a), (-1,)))
    low, high = (max(a), min(a))[::-1] if range is None and a.size else (range or (0.0, 1.0))
    low, high = (float(each.item() if isinstance(each, muster.Tensor) else each) for each in (low, high))
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, bins + 1)


def _bin_numbers(x, edges):
    """The bin of each element: the last has both its edges; outside, as many as there are bins."""
    count = edges.size - 1
    edges = real(edges)
    place = ops.sub(searchsorted(edges, x, "right"), 1)
    place = ops.select(ops.equal(x, edges[-1]), tensor(count - 1, muster.int32), place)
    outside = ops.logical_or(ops.less(place, 0), ops.greater_equal(place, count))
    return ops.select(outside, tensor(count, muster.int32), place)


def histogramdd(sample, bins=10, range=None, weights=None, density=False):
    """(how many rows fall into each bin, the edges of each axis); `density` makes the whole 1."""
    if isinstance(sample, list | tuple):
        sample = ops.stack([real(each) for each in sample], 1)
    sample = real(sample)
    sample = ops.expand_dims(sample, 1) if sample.ndim == 1 else sample
    columns = ops.unstack(sample, 1)
    every = [bins] * len(columns) if isinstance(bins, int) or not isinstance(bins, list | tuple) else bins
    ranges = [None] * len(columns) if range is None else range
    edges = [histogram_bin_edges(*each) for each in zip(columns, every, ranges, strict=True)]
    hits = None
    for column, edge in zip(columns, edges, strict=True):
        mine = ops.cast(
            ops.equal(
                ops.expand_dims(_bin_numbers(column, edge), 1),
                ops.cast(ops.arange(edge.size - 1), muster.int32),
            ),
            muster.float32,
        )
        rows = sample.shape[0]
        if hits is None:
            hits = mine
        else:
            hits = ops.reshape(ops.mul(ops.expand_dims(hits, 2), ops.expand_dims(mine, 1)), (rows, -1))
    if weights is not None:
        hits = ops.mul(hits, ops.reshape(real(weights), (-1, 1)))
    count = ops.reshape(ops.reduce_sum(hits, 0), [edge.size - 1 for edge in edges])
    if density:
        count = ops.div(count, ops.reduce_sum(count))
        for at, edge in enumerate(edges):
            widths = real(ops.sub(edge[1:], edge[:-1]))
            count = ops.div(
                count, ops.reshape(widths, [-1 if each == at else 1 for each in builtins.range(len(edges))])
            )
    return count, edges


def histogram(a, bins=10, range=None, weights=None, density=False):
    """(how many elements fall into each bin, the edges of the bins); `density` makes the whole 1."""
    flat = ops.reshape(tensor(a), (-1,))
    weights = None if weights is None else ops.reshape(tensor(weights), (-1,))
    count, edges = histogramdd(flat, [bins], None if range is None else [range], weights, density)
    return count, edges[0]


def histogram2d(x, y, bins=10, range=None, weights=None, density=False):
    """(how many points fall into each bin, the edges along x, the edges along y)."""
    count, edges = histogramdd([x, y], bins, range, weights, density)
    return count, *edges


__all__ = _shared.public(globals(), __name__)
