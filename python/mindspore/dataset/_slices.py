"""Columns of which each worker reads a slice, as a dataset_strategy says: the batch is joined from them."""

import math

import muster
from mindspore import _names

_chosen = {"cuts": ()}


def choose(strategy) -> bool:
    """Takes a dataset_strategy: one tuple of cuts for each column. Gives whether columns come in slices, cut
    along more than their rows."""
    slices = any(math.prod(cuts[1:]) > 1 for cuts in strategy)
    _chosen["cuts"] = strategy if slices else ()
    return slices


def are_chosen() -> bool:
    """Whether columns come in slices."""
    return bool(_chosen["cuts"])


def joined(row):
    """A row of columns as all workers have it together. Every worker calls it with its slices."""
    return [
        _joined(column, _chosen["cuts"][at]) if at < len(_chosen["cuts"]) else column
        for at, column in enumerate(row)
    ]


def _joined(column, cuts):
    if math.prod(cuts[1:]) == 1:
        return column
    import numpy

    piece = column if isinstance(column, numpy.ndarray) else column.asnumpy()
    if len(cuts) != piece.ndim:
        raise ValueError(
            f"dataset_strategy: a column of shape {piece.shape} has {piece.ndim} dimensions, and its cuts "
            f"are {cuts}"
        )
    workers = muster.get_group_size()
    parts = math.prod(cuts)
    if workers % parts:
        raise ValueError(f"dataset_strategy: {cuts} are {parts} slices, and there are {workers} workers")
    gathered = muster.ops.all_gather(muster.Tensor(numpy.ascontiguousarray(piece))).asnumpy()
    # Slices are numbered in the order of the workers, the last dimension first; only those of its rows count.
    in_rows = parts // cuts[0]
    first = muster.get_rank() % parts // in_rows * in_rows
    slices = gathered.reshape(workers, *piece.shape)[first : first + in_rows]
    grid = slices.reshape(*cuts[1:], *piece.shape)
    count = len(cuts) - 1
    order = [count]
    for dim in range(count):
        order += [dim, count + 1 + dim]
    sizes = [piece.shape[0], *(cut * size for cut, size in zip(cuts[1:], piece.shape[1:], strict=True))]
    whole = numpy.ascontiguousarray(grid.transpose(order)).reshape(sizes)
    return whole if isinstance(column, numpy.ndarray) else muster.Tensor(whole)


__getattr__ = _names.missing(__name__)
