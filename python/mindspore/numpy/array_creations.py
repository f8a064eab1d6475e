"""mindspore.numpy.array_creations: functions that make tensors."""

import builtins
import math

import muster
from mindspore import _names
from mindspore import ops as named
from mindspore.numpy import _shared
from mindspore.numpy._shared import (
    axis_of,
    cast,
    is_float,
    moved,
    promoted,
    real,
    same_dtype,
    shape_of,
    tensor,
)
from mindspore.ops import tril as _tril
from mindspore.ops import triu as _triu
from muster import ops

# ---- Of values ---------------------------------------------------------------------------------------------


def array(obj, dtype=None, copy=True, ndmin=0):
    """A tensor of numbers, lists or tensors, with at least `ndmin` axes."""
    made = tensor(obj, dtype)
    if made.ndim < ndmin:
        made = ops.reshape(made, (1,) * (ndmin - made.ndim) + tuple(made.shape))
    return _copied(made) if copy and made is obj else made


def asarray(a, dtype=None):
    """A tensor of numbers, lists or tensors; a tensor stays itself."""
    return tensor(a, dtype)


asarray_const = asarray


def asfarray(a, dtype=muster.float32):
    """asarray in a dtype of floats."""
    dtype = _shared.dtype_named(dtype)
    if dtype is None or not _shared.is_float(dtype):
        dtype = muster.float32
    return tensor(a, dtype)


def copy(a):
    """A tensor of the same elements."""
    return _copied(tensor(a))


def _copied(a):
    return ops.reshape(a, a.shape)  # another tensor of the same elements, through which gradients flow


def zeros(shape, dtype=muster.float32):
    """A tensor of 0."""
    return ops.zeros(shape_of(shape), _shared.dtype_named(dtype) or muster.float32)


def ones(shape, dtype=muster.float32):
    """A tensor of 1."""
    return ops.ones(shape_of(shape), _shared.dtype_named(dtype) or muster.float32)


def empty(shape, dtype=muster.float32):
    """A tensor whose elements mean nothing: they are 0 here."""
    return zeros(shape, dtype)


def full(shape, fill_value, dtype=None):
    """A tensor of `fill_value`, a number or a tensor that broadcasts to `shape`."""
    return ops.broadcast_to(tensor(fill_value, dtype), shape_of(shape))


def _like(a, dtype, shape):
    given = tensor(a)
    return given.shape if shape is None else shape_of(shape), _shared.dtype_named(dtype) or given.dtype


def zeros_like(a, dtype=None, shape=None):
    """A tensor of 0 with the shape and dtype of another."""
    return ops.zeros(*_like(a, dtype, shape))


def ones_like(a, dtype=None, shape=None):
    """A tensor of 1 with the shape and dtype of another."""
    return ops.ones(*_like(a, dtype, shape))


def empty_like(prototype, dtype=None, shape=None):
    """A tensor with the shape and dtype of another, whose elements mean nothing: they are 0 here."""
    return zeros_like(prototype, dtype, shape)


def full_like(a, fill_value, dtype=None, shape=None):
    """A tensor of `fill_value` with the shape and dtype of another."""
    shape, dtype = _like(a, dtype, shape)
    return full(shape, fill_value, dtype)


# ---- Of ranges ---------------------------------------------------------------------------------------------


def arange(start, stop=None, step=None, dtype=None):
    """start, start + step, ... before stop; int32, or float32 where one of them is a float."""
    start, stop = (0, start) if stop is None else (start, stop)
    given = [value.item() if isinstance(value, muster.Tensor) else value for value in (start, stop)]
    step = 1 if step is None else step.item() if isinstance(step, muster.Tensor) else step
    floating = builtins.any(isinstance(value, float) for value in (*given, step))
    made = ops.arange(*given, step)
    return cast(made, dtype or (muster.float32 if floating else muster.int32))


