"""Functions of mindspore.mint that take other arguments than those of mindspore.ops."""

import builtins

import muster
from mindspore import _members as _members
from mindspore import ops as named
from mindspore.numpy import _products, _reductions, _shared, array_creations, array_ops
from mindspore.numpy._shared import axes_of, axis_of, cast, is_float
from muster import ops

# ---- Made --------------------------------------------------------------------------------------------------


def arange(start=0, end=None, step=1, *, dtype=None):
    """start, start + step, ... before end; int64, or float32 where one of them is a float."""
    start, end = (0, start) if end is None else (start, end)
    given = [value.item() if isinstance(value, muster.Tensor) else value for value in (start, end, step)]
    floating = builtins.any(isinstance(value, float) for value in given)
    return cast(ops.arange(*given), dtype or (muster.float32 if floating else muster.int64))


def linspace(start, end, steps, *, dtype=None):
    """`steps` numbers evenly apart from start to end, float32 unless `dtype` says otherwise."""
    return array_creations.linspace(start, end, steps, dtype=dtype)


def zeros(size, *, dtype=None):
    """A tensor of 0, float32 unless `dtype` says otherwise."""
    return ops.zeros(_shared.shape_of(size), dtype or muster.float32)


def ones(size, *, dtype=None):
    """A tensor of 1, float32 unless `dtype` says otherwise."""
    return ops.ones(_shared.shape_of(size), dtype or muster.float32)


def empty(*size, dtype=None, device=None):
    """A tensor whose elements mean nothing: they are 0 here."""
    shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    return ops.zeros(_shared.shape_of(shape), dtype or muster.float32)


def full(size, fill_value, *, dtype=None):
    """A tensor of one value, in the dtype of the value: int64, float32 or bool."""
    kind = muster.bool_ if isinstance(fill_value, bool) else muster.int64
    if isinstance(fill_value, float):
        kind = muster.float32
    return array_creations.full(size, fill_value, dtype or getattr(fill_value, "dtype", kind))


def zeros_like(input, *, dtype=None):
    """A tensor of 0 with the shape and dtype of another."""
    return ops.zeros(input.shape, dtype or input.dtype)


def ones_like(input, *, dtype=None):
    """A tensor of 1 with the shape and dtype of another."""
    return ops.ones(input.shape, dtype or input.dtype)


def empty_like(input, *, dtype=None, device=None):
    """A tensor with the shape and dtype of another, whose elements mean nothing: they are 0 here."""
    return zeros_like(input, dtype=dtype)


def full_like(input, fill_value, *, dtype=None):
    """A tensor of one value with the shape and dtype of another."""
    return array_creations.full(input.shape, fill_value, dtype or input.dtype)


def clone(input):
    """Another tensor of the same elements, through which gradients flow."""
    return ops.reshape(input, input.shape)


# ---- Sums and extremes -------------------------------------------------------------------------------------


def _axes(input, dim, name):
    return None if dim is None or dim == () else axes_of(dim, builtins.max(input.ndim, 1), name)


def sum(input, dim=None, keepdim=False, *, dtype=None):
    """The sum over the axes; of whole numbers and bool int64."""
    return _reductions.sum(input, _axes(input, dim, "sum"), dtype, keepdim)


def mean(input, dim=None, keepdim=False, *, dtype=None):
    """The mean over the axes, in the dtype of the tensor, or in `dtype`."""
    return _reductions.mean(input, _axes(input, dim, "mean"), keepdim, dtype)


def prod(input, dim=None, keepdim=False, *, dtype=None):
    """The product over an axis, of all by default; of whole numbers and bool int64."""
    kept = cast(input, dtype)
    kept = kept if is_float(kept.dtype) else ops.cast(kept, muster.int64)
    return cast(ops.reduce_prod(kept, _axes(input, dim, "prod"), keepdim), dtype)


def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """The sum over the axes of what is a number."""
    counts = dtype is None and input.dtype is muster.bool_
    return _reductions.nansum(input, _axes(input, dim, "nansum"), muster.int64 if counts else dtype, keepdim)


def all(input, dim=None, keepdim=False):
    """Whether every element over the axes is true, as bool."""
    return ops.reduce_all(cast(input, muster.bool_), _axes(input, dim, "all"), keepdim)


def any(input, dim=None, keepdim=False):
    """Whether an element over the axes is true, as bool."""
    return ops.reduce_any(cast(input, muster.bool_), _axes(input, dim, "any"), keepdim)


def amax(input, dim=(), keepdim=False):
    """The greatest elements over the axes."""
    return _reductions.max(input, _axes(input, dim, "amax"), keepdim)


