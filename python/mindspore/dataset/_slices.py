"""Columns of which each worker reads a slice, as a dataset_strategy says: the batch is joined from them."""

import math

import muster
from mindspore import _names

_chosen = {"cuts": ()}


def choose(strategy) -> bool:
    """Takes a dataset_strategy: for each column its cuts, and the number of each worker's slice (empty: in
    the order of the workers). Gives whether columns come in slices, cut along more than their rows. Training,
    evaluations and loops then join them."""
    slices = any(math.prod(cuts[1:]) > 1 for cuts, _ in strategy)
    if not slices:
        strategy = ()
    _chosen["cuts"] = [cuts for cuts, _ in strategy]
    muster._core._set_column_slices(_chosen["cuts"], [numbers for _, numbers in strategy])
    return slices


def are_chosen() -> bool:
    """Whether columns come in slices."""
    return bool(_chosen["cuts"])


def joined(row):
    """A row of columns as all workers have it together. Every worker calls it with its slices."""
    cuts = _chosen["cuts"]
    return [
        _joined(at, column) if at < len(cuts) and math.prod(cuts[at][1:]) > 1 else column
        for at, column in enumerate(row)
    ]


def _joined(at, column):
    whole = muster._core._joined_slices(at, column)
    return whole if isinstance(column, muster.Tensor) else whole.asnumpy()


__getattr__ = _names.missing(__name__)