def _places(start, stop, num, endpoint, axis):
    """(tensors of `num` values from start to stop, the step)."""
    if not isinstance(num, int) or num < 0:
        raise ValueError(f"linspace: num is a whole number from 0, not {num!r}")
    start, stop = real(start), real(stop)
    parts = num - 1 if endpoint else num
    step = ops.div(ops.sub(stop, start), float(parts)) if parts > 0 else muster.Tensor(math.nan)
    shape = _shared.broadcast_shape(start.shape, stop.shape)
    places = ops.reshape(ops.cast(ops.arange(num), muster.float32), (num,) + (1,) * len(shape))
    if parts <= 0:
        return ops.broadcast_to(start, (num, *shape)), step
    made = ops.add(start, ops.mul(places, step))
    return moved(made, 0, axis_of(axis, made.ndim, "linspace")), step


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """`num` numbers evenly apart from start to stop; with `retstep`, (numbers, the step)."""
    made, step = _places(start, stop, num, endpoint, axis)
    made = cast(made, dtype or muster.float32)
    return (made, step) if retstep else made


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """base to the power of `num` numbers evenly apart from start to stop."""
    return cast(ops.pow(float(base), _places(start, stop, num, endpoint, axis)[0]), dtype or muster.float32)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """`num` numbers from start to stop, each the one before it times the same factor."""
    start, stop = real(start), real(stop)
    ratio = ops.log(ops.div(stop, start))
    exponents = _places(ops.zeros_like(ratio), ratio, num, endpoint, axis)[0]
    if start.ndim:
        start = moved(ops.expand_dims(start, 0), 0, axis_of(axis, exponents.ndim, "geomspace"))
    return cast(ops.mul(start, ops.exp(exponents)), dtype or muster.float32)


def meshgrid(*xi, sparse=False, indexing="xy"):
    """Coordinates of a grid of the given axes, as a list; `indexing` is 'xy' or 'ij'."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    axes = [ops.reshape(tensor(each), (-1,)) for each in xi]
    places = list(range(len(axes)))
    if indexing == "xy" and len(axes) > 1:
        places[:2] = [1, 0]
    made = [
        ops.reshape(axis, [-1 if at == place else 1 for at in range(len(axes))])
        for axis, place in zip(axes, places, strict=True)
    ]
    if sparse or not made:
        return made
    shape = _shared.broadcast_shape(*(each.shape for each in made))
    return [ops.broadcast_to(each, shape) for each in made]


def indices(dimensions, dtype=muster.int32, sparse=False):
    """The indices of a grid of the given sizes, a tensor for each axis, as a list."""
    return meshgrid(*(arange(size, dtype=dtype) for size in dimensions), sparse=sparse, indexing="ij")


def ix_(*args):
    """Tensors of one axis each, shaped so that they index all combinations."""
    given = [tensor(each) for each in args]
    for each in given:
        if each.ndim != 1:
            raise ValueError(f"ix_: one axis is needed, not {each.shape}")
    given = [
        muster.Tensor(_shared.host(each).nonzero()[0]) if each.dtype == muster.bool_ else each
        for each in given
    ]
    return tuple(meshgrid(*given, sparse=True, indexing="ij"))


class _Grid:
    """Grids by slices, as grid[0:3, 0:1:5j]; an imaginary step counts the numbers, the end with them."""

    def __init__(self, sparse):
        self._sparse = sparse

    def __getitem__(self, key):
        axes = [self._axis(part) for part in (key if isinstance(key, tuple) else (key,))]
        if not isinstance(key, tuple):
            return axes[0]
        made = meshgrid(*same_dtype(axes), sparse=self._sparse, indexing="ij")
        return made if self._sparse else ops.stack(made, 0)

    @staticmethod
    def _axis(part):
        start, step = part.start or 0, 1 if part.step is None else part.step
        if isinstance(step, complex):
            return linspace(start, part.stop, int(abs(step)))
        return arange(start, part.stop, step)


mgrid = _Grid(sparse=False)
ogrid = _Grid(sparse=True)

# ---- Diagonals and triangles -------------------------------------------------------------------------------


def eye(N, M=None, k=0, dtype=muster.float32):  # noqa: N803 - numpy's names
    """N rows and M columns with 1 on diagonal k and 0 elsewhere."""
    rows = ops.reshape(ops.arange(N), (N, 1))
    columns = ops.reshape(ops.arange(N if M is None else M), (1, -1))
    return cast(ops.equal(ops.sub(columns, rows), k), dtype or muster.float32)


def identity(n, dtype=muster.float32):
    """n rows and columns with 1 on the diagonal and 0 elsewhere."""
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=muster.float32):  # noqa: N803
    """N rows and M columns with 1 on and below diagonal k and 0 elsewhere."""
    return cast(_tril(ops.ones((N, N if M is None else M), muster.float32), k), dtype or muster.float32)


def _matrix(m):
    """A matrix as it is; of one axis, each row is that axis."""
    m = tensor(m)
    return ops.broadcast_to(m, (m.shape[0], m.shape[0])) if m.ndim == 1 else m


def tril(m, k=0):
    """The elements on and below diagonal k of the last two axes; else 0."""
    return _tril(_matrix(m), k)


def triu(m, k=0):
    """The elements on and above diagonal k of the last two axes; else 0."""
    return _triu(_matrix(m), k)


def _triangle(rows, columns, kept):
    found = [(row, column) for row in range(rows) for column in range(columns) if kept(column - row)]
    return tuple(
        muster.Tensor([pair[at] for pair in found], muster.int32) if found else ops.zeros((0,), muster.int32)
        for at in (0, 1)
    )


def tril_indices(n, k=0, m=None):
    """(rows, columns) of the elements on and below diagonal k of n rows and m columns."""
    return _triangle(n, n if m is None else m, lambda away: away <= k)


def triu_indices(n, k=0, m=None):
    """(rows, columns) of the elements on and above diagonal k of n rows and m columns."""
    return _triangle(n, n if m is None else m, lambda away: away >= k)


def _rows_and_columns(arr, name):
    shape = tensor(arr).shape
    if len(shape) != 2:
        raise ValueError(f"{name}: two axes are needed, not {shape}")
    return shape


def tril_indices_from(arr, k=0):
    """tril_indices of a matrix's shape."""
    rows, columns = _rows_and_columns(arr, "tril_indices_from")
    return tril_indices(rows, k, columns)


