"""Members of Tensor: sums, means and extremes."""

import builtins

import muster
from mindspore import _compiled
from mindspore import ops as named
from mindspore.numpy import _reductions, _shared
from mindspore.numpy._shared import axes_of, cast, is_float
from muster import ops


def _axes(tensor, axis, dim, name):
    axis = dim if axis is None else axis
    return None if axis is None or axis == () else axes_of(axis, builtins.max(tensor.ndim, 1), name)


def _kept(tensor, dtype):
    """The dtype of a sum or a product: of wider unsigned numbers their own."""
    return tensor.dtype if dtype is None and tensor.dtype.name in ("uint16", "uint32", "uint64") else dtype


def sum(self, axis=None, *others, dtype=None, keepdims=False, initial=None, dim=None, keepdim=False):
    """The sum over the axes, plus `initial`; of whole numbers and bool int64.

    sum(axis, dtype, keepdims, initial) or sum(dim, keepdim, dtype=...).
    """
    if others and isinstance(others[0], builtins.bool):
        others = (dtype, *others)
    given = dict(zip(("dtype", "keepdims", "initial"), others, strict=False))
    dtype, keepdims, initial = ({"dtype": dtype, "keepdims": keepdims, "initial": initial} | given).values()
    axes = _axes(self, axis, dim, "sum")
    return _reductions.sum(self, axes, _kept(self, dtype), keepdims or keepdim, initial)


def mean(self, axis=None, keep_dims=False, *, dim=None, keepdim=False, dtype=None):
    """The mean over the axes, in the dtype of the tensor, or in `dtype`."""
    return _reductions.mean(self, _axes(self, axis, dim, "mean"), keep_dims or keepdim, dtype)


def prod(self, axis=None, keep_dims=False, dtype=None, *, dim=None, keepdim=False):
    """The product over the axes; of whole numbers and bool int64."""
    kept = cast(self, dtype)
    kept = kept if is_float(kept.dtype) else ops.cast(kept, muster.int64)
    found = ops.reduce_prod(kept, _axes(self, axis, dim, "prod"), keep_dims or keepdim)
    return cast(found, _kept(self, dtype))


def all(self, axis=None, keep_dims=False, *, dim=None, keepdim=False):
    """Whether every element over the axes is true, as bool."""
    return ops.reduce_all(cast(self, muster.bool_), _axes(self, axis, dim, "all"), keep_dims or keepdim)


def any(self, axis=None, keep_dims=False, *, dim=None, keepdim=False):
    """Whether an element over the axes is true, as bool."""
    return ops.reduce_any(cast(self, muster.bool_), _axes(self, axis, dim, "any"), keep_dims or keepdim)


def _extreme(tensor, position, dim, keepdim, older, numpy_like, with_index):
    """(values, indices) by an axis as a position or `dim`; by a name of `older` the values alone.

    A call chooses one of MindSpore's two methods by the names it uses, also where these say their
    default. One without names is the older method in compiled code.
    """
    said = {name: value for name, value in older.items() if value is not ...}
    given = dict(zip(("axis", "keepdims"), position, strict=False)) | said
    axis = given.get("axis") if dim is None else dim
    keepdims = axis is not None and given.get("keepdims", keepdim is not ... and keepdim)
    axis = None if axis == () else axis
    initial, where = said.get("initial"), said.get("where", True)
    is_older = bool(said) or (keepdim is ... and _compiled.is_compiled())
    alone = dim is None and is_older and not said.get("return_indices", False)
    if alone or not isinstance(axis, int):  # of several axes there is no index
        return numpy_like(tensor, axis, keepdims, initial, where)
    return with_index(tensor, axis, keepdims, initial=initial, where=None if where is True else where)


def max(
    self,
    *position,
    axis=...,
    keepdims=...,
    initial=...,
    where=...,
    return_indices=...,
    dim=None,
    keepdim=...,
):
    """The greatest element; (values, indices) by an axis as a position, `dim` or with `return_indices`.

    In code that MindSpore compiles an axis as a position gives the values alone.
    """
    older = {"axis": axis, "keepdims": keepdims, "initial": initial, "where": where}
    older["return_indices"] = return_indices
    return _extreme(self, position, dim, keepdim, older, _reductions.max, named.max)


