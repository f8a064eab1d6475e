"""mindspore.ops: functions that move, join, repeat and cut elements."""

import itertools
import math

import muster
from mindspore.ops import _array, _math
from mindspore.ops._numbers import tensor
from muster import ops


def _places(values, dtype=muster.int32):
    return muster.Tensor(list(values), dtype)


def _picked(x, places, axis):
    return ops.gather(x, _places(places), axis)


def identity(x):
    """x."""
    return x


def repeat_elements(x, rep, axis=0):
    """Each part along `axis` rep times."""
    return _picked(x, (at for at in range(x.shape[axis]) for _ in range(rep)), axis)


def repeat_interleave(input, repeats, axis=None):
    """Each part along `axis` (of the flat input without one) so many times: one number, or one for each."""
    input = tensor(input)
    x = ops.reshape(input, (-1,)) if axis is None else input
    axis = 0 if axis is None else axis
    size = x.shape[axis]
    if isinstance(repeats, muster.Tensor):
        repeats = repeats.asnumpy().reshape(-1).tolist()
    counts = [repeats] * size if isinstance(repeats, int) else list(repeats)
    counts = counts * size if len(counts) == 1 and size != 1 else counts
    if len(counts) != size:
        raise ValueError(f"repeat_interleave: {len(counts)} repeats for {size} parts of axis {axis}")
    return _picked(x, (at for at, count in enumerate(counts) for _ in range(count)), axis)


def meshgrid(*inputs, indexing="xy"):
    """Each of some vectors broadcast to the grid of all; 'xy' has the first two axes the other way round."""
    if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)):
        inputs = tuple(inputs[0])
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    sizes = [math.prod(each.shape) for each in inputs]
    order = list(range(len(inputs)))
    if indexing == "xy" and len(inputs) > 1:
        order[0], order[1] = 1, 0
    whole = [0] * len(sizes)
    for at, axis in enumerate(order):
        whole[axis] = sizes[at]
    made = []
    for at, each in enumerate(inputs):
        shape = [1] * len(sizes)
        shape[order[at]] = sizes[at]
        made.append(ops.broadcast_to(ops.reshape(each, shape), whole))
    return tuple(made)


def moveaxis(x, source, destination):
    """x with the axes `source` at the places `destination`."""
    source = [source] if isinstance(source, int) else list(source)
    destination = [destination] if isinstance(destination, int) else list(destination)
    moved = dict(zip((at % x.ndim for at in destination), (at % x.ndim for at in source), strict=True))
    others = iter(axis for axis in range(x.ndim) if axis not in moved.values())
    return ops.transpose(x, tuple(moved[at] if at in moved else next(others) for at in range(x.ndim)))


movedim = moveaxis


def t(input):
    """A matrix with its axes exchanged; what has another number of axes as it is."""
    return ops.transpose(input, (1, 0)) if input.ndim == 2 else input


def adjoint(x):
    """x with its last two axes exchanged."""
    return ops.swapaxes(x, -1, -2)


def conj(input):
    """input, which has no imaginary part here."""
    return input


def fliplr(input):
    """The second axis the other way round."""
    return ops.flip(input, (1,))


def flipud(input):
    """The first axis the other way round."""
    return ops.flip(input, (0,))


def rot90(input, k, dims):
    """The plane of two axes turned by k quarters from the first one towards the second."""
    first, second = dims
    turns = k % 4
    if turns == 0:
        return input
    if turns == 2:
        return ops.flip(input, (first, second))
    if turns == 1:
        return ops.swapaxes(ops.flip(input, (second,)), first, second)
    return ops.flip(ops.swapaxes(input, first, second), (second,))


def roll(input, shifts, dims=None):
    """The elements moved by `shifts` along `dims` (all as one axis without), the last to the front."""
    if dims is None:
        flat = roll(ops.reshape(input, (-1,)), shifts if isinstance(shifts, int) else shifts[0], 0)
        return ops.reshape(flat, input.shape)
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    for shift, axis in zip(shifts, dims, strict=True):
        size = input.shape[axis]
        shift = shift % size if size else 0
        if shift:
            parts = [_cut(input, axis, size - shift, size), _cut(input, axis, 0, size - shift)]
            input = ops.concat(parts, axis)
    return input