def amin(input, dim=(), keepdim=False):
    """The smallest elements over the axes."""
    return _reductions.min(input, _axes(input, dim, "amin"), keepdim)


def _index(input, dim, keepdim, index_of):
    found = ops.cast(index_of(input, dim), muster.int64)
    if not keepdim:
        return found
    return ops.reshape(found, (1,) * input.ndim) if dim is None else ops.expand_dims(found, dim % input.ndim)


def argmax(input, dim=None, keepdim=False):
    """The first index of the greatest element, of all or along an axis, int64."""
    return _index(input, dim, keepdim, _reductions.argmax)


def argmin(input, dim=None, keepdim=False):
    """The first index of the smallest element, of all or along an axis, int64."""
    return _index(input, dim, keepdim, _reductions.argmin)


def max(input, dim=None, keepdim=False, *, other=None):
    """The greatest element; along an axis (values, indices); of two tensors the greater of each pair."""
    if isinstance(dim, muster.Tensor) or other is not None:
        return ops.maximum(input, dim if other is None else other)
    if dim is None:
        return _reductions.max(input)
    return ops.reduce_max(input, dim, keepdim), argmax(input, dim, keepdim)


def min(input, dim=None, keepdim=False, *, other=None):
    """The smallest element; along an axis (values, indices); of two tensors the smaller of each pair."""
    if isinstance(dim, muster.Tensor) or other is not None:
        return ops.minimum(input, dim if other is None else other)
    if dim is None:
        return _reductions.min(input)
    return ops.reduce_min(input, dim, keepdim), argmin(input, dim, keepdim)


def count_nonzero(input, dim=None):
    """How many elements over the axes are not 0, int64."""
    return ops.cast(_reductions.count_nonzero(input, _axes(input, dim, "count_nonzero")), muster.int64)


def var(input, dim=None, *, correction=1, keepdim=False):
    """The variance over the axes, divided by the number of elements less `correction`."""
    return _reductions.var(input, _axes(input, dim, "var"), correction, keepdim)


def std(input, dim=None, *, correction=1, keepdim=False):
    """The square root of the variance."""
    return ops.sqrt(var(input, dim, correction=correction, keepdim=keepdim))


def var_mean(input, dim=None, *, correction=1, keepdim=False):
    """(the variance, the mean) over the axes."""
    return var(input, dim, correction=correction, keepdim=keepdim), mean(input, dim, keepdim)


def std_mean(input, dim=None, *, correction=1, keepdim=False):
    """(the square root of the variance, the mean) over the axes."""
    return std(input, dim, correction=correction, keepdim=keepdim), mean(input, dim, keepdim)


def cumsum(input, dim, dtype=None):
    """The sums of the elements up to each along an axis; of whole numbers and bool int64."""
    kept = cast(input, dtype)
    kept = kept if is_float(kept.dtype) or dtype else ops.cast(kept, muster.int64)
    return ops.cumsum(kept, dim)


def cumprod(input, dim, dtype=None):
    """The products of the elements up to each along an axis, in their dtype, then cast to `dtype`."""
    return named.cumprod(input, dim, dtype)


def cummax(input, dim):
    """(the greatest elements up to each along an axis, their indices int64)."""
    values, places = named.cummax(input, dim)
    return values, ops.cast(places, muster.int64)


def cummin(input, dim):
    """(the smallest elements up to each along an axis, their indices int64)."""
    values, places = named.cummin(input, dim)
    return values, ops.cast(places, muster.int64)


def softmax(input, dim, *, dtype=None):
    """e^x over its sum along an axis; None is the last."""
    return ops.softmax(cast(input, dtype), -1 if dim is None else dim)


