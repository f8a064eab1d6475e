"""Members of Tensor: copies, new tensors and shapes."""

import builtins
import math

from mindspore import ops as named
from mindspore._members import LIBRARY
from mindspore._members._facts import stride
from mindspore.numpy import _shared, array_creations, array_ops
from muster import ops

# ---- Copies and new tensors --------------------------------------------------------------------------------


def clone(self):
    """The same as copy: elements of its own, through which gradients flow."""
    return self.copy()


def expand_as(self, other=None, *, x=None):
    """The tensor repeated to the shape of another."""
    return ops.broadcast_to(self, (x if other is None else other).shape)


def flatten(self, order="C", *second, start_dim=0, end_dim=-1):
    """Axes start_dim to end_dim as one, by names or as flatten(start_dim, end_dim); or all, in an order."""
    if isinstance(order, builtins.int):
        start_dim, end_dim, order = order, second[0] if second else end_dim, "C"
    if order != "C":
        from mindspore.ops import _array

        return ops.reshape(_array.flatten(self, order), (-1,))
    return LIBRARY["flatten"](self, order, start_dim=start_dim, end_dim=end_dim)


def split(self, split_size_or_sections=None, axis=0, *, split_size=None, dim=None):
    """Parts along an axis: of one size, or of the sizes of a tuple or list."""
    sizes = split_size_or_sections if split_size is None else split_size
    return named.split(self, sizes, axis if dim is None else dim)


def repeat_interleave(self, repeats, axis=None, *, dim=None, output_size=None):
    """Each part along an axis (of the flat tensor without one) so many times: one number, or one for each."""
    return named.repeat_interleave(self, repeats, axis if dim is None else dim)


def transpose(self, *order, axes=None, dim0=None, dim1=None):
    """Two axes exchanged by transpose(dim0, dim1); the axes in another order by as many, or by a tuple."""
    order += tuple(each for each in (axes, dim0, dim1) if each is not None)
    if len(order) == 2:
        return ops.swapaxes(self, *order)
    return LIBRARY["transpose"](self, *order)


def contiguous(self):
    """The tensor itself: its elements lie one after the other."""
    return self


def value(self):
    """The elements, as a Tensor of now."""
    return ops.reshape(self, self.shape)


def _size(size):
    return _shared.shape_of(size)


def new_zeros(self, size, dtype=None):
    """A tensor of 0 with this dtype, or another."""
    return ops.zeros(_size(size), dtype or self.dtype)


def new_ones(self, size, dtype=None):
    """A tensor of 1 with this dtype, or another."""
    return ops.ones(_size(size), dtype or self.dtype)


def new_full(self, size, fill_value, *, dtype=None):
    """A tensor of `fill_value` with this dtype, or another."""
    return array_creations.full(_size(size), fill_value, dtype or self.dtype)


def new_empty(self, size, *, dtype=None, device=None):
    """A tensor with this dtype, or another, whose elements mean nothing: they are 0 here."""
    return ops.zeros(_size(size), dtype or self.dtype)


def fill(self, value):
    """A tensor of this shape and dtype with one value."""
    return array_creations.full(self.shape, value, self.dtype)


def fill_diagonal(self, fill_value, wrap=False):
    """The elements with `fill_value` on the diagonal; `wrap` begins it again below a square."""
    if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) > 1):
        raise ValueError(f"fill_diagonal: a matrix, or axes of one length, are needed, not {self.shape}")
    places = ops.reshape(ops.arange(self._size), self.shape)
    step = builtins.sum(stride(self))
    columns = self.shape[-1]
    hit = ops.equal(ops.sub(places, ops.mul(ops.floor_div(places, step), step)), 0)
    if self.ndim == 2 and not wrap and self.shape[0] > columns:
        hit = ops.logical_and(hit, ops.less(places, columns * columns))
    return ops.select(hit, ops.full(self.shape, fill_value, dtype=self.dtype), self)


# ---- Shapes ------------------------------------------------------------------------------------------------


def expand(self, *size):
    """The elements repeated to a shape that they broadcast to; -1 leaves an axis as it is."""
    shape = _shared.shape_of(size[0] if len(size) == 1 else size)
    away = len(shape) - self.ndim
    kept = [self.shape[at - away] if length == -1 else length for at, length in enumerate(shape)]
    return ops.broadcast_to(self, kept)


def resize(self, *new_shape):
    """The first elements in another shape, with 0 behind the last."""
    shape = _shared.shape_of(new_shape[0] if len(new_shape) == 1 else new_shape)
    count, flat = math.prod(shape), ops.reshape(self, (-1,))
    if count > self._size:
        flat = ops.concat([flat, ops.zeros((count - self._size,), self.dtype)], 0)
    return ops.reshape(flat[:count], shape)


def repeat(self, *sizes, repeats=None):
    """The tensor repeated along its last axes; numbers with an `axis` repeat elements."""
    sizes = sizes if repeats is None else (repeats,)
    return array_ops.tile(self, sizes[0] if len(sizes) == 1 else sizes)


def chunk(self, chunks, dim=0, *, axis=None):
    """`chunks` parts along an axis as a tuple, all of one size but the last."""
    return named.chunk(self, chunks, dim if axis is None else axis)


def diagonal(self, offset=0, axis1=0, axis2=1, *, dim1=None, dim2=None):
    """The diagonal of two axes, as the last axis."""
    axis1, axis2 = axis1 if dim1 is None else dim1, axis2 if dim2 is None else dim2
    return array_creations.diagonal(self, offset, axis1, axis2)


def diag(self, diagonal=0):
    """The elements on the diagonal of a tensor with twice as many axes; with `diagonal`, as mint.diag."""
    return array_creations.diag(self, diagonal) if diagonal else named.diag(self)


def unfold(self, kernel_size, dilation=1, padding=0, stride=1):
    """The patches of images that a window sees, as columns."""
    return named.unfold(self, kernel_size, dilation, padding, stride)


def fold(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Images as the sums of the patches of unfold."""
    return named.fold(self, output_size, kernel_size, dilation, padding, stride)


def col2im(self, output_size, kernel_size, dilation, padding_value, stride):
    """Images as the sums of patches."""
    return named.col2im(self, output_size, kernel_size, dilation, padding_value, stride)


def to_coo(self):
    """The COOTensor of what is not 0 in a matrix; not inside of a graph."""
    from mindspore.ops import _sparse_tensors

    return _sparse_tensors.dense_to_sparse_coo(self)


def to_csr(self):
    """The CSRTensor of what is not 0 in a matrix; not inside of a graph."""
    from mindspore.ops import _sparse_tensors

    return _sparse_tensors.dense_to_sparse_csr(self)
