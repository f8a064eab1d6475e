"""Functions of numbers by MindSpore's names that are several ops, or take other arguments (others: _rows)."""

import functools
import math

import muster
from mindspore import _names
from mindspore.common import _types as dtypes
from muster import ops


def _tensor(value, dtype=None):
    return value if isinstance(value, muster.Tensor) else muster.Tensor(value, dtype)


_WHOLE = (*dtypes.int_type, *dtypes.uint_type)


def _is_whole(*values):
    """Whether all are whole numbers, or tensors of them."""
    for value in values:
        if value.dtype not in _WHOLE if isinstance(value, muster.Tensor) else type(value) is not int:
            return False
    return True


# ---- Two numbers -------------------------------------------------------------------------------------------


def subtract(input, other, *, alpha=1):
    """input - alpha other, shapes broadcast."""
    is_plain = alpha == 1 and getattr(other, "dtype", None) is not muster.bool_
    return ops.sub(input, other if is_plain else ops.mul(other, alpha))


def div(input, other, *, rounding_mode=None):
    """input / other, shapes broadcast; rounding_mode 'floor' rounds down, 'trunc' towards zero."""
    if rounding_mode == "floor":
        return ops.floor_div(input, other)
    if rounding_mode == "trunc":
        return _towards_zero(input, other)
    if rounding_mode is not None:
        raise ValueError(f"div: rounding_mode is None, 'floor' or 'trunc', not {rounding_mode!r}")
    return ops.div(input, other)


def _towards_zero(a, b):
    """a / b without the fraction; whole numbers stay whole."""
    if not _is_whole(a, b):
        return trunc(ops.div(a, b))
    like = a if isinstance(a, muster.Tensor) else b
    a, b = (_tensor(each, like.dtype) for each in (a, b))
    sizes = ops.floor_div(ops.abs(a), ops.abs(b))
    return ops.mul(ops.mul(ops.sign(a), ops.sign(b)), sizes)


def real_div(x, y):
    """x / y; of whole numbers without the fraction."""
    return _towards_zero(x, y) if _is_whole(x, y) else ops.div(x, y)


def divide(input, other, *, rounding_mode=None):
    """The same as div."""
    return div(input, other, rounding_mode=rounding_mode)


def fmod(input, other):
    """input - other trunc(input / other), with the sign of input; shapes broadcast."""
    other = _counted(other, input)
    return ops.sub(input, ops.mul(_towards_zero(input, other), other))


def _counted(value, other):
    """True and False beside whole numbers as 1 and 0 of their dtype."""
    if not _is_whole(other):
        return value
    if isinstance(value, bool):
        return int(value)
    return ops.cast(value, other.dtype) if getattr(value, "dtype", None) == muster.bool_ else value


def bias_add(input_x, bias):
    """input_x (N, C, ...) with bias (C,) added to each channel."""
    if input_x.ndim == 2 and not _is_whole(input_x):
        return ops.bias_add(input_x, bias)
    if input_x.ndim == 2:
        return ops.add(input_x, bias)
    return ops.add(input_x, ops.reshape(bias, (-1,) + (1,) * (input_x.ndim - 2)))


def squared_difference(x, y):
    """(x - y)^2, shapes broadcast."""
    return ops.square(ops.sub(x, y))


def addn(x):
    """The sum of a list of tensors of one shape."""
    total, *rest = x
    for part in rest:
        total = ops.add(total, part)
    return total


def logical_xor(input, other):
    """Whether exactly one of both is true, as bool; shapes broadcast."""
    return ops.not_equal(ops.cast(input, muster.bool_), ops.cast(other, muster.bool_))


# ---- One number --------------------------------------------------------------------------------------------


def log2(input):
    """The logarithm to base 2, element by element."""
    return ops.mul(ops.log(input), 1 / math.log(2))


def log10(input):
    """The logarithm to base 10, element by element."""
    return ops.mul(ops.log(input), 1 / math.log(10))


def tan(input):
    """The tangent of radians, element by element."""
    return ops.div(ops.sin(input), ops.cos(input))


def trunc(input):
    """Rounded towards zero, element by element."""
    return input if _is_whole(input) else ops.select(ops.less(input, 0), ops.ceil(input), ops.floor(input))