def _cut(x, axis, begin, end):
    return _array.part_of(x, (slice(None),) * (axis % x.ndim) + (slice(begin, end),))


def _as_tuple(tensors):
    return tuple(tensor(each) for each in tensors)


def atleast_1d(inputs):
    """Scalars as vectors of one element; one tensor, or several."""
    return _at_least(inputs, lambda x: ops.reshape(x, (1,)) if x.ndim == 0 else x)


def atleast_2d(inputs):
    """Scalars and vectors as matrices of one row; one tensor, or several."""
    return _at_least(inputs, lambda x: ops.reshape(x, (1, -1)) if x.ndim < 2 else x)


def atleast_3d(inputs):
    """At least three axes: a vector (n,) as (1, n, 1), a matrix (m, n) as (m, n, 1)."""

    def deep(x):
        if x.ndim < 2:
            return ops.reshape(x, (1, -1, 1))
        return ops.expand_dims(x, -1) if x.ndim == 2 else x

    return _at_least(inputs, deep)


def _at_least(inputs, function):
    if isinstance(inputs, (tuple, list)):
        return tuple(function(each) for each in _as_tuple(inputs))
    return function(tensor(inputs))


def hstack(tensors):
    """Joined along the second axis, vectors along their only one."""
    tensors = atleast_1d(tuple(tensors))
    return ops.concat(tensors, 0 if tensors[0].ndim == 1 else 1)


def vstack(inputs):
    """Joined along the first axis, vectors as rows."""
    return ops.concat(atleast_2d(tuple(inputs)), 0)


def row_stack(tensors):
    """The same as vstack."""
    return vstack(tensors)


def dstack(tensors):
    """Joined along the third axis."""
    return ops.concat(atleast_3d(tuple(tensors)), 2)


def column_stack(tensors):
    """Vectors and matrices as the columns of one matrix."""
    columns = [ops.reshape(x, (-1, 1)) if x.ndim < 2 else x for x in _as_tuple(tensors)]
    return ops.concat(columns, 1)


def tensor_split(input, indices_or_sections, axis=0):
    """Cut along `axis` into so many parts, the first ones longer by 1 where it must be, or at the indices."""
    size = input.shape[axis]
    if isinstance(indices_or_sections, int):
        short, longer = divmod(size, indices_or_sections)
        sizes = [short + 1] * longer + [short] * (indices_or_sections - longer)
        ends = list(itertools.accumulate(sizes))[:-1]
    else:
        ends = list(indices_or_sections)
    bounds = [0, *ends, size]
    made = []
    for begin, end in itertools.pairwise(bounds):
        begin, end, _ = slice(begin, end).indices(size)
        made.append(_cut(input, axis, begin, max(begin, end)))
    return tuple(made)


def hsplit(input, indices_or_sections):
    """tensor_split along the second axis, of a vector along its only one."""
    return tensor_split(input, indices_or_sections, 0 if input.ndim == 1 else 1)


def vsplit(input, indices_or_sections):
    """tensor_split along the first axis."""
    return tensor_split(input, indices_or_sections, 0)


def dsplit(input, indices_or_sections):
    """tensor_split along the third axis."""
    return tensor_split(input, indices_or_sections, 2)


def block_diag(*inputs):
    """A matrix with the inputs along its diagonal, 0 elsewhere."""
    blocks = [atleast_2d(each) for each in inputs]
    width = sum(each.shape[1] for each in blocks)
    rows, before = [], 0
    for each in blocks:
        left = ops.zeros((each.shape[0], before), each.dtype)
        right = ops.zeros((each.shape[0], width - before - each.shape[1]), each.dtype)
        rows.append(ops.concat([left, each, right], 1))
        before += each.shape[1]
    return ops.concat(rows, 0)


def expand(input_x, size):
    """input_x broadcast to `size`; -1 keeps an axis."""
    return ops.broadcast_to(
        input_x, tuple(size) if not isinstance(size, muster.Tensor) else size.asnumpy().tolist()
    )


def expand_as(input, other):
    """input broadcast to the shape of other."""
    return ops.broadcast_to(input, other.shape)


