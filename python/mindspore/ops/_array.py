"""mindspore.ops: functions that make, move, join and pick elements, with MindSpore's arguments."""

import builtins

from muster.ops import (
    arange,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    full_like,
    ones_like,
    pad,
    reshape,
    shape,
    slice,
    split,
    stack,
    swapaxes,
    tile,
    topk,
    transpose,
    unstack,
    zeros_like,
)

import muster
from mindspore import _names
from muster import ops

# What x[...] is, also where a library sets another one for all tensors that calls these functions itself.
part_of = muster.Tensor.__getitem__

cat = concat


def swapdims(input, dim0, dim1):
    """The same as swapaxes."""
    return swapaxes(input, dim0, dim1)


def cast(input, dtype):
    """muster.ops.cast; a Python number becomes a tensor."""
    return ops.cast(as_tensor(input), dtype)


def chunk(input, chunks, axis=0):
    """`chunks` parts along `axis`, all of one size but the last, as a tuple; fewer when the axis is short."""
    size = input.shape[axis]
    return ops.split(input, max(-(-size // chunks), 1), axis)


def one_hot(indices, depth, on_value=1, off_value=0, axis=-1):
    """muster.ops.one_hot; a value may be a tensor of one element, too."""
    return ops.one_hot(indices, depth, _one_number(on_value), _one_number(off_value), axis)


def _one_number(value):
    """A tensor of one element without its axes."""
    is_one = isinstance(value, muster.Tensor) and value.ndim > 0 and value._size == 1
    return ops.reshape(value, ()) if is_one else value


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False):
    """The rows of weight at `input`; the one at `padding_idx` gets no gradient. What changes the weight or
    scales its gradient (max_norm, scale_grad_by_freq) is not provided."""
    if max_norm is not None or scale_grad_by_freq:
        raise NotImplementedError(_names.sentence("mindspore.ops.embedding(max_norm or scale_grad_by_freq)"))
    rows = ops.embedding(input, weight)
    if padding_idx is None:
        return rows
    count = weight.shape[0]
    if not -count <= padding_idx < count:
        raise ValueError(f"embedding: padding_idx is from {-count} to {count - 1}, not {padding_idx}")
    is_padding = ops.expand_dims(ops.equal(input, padding_idx % count), -1)
    return ops.select(is_padding, ops.stop_gradient(rows), rows)


def squeeze(input, axis=None):
    """The tensor without its axes of one element, or without those of them that `axis` names."""
    from mindspore.numpy._shared import axes_of

    named = axes_of(None if axis == () else axis, input.ndim, "squeeze")
    dropped = [at for at in named if input.shape[at] == 1]
    return ops.squeeze(input, dropped) if dropped else ops.reshape(input, input.shape)


def eye(n, m=None, dtype=None):
    """n rows and m columns (n by default) with 1 on the diagonal and 0 elsewhere, float32 by default."""
    on_diagonal = ops.equal(_column(n), _row(n if m is None else m))
    return ops.cast(on_diagonal, muster.float32 if dtype is None else dtype)


def fill(type, shape, value):
    """muster.ops.full, with the dtype first."""
    return ops.full(shape, value, dtype=type)


def flatten(input, order="C", *, start_dim=1, end_dim=-1):
    """muster.ops.flatten; with order 'F' the axes begin with the last one. What has one axis stays as it is,
    a number becomes one element."""
    if not isinstance(order, str):
        raise TypeError(f"flatten: order is 'C' or 'F', not {order!r}")
    if order not in ("C", "F"):
        raise ValueError(f"flatten: order is 'C' or 'F', not {order!r}")
    if order == "F":
        input = ops.transpose(input, [axis for axis, _ in enumerate(input.shape)][::-1])
    if input.ndim < 2 and (start_dim, end_dim) == (1, -1):
        return ops.reshape(input, (-1,))
    return ops.flatten(input, start_dim=start_dim, end_dim=end_dim)


def _sizes(shape):
    return tuple(shape.tolist()) if isinstance(shape, muster.Tensor) and shape.ndim else shape


def ones(shape, dtype=None):
    """Ones, float32 unless `dtype` says otherwise; the shape is a number, several, or a tensor of them."""
    return ops.ones(_sizes(shape), dtype=muster.float32 if dtype is None else dtype)


def zeros(size, dtype=None):
    """Zeros, float32 unless `dtype` says otherwise; the size is a number, several, or a tensor of them."""
    return ops.zeros(_sizes(size), dtype=muster.float32 if dtype is None else dtype)


def full(size, fill_value, *, dtype=None):
    """muster.ops.full; the dtype is int64 unless `dtype` says otherwise, as in MindSpore 2.7."""
    return ops.full(size, fill_value, dtype=muster.int64 if dtype is None else dtype)


def linspace(start, end, steps):
    """`steps` numbers from `start` to `end`, evenly apart, float32."""
    if steps == 1:
        return ops.full((1,), start, dtype=muster.float32)
    places = ops.cast(ops.arange(steps), muster.float32)
    return ops.add(ops.mul(places, (end - start) / (steps - 1)), start)


def masked_fill(input_x, mask, value):
    """`value`, a number or tensor, where the mask (bool) is true, else input_x; shapes broadcast."""
    value = ops.cast(as_tensor(value), input_x.dtype)
    return ops.select(mask, value, input_x)


def narrow(input, axis, start, length):
    """`length` elements of `axis` from `start` on."""
    begin, size = [0] * input.ndim, [-1] * input.ndim
    begin[axis], size[axis] = start, length
    return ops.slice(input, begin, size)


def permute(input, axis):
    """muster.ops.transpose."""
    return ops.transpose(input, axis)


def range(start, end, step, maxlen=1000000):
    """start, start + step, ... before end."""
    return ops.arange(*(as_number(value) for value in (start, end, step)))


def rank(input_x):
    """The number of axes, as a number."""
    return input_x.ndim


def reverse(x, axis):
    """muster.ops.flip."""
    return ops.flip(x, axis)


def scalar_to_tensor(input_x, dtype=muster.float32):
    """A Python number as a tensor of `dtype`."""
    return muster.Tensor(input_x, dtype)


def size(input_x):
    """The number of elements, as a number."""
    return input_x._size


def strided_slice(
    input_x,
    begin,
    end,
    strides,
    begin_mask=0,
    end_mask=0,
    ellipsis_mask=0,
    new_axis_mask=0,
    shrink_axis_mask=0,
):
    """input_x[begin[0]:end[0]:strides[0], ...]; bit i of a mask is about entry i.

    begin_mask and end_mask leave that end open, ellipsis_mask makes the entry `...`, new_axis_mask makes it
    a new axis, and shrink_axis_mask the whole number begin[i].
    """

    def entry(i):
        if ellipsis_mask >> i & 1:
            return ...
        if new_axis_mask >> i & 1:
            return None
        if shrink_axis_mask >> i & 1:
            return begin[i]
        return builtins.slice(
            None if begin_mask >> i & 1 else begin[i], None if end_mask >> i & 1 else end[i], strides[i]
        )

    return part_of(input_x, tuple(entry(i) for i in builtins.range(len(begin))))


def tril(input, diagonal=0):
    """The elements of the last two axes on and below a diagonal, above 0 the main one; else 0."""
    rows, columns = input.shape[-2:]
    kept = ops.less_equal(ops.sub(_row(columns), _column(rows)), diagonal)
    return ops.select(kept, input, ops.zeros_like(input))


def triu(input, diagonal=0):
    """The elements of the last two axes on and above a diagonal, above 0 the main one; else 0."""
    rows, columns = input.shape[-2:]
    kept = ops.greater_equal(ops.sub(_row(columns), _column(rows)), diagonal)
    return ops.select(kept, input, ops.zeros_like(input))


def unbind(input, dim=0):
    """muster.ops.unstack."""
    return ops.unstack(input, dim)


def unsqueeze(input, dim):
    """muster.ops.expand_dims."""
    return ops.expand_dims(input, dim)


def matmul(input, other):
    """muster.ops.matmul."""
    return ops.matmul(input, other)


def mm(input, mat2):
    """The product of two matrices."""
    return ops.matmul(input, mat2)


def _row(size):
    return ops.expand_dims(ops.arange(size), 0)


def _column(size):
    return ops.expand_dims(ops.arange(size), 1)


def as_number(value):
    """A tensor of one element as a number, a number as it is."""
    return value.item() if isinstance(value, muster.Tensor) else value


def as_tensor(value):
    """Tensors as they are, anything else as a new tensor."""
    return value if isinstance(value, muster.Tensor) else muster.Tensor(value)


__all__ = [
    "arange",
    "broadcast_to",
    "cast",
    "cat",
    "chunk",
    "concat",
    "embedding",
    "expand_dims",
    "eye",
    "fill",
    "flatten",
    "flip",
    "full",
    "full_like",
    "linspace",
    "masked_fill",
    "matmul",
    "mm",
    "narrow",
    "one_hot",
    "ones",
    "ones_like",
    "pad",
    "permute",
    "range",
    "rank",
    "reshape",
    "reverse",
    "scalar_to_tensor",
    "shape",
    "size",
    "slice",
    "split",
    "squeeze",
    "stack",
    "strided_slice",
    "swapaxes",
    "swapdims",
    "tile",
    "topk",
    "transpose",
    "tril",
    "triu",
    "unbind",
    "unsqueeze",
    "unstack",
    "zeros",
    "zeros_like",
]