def round(input, *, decimals=0):
    """The nearest number of so many decimals, halves to the even one."""
    if decimals == 0:
        return ops.round(input)
    scale = 10.0**decimals
    return ops.div(ops.round(ops.mul(input, scale)), scale)


# ---- Activations -------------------------------------------------------------------------------------------


def of_whole_numbers(function):
    """A function that gives whole numbers for whole numbers, cut off, as MindSpore's kernels do."""

    @functools.wraps(function)
    def kept(x, *args, **kwargs):
        if not _is_whole(x):
            return function(x, *args, **kwargs)
        return ops.cast(function(ops.cast(x, muster.float32), *args, **kwargs), x.dtype)

    return kept


def relu(input, inplace=False):
    """max(input, 0), element by element; tensors are values, so `inplace` is refused."""
    _names.refuse("mindspore.ops.relu", inplace=(inplace or None, None))
    return input if input.dtype is muster.bool_ else ops.relu(input)


def gelu(input, approximate="none"):
    """input P(X <= input) for X ~ N(0, 1); approximate 'tanh' takes the formula with tanh."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    return ops.gelu(input, approximate == "tanh")


def softplus(input, beta=1, threshold=20):
    """log(1 + e^(beta input)) / beta, and input itself where beta input is above the threshold."""
    if beta == 0:
        raise ValueError("softplus: beta must not be 0")
    scaled = ops.mul(input, beta)
    return ops.select(ops.greater(scaled, threshold), input, ops.mul(ops.softplus(scaled), 1 / beta))


def logsigmoid(x):
    """log(sigmoid(x)), exact also for small x."""
    return ops.neg(ops.softplus(ops.neg(x)))


@of_whole_numbers
def hardsigmoid(input):
    """min(max(input + 3, 0), 6) / 6."""
    return ops.div(ops.relu6(ops.add(input, 3.0)), 6.0)


@of_whole_numbers
def hardswish(input):
    """input hardsigmoid(input)."""
    return ops.mul(input, hardsigmoid(input))


def hardtanh(input, min_val=-1.0, max_val=1.0):
    """input between min_val and max_val."""
    if input.dtype is muster.bool_ and min_val <= 0 and max_val >= 1:
        return input
    return ops.clip(input, min_val, max_val)


def selu(input_x):
    """1.0507 elu(input_x, 1.67326), of whole numbers their relu: both factors are cut off.

    Source: Klambauer et al., Self-normalizing neural networks, NIPS 2017.
    """
    if _is_whole(input_x):
        return ops.relu(input_x)
    return ops.mul(ops.elu(input_x, 1.6732632423543772), 1.0507009873554805)


def celu(x, alpha=1.0):
    """x where it is positive, else alpha (e^(x / alpha) - 1)."""
    return ops.mul(ops.elu(ops.div(x, alpha)), alpha)


def softsign(x):
    """x / (1 + |x|)."""
    return ops.div(x, ops.add(ops.abs(x), 1.0))


def prelu(input, weight):
    """input (N, C, ...) where it is positive, else weight (C,) or (1,) times it."""
    slopes = ops.reshape(weight, (-1,) + (1,) * (input.ndim - 2)) if input.ndim > 2 else weight
    slopes = ops.cast(slopes, input.dtype)
    return ops.select(ops.greater(input, 0), input, ops.mul(input, slopes))


def mish(x):
    """x tanh(softplus(x))."""
    return ops.mul(x, ops.tanh(ops.softplus(x)))


def softmax(input, axis=-1, *, dtype=None):
    """e^input / sum(e^input) along `axis`, computed in `dtype` when it is given."""
    return ops.softmax(input if dtype is None else ops.cast(input, dtype), axis)


# ---- Reductions --------------------------------------------------------------------------------------------


def sum(input, dim=None, keepdim=False, *, dtype=None):
    """The sum over `dim` (all axes by default), in `dtype` when it is given; of whole numbers it is int64."""
    if dtype is None:
        return ops.reduce_sum(input, dim, keepdim)
    return ops.cast(ops.reduce_sum(ops.cast(input, dtype), dim, keepdim), dtype)


def prod(input, axis=None, keep_dims=False, dtype=None):
    """The product over `axis` (all by default), in `dtype` when it is given; of whole numbers it is int64."""
    counts = _counts(input) and not isinstance(axis, tuple | list)
    wanted = muster.int64 if dtype is None and counts else dtype
    return _product(input if wanted is None else ops.cast(input, wanted), axis, keep_dims)


def _counts(input):
    """Whether it is summed and multiplied in int64."""
    return input.dtype in (muster.bool_, muster.uint8, *dtypes.int_type)


def _product(input, axis, keep_dims):
    """The product in the dtype of input; of truth values whether all are true."""
    if input.dtype is muster.bool_:
        return ops.reduce_all(input, axis, keep_dims)
    return ops.reduce_prod(input, axis, keep_dims)


def reduce_sum(x, axis=None, keep_dims=False):
    """The sum over `axis` (all by default) in the dtype of x: whole numbers wrap around."""
    return ops.cast(ops.reduce_sum(x, axis, keep_dims), x.dtype)


def amax(input, axis=None, keepdims=False, *, initial=None, where=None):
    """The greatest element over `axis` (all by default), at least `initial`; `where` tells which count."""
    from mindspore.numpy import _reductions

    return _reductions.max(input, None if axis == () else axis, keepdims, initial, where)


def amin(input, axis=None, keepdims=False, *, initial=None, where=None):
    """The smallest element over `axis` (all by default), at most `initial`; `where` tells which count."""
    from mindspore.numpy import _reductions

    return _reductions.min(input, None if axis == () else axis, keepdims, initial, where)


def _extreme_and_index(input, axis, keepdims, extreme, index_of):
    if axis is None:
        return extreme(input), muster.Tensor(0, muster.int64)
    index = ops.cast(index_of(input, axis), muster.int64)
    value = extreme(input, axis, keepdims)
    return value, ops.reshape(index, value.shape)


def _chosen(name, input, axis, initial, where, pick):
    """Each element or `initial`, whichever is the extreme; where `where` is false `initial`."""
    if initial is None and where is None:
        return input
    if axis is None:
        raise NotImplementedError(_names.sentence(f"mindspore.ops.{name}(initial, where) without an axis"))
    if initial is None:
        raise ValueError(f"{name}: `where` leaves elements out: `initial` is needed, too")
    first = ops.cast(muster.Tensor(initial), input.dtype)
    kept = input if where is None else ops.select(where, input, ops.broadcast_to(first, input.shape))
    return pick(kept, first)


def max(input, axis=None, keepdims=False, *, initial=None, where=None):
    """(values, indices int64) of the greatest elements along `axis`; of all, index 0, without an axis.

    `initial` stands where `where` is false; the values are no less than it.
    """
    input = _chosen("max", input, axis, initial, where, ops.maximum)
    return _extreme_and_index(input, axis, keepdims, ops.reduce_max, ops.argmax)


def min(input, axis=None, keepdims=False, *, initial=None, where=None):
    """(values, indices int64) of the smallest elements along `axis`; of all, index 0, without an axis.

    `initial` stands where `where` is false; the values are no more than it.
    """
    input = _chosen("min", input, axis, initial, where, ops.minimum)
    return _extreme_and_index(input, axis, keepdims, ops.reduce_min, ops.argmin)


def _index_of_extreme(input, axis, keepdims, index_of):
    given = _tensor(input)
    whole = ops.reshape(given, (-1,)) if axis is None else given
    index = ops.cast(index_of(whole, -1 if axis is None else axis), muster.int64)
    if not keepdims:
        return index
    sizes = [1] * given.ndim
    if axis is not None:
        sizes = [1 if at == axis % given.ndim else size for at, size in enumerate(given.shape)]
    return ops.reshape(index, sizes)


def argmax(input, dim=None, keepdim=False):
    """The first index of the greatest element along `dim`, or of all elements, int64."""
    return _index_of_extreme(input, dim, keepdim, ops.argmax)


def argmin(input, axis=None, keepdims=False):
    """The first index of the smallest element along `axis`, or of all, int32; of one number int64."""
    index = _index_of_extreme(input, axis, keepdims, ops.argmin)
    return ops.cast(index, muster.int32) if _tensor(input).ndim else index


def all(input, axis=None, keep_dims=False):
    """Whether every element over `axis` (all axes by default) is true, as bool."""
    return ops.reduce_all(input, axis, keep_dims)


def any(input, axis=None, keep_dims=False):
    """Whether an element over `axis` (all axes by default) is true, as bool."""
    return ops.reduce_any(input, axis, keep_dims)


def _folded_size(shape, axis) -> int:
    axes = range(len(shape)) if axis in (None, ()) else (axis,) if isinstance(axis, int) else axis
    return math.prod(shape[at] for at in axes)


def var(input, axis=None, ddof=0, keepdims=False):
    """The variance over `axis` (all axes by default), divided by the number of elements less ddof."""
    input = input if input.dtype in dtypes.float_type else ops.cast(input, muster.float32)
    away = ops.square(ops.sub(input, ops.reduce_mean(input, axis, True)))
    count = _folded_size(input.shape, axis)
    return ops.div(ops.reduce_sum(away, axis, keepdims), float(count - int(ddof)))


def std(input, axis=None, ddof=0, keepdims=False):
    """The square root of var."""
    return ops.sqrt(var(input, axis, ddof, keepdims))


def logsumexp(input, dim, keepdim=False):
    """log(sum(e^input)) over `dim`, without overflow."""
    top = ops.reduce_max(input, dim, True)
    total = ops.reduce_sum(ops.exp(ops.sub(input, top)), dim, True)
    result = ops.add(ops.log(total), top)
    return result if keepdim else ops.reduce_sum(result, dim)


# ---- Choosing, normalizing ---------------------------------------------------------------------------------


def _bounded(x, low, high):
    """Bounds may be numbers, which a row holds, or tensors, which broadcast. Of several tensors each is."""
    if isinstance(x, tuple | list) and isinstance(next(iter(x), None), muster.Tensor):
        return type(x)(_bounded(each, low, high) for each in x)
    if isinstance(low, muster.Tensor):
        x, low = ops.maximum(x, low), None
    if isinstance(high, muster.Tensor):
        x, high = ops.minimum(x, high), None
    return x if low is None and high is None else ops.clip(x, low, high)


def clip_by_value(x, clip_value_min=None, clip_value_max=None):
    """x, or each tensor of a tuple or list, between two bounds, numbers or tensors; one may be left out."""
    if clip_value_min is None and clip_value_max is None:
        raise ValueError("clip_by_value: one of the bounds is needed")
    return _bounded(x, clip_value_min, clip_value_max)


def clamp(input, min=None, max=None):
    """input, or each of several, between two bounds, numbers or tensors; one may be left out."""
    if min is None and max is None:
        raise ValueError("clamp: one of the bounds is needed")
    return _bounded(input, min, max)


def clip(input, min=None, max=None):
    """The same as clamp."""
    return clamp(input, min, max)


def dropout(input, p=0.5, training=True, seed=None):
    """Each element is 0 with probability p, else input / (1 - p); without training, input itself."""
    _names.refuse("mindspore.ops.dropout", seed=(seed, None))
    return ops.dropout(input, 1.0 - p) if training else input


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """input with mean 0 and variance 1 over its last axes (normalized_shape), times weight, plus bias."""
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not sizes or tuple(input.shape[-len(sizes) :]) != sizes:
        raise ValueError(f"layer_norm: {input.shape} does not end with normalized_shape {sizes}")

    def full(number):
        return ops.broadcast_to(muster.Tensor(number, exact), sizes)

    exact = input.dtype if input.dtype.itemsize >= 4 else muster.float32
    gamma = full(1.0) if weight is None else ops.cast(weight, exact)
    beta = full(0.0) if bias is None else ops.cast(bias, exact)
    return ops.layer_norm(input, gamma, beta, input.ndim - len(sizes), eps)


# ---- Along an axis -----------------------------------------------------------------------------------------


def cumprod(input, dim, dtype=None):
    """The products of the elements up to each along an axis, in their dtype, then cast to `dtype`."""
    found = ops.cumprod(input, dim)
    return ops.cast(found, dtype) if dtype else found


__all__ = [
    name
    for name in dir()
    if not name.startswith("_")
    and name not in ("dtypes", "functools", "math", "muster", "of_whole_numbers", "ops")
]