def view_as(input, other):
    """input in the shape of other."""
    return ops.reshape(input, other.shape)


def type_as(input, other):
    """input in the dtype of other."""
    return ops.cast(input, other.dtype)


def ravel(input):
    """The elements as one axis."""
    return ops.reshape(input, (-1,))


def numel(input):
    """The number of elements."""
    return input._size


def fills(x, value):
    """A tensor like x full of `value`."""
    return ops.full_like(x, value.item() if isinstance(value, muster.Tensor) else value)


def is_tensor(obj):
    """Whether obj is a Tensor."""
    return isinstance(obj, muster.Tensor)


def tril_indices(row, col, offset=0, *, dtype=muster.int64):
    """The places (2, count) of a matrix on and below a diagonal."""
    return _indices(((r, c) for r in range(row) for c in range(col) if c - r <= offset), dtype)


def triu_indices(row, col, offset=0, *, dtype=muster.int64):
    """The places (2, count) of a matrix on and above a diagonal."""
    return _indices(((r, c) for r in range(row) for c in range(col) if c - r >= offset), dtype)


def _indices(pairs, dtype):
    pairs = list(pairs)
    if not pairs:
        return ops.zeros((2, 0), dtype)
    return muster.Tensor([list(each) for each in zip(*pairs, strict=True)], dtype)


def cartesian_prod(*inputs):
    """All ways to take one element of each vector, a row each."""
    made = [ops.reshape(each, (-1,)) for each in meshgrid(*inputs, indexing="ij")]
    return made[0] if len(made) == 1 else ops.stack(made, -1)


