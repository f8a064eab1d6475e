"""Members of Tensor: functions of numbers, order and random numbers."""

import builtins

import muster
from mindspore import ops as named
from mindspore.numpy import array_creations
from mindspore.numpy._shared import cast
from muster import ops

# ---- Numbers -----------------------------------------------------------------------------------------------


def _scaled(other, alpha):
    return other if alpha == 1 else ops.mul(other, alpha)


def add(self, other, *, alpha=1):
    """self + alpha other, shapes broadcast."""
    return self + _scaled(other, alpha)


def sub(self, other=None, alpha=1, *, y=None):
    """self - alpha other, shapes broadcast."""
    return self - _scaled(y if other is None else other, alpha)


def subtract(self, other, alpha=1):
    """The same as sub."""
    return sub(self, other, alpha)


def clip(self, min=None, max=None, *, xmin=None, xmax=None):
    """self between two bounds, numbers or tensors; one may be left out."""
    return named.clamp(self, xmin if min is None else min, xmax if max is None else max)


def round(self, decimals=0):
    """self rounded to `decimals` digits behind the point, halves to the even number."""
    from mindspore.numpy._elementwise import around

    return around(self, decimals)


def __round__(self, digits=None):  # noqa: N807 - it becomes a method
    """round(tensor, digits): the elements rounded, a tensor in either case."""
    return round(self, digits or 0)


def softmax(self, axis=-1, dtype=None, *, dim=None):
    """e^x over its sum along an axis."""
    return ops.softmax(cast(self, dtype), axis if dim is None else dim)


def allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close to those of other, as a bool of Python."""
    return builtins.bool(ops.reduce_all(named.isclose(self, other, rtol, atol, equal_nan)).item())


def invert(self):
    """All bits turned; of bool, not x."""
    from mindspore.numpy._elementwise import invert

    return invert(self)


def trace(self, offset=0, axis1=0, axis2=1, dtype=None):
    """The sum of the diagonal of two axes: of whole numbers int64, unless `dtype` says otherwise."""
    return array_creations.trace(self, offset, axis1, axis2, dtype)


# ---- Order -------------------------------------------------------------------------------------------------


def argsort(self, axis=-1, descending=False, stable=False, *, dim=None):
    """The indices that bring the elements along an axis into order, int32."""
    return ops.cast(named.sort(self, axis if dim is None else dim, descending)[1], muster.int32)


def sort(self, axis=-1, descending=False, stable=False, *, dim=None):
    """(the elements in order along an axis, their indices int32); equal ones keep their order."""
    return named.sort(self, axis if dim is None else dim, descending)


def kthvalue(self, k, dim=-1, keepdim=False):
    """(the k-th smallest element along an axis, counted from 1, its index int64)."""
    size = self.shape[dim]
    if not 1 <= k <= size:
        raise ValueError(f"kthvalue: k is from 1 to {size}, not {k}")
    values, places = named.sort(self, dim)
    found = named.narrow(values, dim % self.ndim, k - 1, 1), named.narrow(places, dim % self.ndim, k - 1, 1)
    found = found[0], ops.cast(found[1], muster.int64)
    return found if keepdim else tuple(ops.squeeze(each, dim) for each in found)


def median(self, axis=-1, keepdims=False, *, dim=None, keepdim=False):
    """(values, indices): the lower of the two middle elements along an axis, or the first NaN."""
    return named.median(self, axis if dim is None else dim, keepdims or keepdim)


def searchsorted(self, v, side="left", sorter=None):
    """Where v would stand in these ascending elements, int32."""
    from mindspore.numpy._statistics import searchsorted

    return searchsorted(self, v, side, sorter)


def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The elements in order, each once; and where each is, and how often: not inside of a graph."""
    import numpy

    values, inverse, counts = numpy.unique(self.asnumpy(), return_inverse=True, return_counts=True, axis=dim)
    shape = self.shape if dim is None else (self.shape[dim],)
    parts = [muster.Tensor(values)]
    if return_inverse:
        parts.append(muster.Tensor(inverse.reshape(shape).astype(numpy.int64)))
    if return_counts:
        parts.append(muster.Tensor(counts.astype(numpy.int64)))
    return parts[0] if len(parts) == 1 else tuple(parts)


def remainder(self, other=None, *, divisor=None):
    """What is left of a division, with the sign of the divisor."""
    return named.remainder(self, divisor if other is None else other)