def norm(input, p="fro", dim=None, keepdim=False, *, dtype=None):
    """The p-norm over the axes, of all elements by default; 'fro' is 2."""
    input = cast(input, dtype)
    axes = axes_of(dim, input.ndim, "norm")
    return _products._vector_norm(input, 2 if p in ("fro", None) else p, axes, keepdim)


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norm of the difference of each row of x1 and each of x2."""
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ValueError(f"cdist: compute_mode is one of {', '.join(modes)}, not {compute_mode!r}")
    return named.cdist(x1, x2, p)


# ---- Order -------------------------------------------------------------------------------------------------


def sort(input, *, dim=-1, descending=False, stable=False):
    """(the elements in order along an axis, their indices int64)."""
    values, places = named.sort(input, dim, descending)
    return values, ops.cast(places, muster.int64)


def argsort(input, dim=-1, descending=False, stable=False):
    """The indices that bring the elements along an axis into order, int64."""
    return sort(input, dim=dim, descending=descending)[1]


def topk(input, k, dim=-1, largest=True, sorted=True):
    """(the k greatest, or smallest, elements along an axis, their indices int64)."""
    values, places = ops.topk(input, k, dim, largest)
    return values, ops.cast(places, muster.int64)


def kthvalue(input, k, dim=-1, keepdim=False):
    """(the k-th smallest element along an axis, counted from 1, its index int64)."""
    return input.kthvalue(k, dim, keepdim)


def median(input, dim=None, keepdim=False):
    """The middle element of all, the lower one of two, NaN where one is; along an axis (values, indices)."""
    if dim is None:
        return input.reshape(-1).median(0)[0]
    return input.median(dim, keepdim)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The elements in order, each once, and where each is, and how often: not inside of a graph."""
    return input.unique(sorted, return_inverse, return_counts, dim)


def histc(input, bins=100, min=0, max=0):
    """How many elements fall into each of equal bins from min to max, of all where both are 0."""
    return named.histc(input, bins, float(min), float(max))


def nonzero(input, *, as_tuple=False):
    """The indices of the elements that are not 0, a row for each, or a tuple of columns, int64."""
    return input.nonzero(as_tuple=as_tuple)


# ---- Numbers -----------------------------------------------------------------------------------------------


def add(input, other, *, alpha=1):
    """input + alpha other, shapes broadcast."""
    return ops.add(input, other if alpha == 1 else ops.mul(other, alpha))


def sub(input, other, *, alpha=1):
    """input - alpha other, shapes broadcast."""
    return ops.sub(input, other if alpha == 1 else ops.mul(other, alpha))


def round(input, *, decimals=0):
    """Each element rounded to `decimals` digits behind the point, halves to the even number."""
    return input.round(decimals)


def fix(input):
    """Each element without what stands behind its point."""
    return named.trunc(input)


def isnan(tensor):
    """Whether an element is no number, as bool."""
    return ops.isnan(tensor)


def equal(input, other):
    """Whether shapes and all elements are equal, as a bool of Python."""
    if tuple(input.shape) != tuple(other.shape):
        return False
    return bool(ops.reduce_all(ops.equal(input, other)).item())


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close, as a bool of Python."""
    return input.allclose(other, rtol, atol, equal_nan)


def where(condition, input=None, other=None):
    """input where the condition is true, else other; the condition alone: the places where it is true."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    return array_ops.where(condition, input, other)


def frac(input):
    """The part of each element behind the point, with its sign."""
    return named.frac(input)


def sqrt(input):
    """The square root of each element."""
    return named.sqrt(input)


# ---- Products ----------------------------------------------------------------------------------------------


def mm(input, mat2):
    """The product of two matrices."""
    return named.mm(input, mat2)


def bmm(input, mat2):
    """The products of two batches of matrices."""
    return named.bmm(input, mat2)