def combinations(input, r=2, with_replacement=False):
    """All ways to take r elements of a vector in their order, a row each."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = [list(row) for row in choose(range(input.shape[0]), r)]
    if not rows:
        return ops.zeros((0, r), input.dtype)
    return ops.gather(input, muster.Tensor(rows, muster.int32), 0)


def vander(x, N=None):  # noqa: N803 - MindSpore's name
    """The powers N - 1, ..., 1, 0 of a vector, as columns."""
    count = x.shape[0] if N is None else N
    columns = [ops.ones_like(x)]
    for _ in range(count - 1):
        columns.append(ops.mul(columns[-1], x))
    return ops.stack(columns[:count][::-1], 1)


def logspace(start, end, steps, base=10, *, dtype=muster.float32):
    """`steps` powers of `base`, their exponents evenly apart from `start` to `end`."""
    places = ops.div(ops.cast(ops.arange(steps), muster.float32), max(steps - 1.0, 1.0))
    exponents = ops.add(ops.mul(places, ops.sub(end, start)), start)
    return ops.cast(ops.pow(float(base), exponents), dtype)


def eps(x):
    """The distance from 1 to the next number of the dtype, for each element."""
    name = str(x.dtype).lower().rsplit(".", 1)[-1]
    return ops.full_like(
        x, {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7}.get(name, 2.0**-10)
    )


# ---- Images as blocks --------------------------------------------------------------------------------------


def pixel_shuffle(input, upscale_factor):
    """(..., C r^2, H, W) as (..., C, H r, W r)."""
    *lead, channels, height, width = input.shape
    r = upscale_factor
    if channels % (r * r):
        raise ValueError(f"pixel_shuffle: {channels} channels are no multiple of {r}^2")
    n = len(lead)
    x = ops.reshape(input, (*lead, channels // (r * r), r, r, height, width))
    x = ops.transpose(x, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return ops.reshape(x, (*lead, channels // (r * r), height * r, width * r))


def pixel_unshuffle(input, downscale_factor):
    """(..., C, H r, W r) as (..., C r^2, H, W)."""
    *lead, channels, height, width = input.shape
    r = downscale_factor
    n = len(lead)
    x = ops.reshape(input, (*lead, channels, height // r, r, width // r, r))
    x = ops.transpose(x, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return ops.reshape(x, (*lead, channels * r * r, height // r, width // r))


def channel_shuffle(x, groups):
    """The channels (axis 1) of each of some groups in turn."""
    parts = ops.reshape(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    return ops.reshape(ops.swapaxes(parts, 1, 2), x.shape)


def depth_to_space(input_x, block_size):
    """(N, C b^2, H, W) as (N, C, H b, W b): the blocks of channels side by side."""
    batch, channels, height, width = input_x.shape
    b = block_size
    x = ops.reshape(input_x, (batch, b, b, channels // (b * b), height, width))
    x = ops.transpose(x, (0, 3, 4, 1, 5, 2))
    return ops.reshape(x, (batch, channels // (b * b), height * b, width * b))


def space_to_depth(input_x, block_size):
    """(N, C, H b, W b) as (N, C b^2, H, W)."""
    batch, channels, height, width = input_x.shape
    b = block_size
    x = ops.reshape(input_x, (batch, channels, height // b, b, width // b, b))
    x = ops.transpose(x, (0, 3, 5, 1, 2, 4))
    return ops.reshape(x, (batch, channels * b * b, height // b, width // b))


def space_to_batch_nd(input_x, block_size, paddings):
    """The places of blocks of the last axes as more samples, after zeros around: (N b..., C, H / b, ...)."""
    count = len(paddings)
    blocks = [block_size] * count if isinstance(block_size, int) else list(block_size)
    around = [side for pair in reversed(list(paddings)) for side in pair]
    x = ops.pad(input_x, tuple(around))
    lead = x.ndim - count
    sizes = list(x.shape[:lead])
    for block, size in zip(blocks, x.shape[lead:], strict=True):
        sizes += [size // block, block]
    x = ops.reshape(x, sizes)
    inner = [lead + 2 * i + 1 for i in range(count)]
    outer = [lead + 2 * i for i in range(count)]
    x = ops.transpose(x, (*inner, *range(lead), *outer))
    made = [x.shape[count] * math.prod(blocks), *x.shape[count + 1 :]]
    return ops.reshape(x, made)


def batch_to_space_nd(input_x, block_shape, crops):
    """What space_to_batch_nd does the other way, and `crops` cut off."""
    count = len(crops)
    blocks = [block_shape] * count if isinstance(block_shape, int) else list(block_shape)
    samples = input_x.shape[0] // math.prod(blocks)
    x = ops.reshape(input_x, (*blocks, samples, *input_x.shape[1:]))
    lead = input_x.ndim - count
    order = [count + i for i in range(lead)]
    for i in range(count):
        order += [count + lead + i, i]
    x = ops.transpose(x, order)
    inner = [size * block for size, block in zip(input_x.shape[lead:], blocks, strict=True)]
    x = ops.reshape(x, (samples, *input_x.shape[1:lead], *inner))
    cut = [slice(None)] * lead
    for size, (before, behind) in zip(inner, crops, strict=True):
        cut.append(slice(before, size - behind))
    return x[tuple(cut)]


def population_count(input_x):
    """How many bits of each whole number are 1, uint8."""
    bits = 8 * input_x.dtype.itemsize - 1
    rest = ops.cast(input_x, muster.int64)
    negative = ops.less(rest, 0)  # by two's complement: the first bit, and the others of a number above it
    rest = ops.select(negative, ops.add(ops.add(rest, 2**bits - 1), 1), rest)
    total = ops.cast(negative, muster.int64)
    for _ in range(bits if input_x.dtype.name.startswith("int") else bits + 1):
        total = ops.add(total, ops.mod(rest, 2))
        rest = ops.floor_div(rest, 2)
    return ops.cast(total, muster.uint8)


def padding(x, pad_dim_size=8):
    """The last axis, of one element, filled up with zeros to pad_dim_size."""
    if x.ndim < 2 or x.shape[-1] != 1:
        raise ValueError(f"padding: the last axis of {x.shape} must have one element")
    return ops.pad(x, (0, pad_dim_size - 1))


def mirror_pad(input_x, paddings, mode):
    """The tensor mirrored around itself: 'REFLECT' or 'SYMMETRIC'."""
    from mindspore.ops import _array_primitives

    return _array_primitives.MirrorPad(mode)(input_x, paddings)


def clamp_(input, min=None, max=None):
    """ops.clamp."""
    return _math.clamp(input, min, max)


_OTHERS = ("tensor",)
__all__ = [
    name
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_") and name not in _OTHERS
]
