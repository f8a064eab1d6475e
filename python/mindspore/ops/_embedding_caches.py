"""mindspore.ops.operations._embedding_cache_ops: the ops of caches before tables of embeddings."""

import muster
from mindspore.ops import _places
from mindspore.ops._primitive import class_keeper
from muster import ops

_made = {}
_class = class_keeper(_made)


@_class("SubAndFilter")
def _kept_of(input_x, max_num, offset):
    """(input_x - offset where that is from 0 to below max_num, the places of those)."""
    import numpy

    moved = _places.eager("SubAndFilter", input_x) - numpy.asarray(int(offset), input_x.asnumpy().dtype)
    at = numpy.flatnonzero((moved >= 0) & (moved < int(max_num)))
    return muster.Tensor(moved.ravel()[at]), muster.Tensor(at.astype(moved.dtype))


@_class("MapUniform")
def _mapped(input, per_group_size, group_num):
    """Numbers dealt out to groups in turn: their places when group stands behind group."""
    group = ops.floor_div(input, group_num)
    return ops.add(ops.mul(ops.sub(input, ops.mul(group, group_num)), per_group_size), group)


@_class("PadAndShift")
def _shifted(input_x, cum_sum_arr, shift_idx):
    """-1 everywhere but for the first numbers of input_x, which stand between two of the sums."""
    import numpy

    numbers, sums = _places.eager("PadAndShift", input_x), _places.eager("PadAndShift", cum_sum_arr)
    start, end = sums[int(shift_idx)], sums[int(shift_idx) + 1]
    made = numpy.full(int(sums[-1]), -1, numbers.dtype)
    made[start:end] = numbers[: end - start]
    return muster.Tensor(made)


@_class("UpdateCache")
def _update_cache(input_x, indices, updates, max_num):
    """Writes rows of `updates` at `indices`; those below 0 and from max_num on are left out. Gives [0]."""
    import numpy

    chosen, limit = _places.eager("UpdateCache", indices), int(max_num)
    kept = (chosen >= 0) & (chosen < limit)
    rows = ops.reshape(updates, (-1, *input_x.shape[1:]))
    at = muster.Tensor(numpy.flatnonzero(kept).astype(numpy.int32))
    places = muster.Tensor(chosen[kept].reshape(-1, 1).astype(numpy.int32))
    ops.assign(input_x, _places.tensor_scatter_update(input_x, places, ops.gather(rows, at, 0)))
    return ops.zeros((1,), input_x.dtype)


globals().update(_made)
__all__ = sorted(_made)