def mv(input, vec):
    """A matrix times a vector."""
    return named.mv(input, vec)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta input + alpha mat1 mat2, of matrices."""
    return named.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def addmv(input, mat, vec, *, beta=1, alpha=1):
    """beta input + alpha mat vec, of a matrix and a vector."""
    return named.addmv(input, mat, vec, beta=beta, alpha=alpha)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta input + alpha times the sum over the batch of batch1 batch2."""
    return named.addbmm(input, batch1, batch2, beta=beta, alpha=alpha)


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta input + alpha batch1 batch2, of batches of matrices."""
    return named.baddbmm(input, batch1, batch2, beta=beta, alpha=alpha)


def addcdiv(input, tensor1, tensor2, *, value=1):
    """input + value tensor1 / tensor2, shapes broadcast."""
    return named.addcdiv(input, tensor1, tensor2, value)


def addcmul(input, tensor1, tensor2, *, value=1):
    """input + value tensor1 tensor2, shapes broadcast."""
    return named.addcmul(input, tensor1, tensor2, value)


def dot(input, other):
    """The sum of products of two vectors."""
    if input.ndim != 1 or other.ndim != 1:
        raise ValueError(f"dot: vectors are needed, not {input.shape} and {other.shape}")
    return _products.dot(input, other)


def inverse(input):
    """The inverse of square matrices."""
    return named.inverse(input)


def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):  # noqa: N803
    """(x, A) with A x = b for a triangular A."""
    return b.triangular_solve(A, upper, transpose, unitriangular)


# ---- Shapes ------------------------------------------------------------------------------------------------


def cat(tensors, dim=0):
    """Tensors one after the other along an axis."""
    return named.cat(tensors, dim)


def concat(tensors, dim=0):
    """The same as cat."""
    return named.cat(tensors, dim)


def stack(tensors, dim=0):
    """Tensors along a new axis."""
    return ops.stack(list(tensors), dim)


def hstack(tensors):
    """Tensors side by side: along the second axis, or the only one."""
    return array_ops.hstack(tensors)


def dstack(tensors):
    """Tensors behind each other, along a third axis."""
    return array_ops.dstack(tensors)


def split(tensor, split_size_or_sections, dim=0):
    """Parts of a size, the last may be smaller, or of sizes, along an axis."""
    return ops.split(tensor, split_size_or_sections, dim)


def chunk(input, chunks, dim=0):
    """`chunks` parts along an axis as a tuple, all of one size but the last."""
    return named.chunk(input, chunks, dim)


def flatten(input, start_dim=0, end_dim=-1):
    """The axes from start_dim to end_dim as one."""
    first, last = (axis_of(at, builtins.max(input.ndim, 1), "flatten") for at in (start_dim, end_dim))
    return ops.reshape(input, (*input.shape[:first], -1, *input.shape[last + 1 :]))


def flip(input, dims):
    """The elements in reverse order along axes."""
    return ops.flip(input, dims)


def permute(input, dims):
    """The axes in another order."""
    return ops.transpose(input, axes_of(dims, input.ndim, "permute"))


def transpose(input, dim0, dim1):
    """Two axes exchanged."""
    return ops.swapaxes(input, dim0, dim1)


def swapaxes(input, axis0, axis1):
    """Two axes exchanged, the same as transpose."""
    return ops.swapaxes(input, axis0, axis1)


def squeeze(input, dim):
    """The tensor without axes of one element among those that `dim` names."""
    dropped = [at for at in axes_of(dim, input.ndim, "squeeze") if input.shape[at] == 1]
    return ops.reshape(input, [size for at, size in enumerate(input.shape) if at not in dropped])


def tile(input, dims):
    """The tensor repeated along its last axes."""
    return array_ops.tile(input, dims)


def roll(input, shifts, dims=None):
    """The elements moved on along axes; those behind the end come first."""
    return array_ops.roll(input, shifts, dims)


def repeat_interleave(input, repeats, dim=None, *, output_size=None):
    """Each element along an axis, of all by default, as often as `repeats` says."""
    if isinstance(repeats, muster.Tensor):
        repeats = repeats.tolist()
    return array_ops.repeat(input, repeats, dim)


def meshgrid(*tensors, indexing="ij"):
    """Coordinates of a grid of the given axes, as a tuple; `indexing` is 'ij' or 'xy'."""
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        tensors = tensors[0]
    return tuple(array_creations.meshgrid(*tensors, indexing=indexing))


def diag(input, diagonal=0):
    """The matrix that has a vector on a diagonal, or a diagonal of a matrix."""
    return array_creations.diag(input, diagonal)


def trace(input):
    """The sum of the diagonal of a matrix; of whole numbers int64."""
    return sum(array_creations.diagonal(input))


def diff(input, n=1, dim=-1, prepend=None, append=None):
    """The differences of neighbours along an axis, n times."""
    from mindspore.numpy._neighbours import diff

    return diff(input, n, dim, prepend, append)


def narrow(input, dim, start, length):
    """`length` parts along an axis, from `start` on."""
    return named.narrow(input, dim, start, length)


# ---- Picking and putting -----------------------------------------------------------------------------------


def gather(input, dim, index):
    """An element along an axis for each index."""
    return named.gather_elements(input, dim, index)


def index_select(input, dim, index):
    """The parts at indices of an axis."""
    return ops.gather(input, index, dim)


def index_add(input, dim, index, source, *, alpha=1):
    """The elements plus alpha times parts of source at indices of an axis."""
    return input.index_add(dim, index, source, alpha=alpha)


def scatter(input, dim, index, src):
    """The elements with those of `src`, a tensor or a number, at the indices of an axis."""
    return input.scatter(dim, index, src)


def scatter_add(input, dim, index, src):
    """The elements plus those of `src` at the indices of an axis."""
    return input.scatter_add(dim, index, src)


def select(input, dim, index):
    """One index of an axis."""
    return input.select(dim, index)


def take(input, index):
    """The elements at indices among all."""
    return ops.gather(ops.reshape(input, (-1,)), index, 0)


__all__ = _shared.public(globals(), __name__)