def triu_indices_from(arr, k=0):
    """triu_indices of a matrix's shape."""
    rows, columns = _rows_and_columns(arr, "triu_indices_from")
    return triu_indices(rows, k, columns)


def diag_indices(n, ndim=2):
    """The indices of the diagonal of `ndim` axes of n elements each."""
    return (arange(n),) * ndim


def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonal of two axes, as the last axis."""
    a = tensor(a)
    if a.ndim < 2:
        raise ValueError(f"diagonal: two axes or more are needed, not {a.shape}")
    first, second = axis_of(axis1, a.ndim, "diagonal"), axis_of(axis2, a.ndim, "diagonal")
    if first == second:
        raise ValueError("diagonal: axis1 and axis2 are the same axis")
    rest = [at for at in range(a.ndim) if at not in (first, second)]
    a = ops.transpose(a, [*rest, first, second])
    rows, columns = a.shape[-2:]
    row, column = max(-offset, 0), max(offset, 0)
    length = min(rows - row, columns - column)
    if length <= 0:
        raise ValueError(f"diagonal: offset {offset} is outside of {rows} rows and {columns} columns")
    flat = ops.reshape(a, (*a.shape[:-2], rows * columns))
    places = ops.add(ops.mul(ops.arange(length), columns + 1), row * columns + column)
    return ops.gather(flat, places, flat.ndim - 1)


def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    """The sum of the diagonal of two axes."""
    kept = cast(diagonal(a, offset, axis1, axis2), dtype)
    return cast(ops.reduce_sum(kept, -1), dtype or (kept.dtype if is_float(kept.dtype) else muster.int64))


def diagflat(v, k=0):
    """A matrix with the elements of v, in order, on diagonal k."""
    v = ops.reshape(tensor(v), (-1,))
    size = v.shape[0]
    spread = ops.select(
        ops.cast(eye(size), muster.bool_), ops.expand_dims(v, 1), ops.zeros((size, size), v.dtype)
    )
    before, after = (abs(k), 0) if k > 0 else (0, abs(k))
    return ops.pad(spread, (before, after, after, before)) if k else spread


def diag(v, k=0):
    """Diagonal k of a matrix; of one axis, the matrix that has it there."""
    v = tensor(v)
    if v.ndim not in (1, 2):
        raise ValueError(f"diag: one or two axes are needed, not {v.shape}")
    return diagflat(v, k) if v.ndim == 1 else diagonal(v, k)


def vander(x, N=None, increasing=False):  # noqa: N803
    """The powers of x as columns, from the greatest on; `increasing` turns them."""
    x = tensor(x)
    powers = arange(x.shape[0] if N is None else N)
    if not increasing:
        powers = ops.flip(powers, (0,))
    return ops.pow(ops.expand_dims(x, 1), ops.cast(ops.expand_dims(powers, 0), x.dtype))


# ---- Windows -----------------------------------------------------------------------------------------------


def _window(size, name, weight):
    if not isinstance(size, int):
        raise TypeError(f"{name}: the number of points is a whole number, not {size!r}")
    if size < 1:
        return ops.zeros((0,), muster.float32)
    return muster.Tensor(
        [1.0 if size == 1 else weight(2 * math.pi * at / (size - 1)) for at in range(size)], muster.float32
    )


def hanning(M):  # noqa: N803
    """Hann's window of M points."""
    return _window(M, "hanning", lambda at: 0.5 - 0.5 * math.cos(at))