def min(
    self,
    *position,
    axis=...,
    keepdims=...,
    initial=...,
    where=...,
    return_indices=...,
    dim=None,
    keepdim=...,
):
    """The smallest element; (values, indices) by an axis as a position, `dim` or with `return_indices`.

    In code that MindSpore compiles an axis as a position gives the values alone.
    """
    older = {"axis": axis, "keepdims": keepdims, "initial": initial, "where": where}
    older["return_indices"] = return_indices
    return _extreme(self, position, dim, keepdim, older, _reductions.min, named.min)


def _index(tensor, axis, keepdims, index_of, dtype):
    found = index_of(tensor, axis)
    if keepdims:
        found = (
            ops.reshape(found, (1,) * tensor.ndim)
            if axis is None
            else ops.expand_dims(found, axis % tensor.ndim)
        )
    return ops.cast(found, dtype)


def argmax(self, axis=None, keepdims=False, *, dim=None, keepdim=False):
    """The first index of the greatest element, of all or along an axis, int64."""
    axis = dim if axis is None else axis
    return _index(self, axis, keepdims or keepdim, _reductions.argmax, muster.int64)


def argmin(self, axis=None, keepdims=False, *, dim=None, keepdim=False):
    """The first index of the smallest element, of all or along an axis, int32."""
    axis = dim if axis is None else axis
    return _index(self, axis, keepdims or keepdim, _reductions.argmin, muster.int32)


def argmax_with_value(self, axis=0, keep_dims=False):
    """(the greatest elements along an axis, their indices int64); of all, index 0, without an axis."""
    return named.max(self, axis, keep_dims)


def argmin_with_value(self, axis=0, keep_dims=False):
    """(the smallest elements along an axis, their indices int64); of all, index 0, without an axis."""
    return named.min(self, axis, keep_dims)


def std(self, axis=None, ddof=0, keepdims=False, *, dim=None, correction=None, keepdim=False):
    """The square root of the variance over the axes, over their number less ddof, or less `correction`."""
    if dim is not None and correction is None:
        correction = ddof  # as MindSpore's on a CPU
    return ops.sqrt(var(self, axis, ddof, keepdims, dim=dim, correction=correction, keepdim=keepdim))


def var(self, axis=None, ddof=0, keepdims=False, *, dim=None, correction=None, keepdim=False):
    """The variance over the axes, over their number less ddof; `dim` with `correction` (1) is another way."""
    if dim is not None or correction is not None:
        axis, ddof = dim if axis is None else axis, 1 if correction is None else correction
    return _reductions.var(self, None if axis == () else axis, ddof, keepdims or keepdim)


def ptp(self, axis=None, keepdims=False):
    """The greatest less the smallest element over the axes."""
    return _reductions.ptp(self, axis, keepdims)


def count_nonzero(self, axis=None, keep_dims=False, dtype=muster.int32, *, dim=None):
    """How many elements over the axes are not 0."""
    axis = dim if axis is None or axis == () else axis
    return cast(_reductions.count_nonzero(self, axis, keep_dims), dtype)


def cumsum(self, axis=None, dtype=None, *, dim=None):
    """The sums of the elements up to each, of all or along an axis; of narrow whole numbers and bool int32.

    `dtype` casts the sums; the dtype of the tensor itself leaves them as they are.
    """
    return _reductions.cumsum(self, dim if axis is None else axis, dtype)


def norm(self, ord=None, dim=None, keepdim=False, *, dtype=None):
    """The norm of vectors or matrices; without `ord` and `dim` the root of the sum of squares of all."""
    return named.norm(self, ord, dim, keepdim, dtype=dtype)


def sum_to_size(self, *size):
    """The sum over axes that broadcasting to this shape from `size` would have made."""
    shape = _shared.shape_of(size[0] if len(size) == 1 else size)
    away = self.ndim - len(shape)
    if away < 0:
        raise ValueError(f"sum_to_size: {self.shape} has fewer axes than {shape}")
    axes = [at for at in builtins.range(self.ndim) if at < away or shape[at - away] == 1 != self.shape[at]]
    for at, wanted in enumerate(shape):
        if wanted not in (1, self.shape[at + away]):
            raise ValueError(f"sum_to_size: {self.shape} is no broadcast of {shape}")
    return ops.reshape(ops.reduce_sum(self, axes, True) if axes else self, shape)