def hamming(M):  # noqa: N803
    """Hamming's window of M points."""
    return _window(M, "hamming", lambda at: 0.54 - 0.46 * math.cos(at))


def blackman(M):  # noqa: N803
    """Blackman's window of M points."""
    return _window(M, "blackman", lambda at: 0.42 - 0.5 * math.cos(at) + 0.08 * math.cos(2 * at))


def bartlett(M):  # noqa: N803
    """Bartlett's window, a triangle, of M points."""
    return _window(M, "bartlett", lambda at: 1 - abs(at / math.pi - 1))


# ---- Random numbers ----------------------------------------------------------------------------------------


def _sizes(shape):
    return shape_of(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(shape)


def rand(*shape, dtype=muster.float32):
    """Numbers from 0 to 1, each as likely; set_seed says which."""
    return cast(named.uniform(_sizes(shape), muster.Tensor(0.0), muster.Tensor(1.0)), dtype)


def randn(*shape, dtype=muster.float32):
    """Numbers of the normal distribution with mean 0 and variance 1; set_seed says which."""
    return cast(named.standard_normal(_sizes(shape)), dtype)


def randint(minval, maxval=None, shape=None, dtype=muster.int32):
    """Whole numbers from minval to below maxval (0 to below minval without it), each as likely."""
    low, high = (0, minval) if maxval is None else (minval, maxval)
    if low >= high:
        raise ValueError(f"randint: minval {low} is not below maxval {high}")
    drawn = named.uniform(shape_of(1 if shape is None else shape), muster.Tensor(0.0), muster.Tensor(1.0))
    return ops.cast(ops.add(ops.floor(ops.mul(drawn, float(high - low))), float(low)), dtype)


# ---- Padding -----------------------------------------------------------------------------------------------


def _widths(pad_width, ndim):
    """((before, after), ...) of the axes."""
    if isinstance(pad_width, int):
        return ((pad_width, pad_width),) * ndim
    pairs = [tuple(each) if isinstance(each, list | tuple) else (each,) for each in pad_width]
    if all(len(pair) == 1 for pair in pairs) and len(pairs) <= 2:  # (before, after) of every axis
        flat = [pair[0] for pair in pairs]
        return ((flat[0], flat[-1]),) * ndim
    pairs = [(pair[0], pair[-1]) for pair in pairs]
    if len(pairs) not in (1, ndim):
        raise ValueError(f"pad: {pad_width} names {len(pairs)} axes, not {ndim}")
    return tuple(pairs * ndim if len(pairs) == 1 else pairs)


def _ramp(edge, end, count):
    """`count` rows from `end` on towards `edge`, which they do not reach."""
    share = ops.div(ops.cast(ops.arange(count), muster.float32), float(count))
    share = ops.reshape(share, (count,) + (1,) * (edge.ndim - 1))
    rows = ops.add(ops.mul(ops.sub(ops.cast(edge, muster.float32), float(end)), share), float(end))
    return cast(rows, edge.dtype)


def median(a, axis):
    """The middle element along an axis, or the mean of the two in the middle."""
    size = a.shape[axis]
    top = ops.topk(moved(a, axis, a.ndim - 1), size // 2 + 1, -1)[0]
    middle = top[..., -1]
    return middle if size % 2 else ops.mul(ops.add(real(middle), real(top[..., -2])), 0.5)


def _statistic(rows, mode):
    if mode in ("maximum", "minimum"):
        return (ops.reduce_max if mode == "maximum" else ops.reduce_min)(rows, 0, True)
    if mode == "median":
        return cast(ops.expand_dims(median(rows, 0), 0), rows.dtype)
    mean = ops.reduce_mean(ops.cast(rows, muster.float32), 0, True)
    return cast(mean if _shared.is_float(rows.dtype) else ops.round(mean), rows.dtype)


def _padded_front(rows, before, after, mode, settings):
    """`rows` with rows in front and behind, made as the mode says."""
    size = rows.shape[0]
    length, value, end, odd = settings
    if mode == "constant":
        filled = [
            ops.full((count, *rows.shape[1:]), number, dtype=rows.dtype)
            for count, number in zip((before, after), value, strict=True)
        ]
        return ops.concat([filled[0], rows, filled[1]], 0)
    if mode == "linear_ramp":
        front = _ramp(rows[:1], end[0], before)
        back = ops.flip(_ramp(rows[-1:], end[1], after), (0,))
        return ops.concat([front, rows, back], 0)
    if mode in ("maximum", "minimum", "mean", "median"):
        parts = [rows[: length[0]] if length[0] else rows, rows[-length[1] :] if length[1] else rows]
        made = [_statistic(part, mode) for part in parts]
        shapes = [(count, *rows.shape[1:]) for count in (before, after)]
        return ops.concat(
            [ops.broadcast_to(made[0], shapes[0]), rows, ops.broadcast_to(made[1], shapes[1])], 0
        )
    places = muster.Tensor([_source(at, size, mode) for at in range(-before, size + after)])
    made = ops.gather(rows, places, 0)
    return _turned(rows, made, before, after, mode) if odd else made


def _turned(rows, made, before, after, mode):
    """The odd reflection: twice the edge less what the even one has; within one reach of the edge."""
    size = rows.shape[0]
    if max(before, after) > size - (mode == "reflect"):
        raise NotImplementedError("pad: reflect_type='odd' goes as far as the axis is long")
    front = ops.sub(ops.mul(rows[:1], 2), made[:before])
    back = ops.sub(ops.mul(rows[-1:], 2), made[before + size :])
    return ops.concat([front, rows, back], 0)


def _source(at, size, mode):
    """The row that stands at place `at`, which may be outside."""
    if mode == "edge":
        return min(max(at, 0), size - 1)
    if mode == "wrap":
        return at % size
    period = max(2 * size - 2, 1) if mode == "reflect" else 2 * size
    at %= period
    return at if at < size else period - at - (mode == "symmetric")


_MODES = (
    "constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap",
)  # fmt: skip


def pad(
    arr,
    pad_width,
    mode="constant",
    stat_length=None,
    constant_values=0,
    end_values=0,
    reflect_type="even",
    **kwargs,
):
    """`arr` with elements before and after each axis; a mode, or a function of numpy's, says which.

    Args:
        arr: A tensor.
        pad_width: ((before, after), ...) of the axes, (before, after) of every axis, or one number.
        mode: 'constant', 'edge', 'linear_ramp', 'maximum', 'mean', 'median', 'minimum', 'reflect',
            'symmetric' or 'wrap'.
        stat_length: How many elements at the edge 'maximum', 'mean', 'median' and 'minimum' are of.
        constant_values: Of 'constant'.
        end_values: Where 'linear_ramp' begins.
        reflect_type: 'even' or 'odd', of 'reflect' and 'symmetric'.
        kwargs: None.
    """
    arr = tensor(arr)
    if callable(mode):
        raise NotImplementedError("pad: a function as the mode is not provided; the modes are " + str(_MODES))
    if mode not in _MODES or kwargs:
        raise ValueError(f"pad: mode is one of {', '.join(_MODES)}, not {mode!r} with {kwargs}")
    every = [
        _widths(0 if each is None else each, arr.ndim) for each in (stat_length, constant_values, end_values)
    ]
    for axis, (before, after) in enumerate(_widths(pad_width, arr.ndim)):
        if before < 0 or after < 0:
            raise ValueError(f"pad: pad_width {pad_width} has a negative number")
        if before or after:
            settings = (*(each[axis] for each in every), reflect_type == "odd")
            rows = _padded_front(moved(arr, axis, 0), before, after, mode, settings)
            arr = moved(rows, 0, axis)
    return arr


def promote_types(type1, type2):
    """The dtype that holds numbers of both dtypes."""
    return promoted(_shared.dtype_named(type1), _shared.dtype_named(type2))


def result_type(*arrays_and_dtypes):
    """The dtype that holds the elements of all tensors, and of the dtypes."""
    found = [
        _shared.dtype_named(each) if isinstance(each, muster.DType | str | type) else tensor(each).dtype
        for each in arrays_and_dtypes
    ]
    result = found[0]
    for each in found[1:]:
        result = promoted(result, each)
    return result


__all__ = sorted(
    {*_shared.public(globals(), __name__), "mgrid", "ogrid"} - {"asarray_const", "copy", "median"}
)
__getattr__ = _names.missing(__name__)
