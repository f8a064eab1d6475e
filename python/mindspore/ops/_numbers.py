"""mindspore.ops: functions of numbers, element by element and over axes, that are several ops."""

import math
import numbers

import muster
from mindspore.ops import _math
from muster import ops


def tensor(value, dtype=None):
    """A Tensor as it is, anything else as a new one."""
    return value if isinstance(value, muster.Tensor) else muster.Tensor(value, dtype)


def floating(x):
    """Whole numbers as float32."""
    x = tensor(x)
    return x if is_floating_point(x) else ops.cast(x, muster.float32)


def _beside(value, other):
    """A tensor as it is; of a number one of the dtype that it has beside the tensor `other`."""
    if isinstance(value, muster.Tensor) or not isinstance(value, int | float):
        return tensor(value)
    if not isinstance(other, muster.Tensor) or other.dtype == muster.bool_:
        return tensor(value)
    widens = isinstance(value, float) and not is_floating_point(other)
    return muster.Tensor(value, muster.float32 if widens else other.dtype)


def pair(a, b):
    """Two tensors, of tensors or numbers."""
    return _beside(a, b), _beside(b, a)


def all_floating(*values):
    """Tensors of fractions; whole numbers and Python's take the dtype of the first that has fractions."""
    given = [each for each in values if isinstance(each, muster.Tensor)]
    dtype = next((each.dtype for each in given if is_floating_point(each)), None)
    if dtype is None:
        return [floating(each) for each in values]
    return [
        (each if is_floating_point(each) else ops.cast(each, dtype))
        if isinstance(each, muster.Tensor)
        else muster.Tensor(each, dtype)
        for each in values
    ]


def alike(*tensors):
    """All of one shape, floating; numbers take the dtype of the tensor beside them."""
    made = all_floating(*tensors)
    total = made[0]
    for each in made[1:]:
        total = ops.add(ops.mul(total, 0), ops.mul(each, 0))
    return [ops.broadcast_to(ops.cast(each, total.dtype), total.shape) for each in made]


def is_floating_point(input):
    """Whether the dtype is one of fractions."""
    return str(input.dtype).lower().rsplit(".", 1)[-1] in ("float16", "float32", "float64", "bfloat16")


# ---- Two numbers -------------------------------------------------------------------------------------------


def atan2(input, other):
    """The angle of the points (other, input) in radians, shapes broadcast."""
    return ops.atan2(*alike(input, other))


arctan2 = atan2


def hypot(input, other):
    """sqrt(input^2 + other^2) without overflow, shapes broadcast."""
    input, other = ops.abs(floating(input)), ops.abs(floating(other))
    large, small = ops.maximum(input, other), ops.minimum(input, other)
    safe = ops.select(ops.equal(large, 0), ops.ones_like(large), large)
    return ops.mul(large, ops.sqrt(ops.add(ops.square(ops.div(small, safe)), 1.0)))


def fmax(input, other):
    """The greater one; of a number and NaN the number."""
    input, other = pair(input, other)
    return _without_nan(ops.maximum(input, other), input, other)


def fmin(input, other):
    """The smaller one; of a number and NaN the number."""
    input, other = pair(input, other)
    return _without_nan(ops.minimum(input, other), input, other)


def _without_nan(chosen, a, b):
    if not is_floating_point(chosen):
        return chosen
    chosen = ops.select(ops.isnan(a), ops.add(b, ops.zeros_like(chosen)), chosen)
    return ops.select(ops.isnan(b), ops.select(ops.isnan(a), chosen, a), chosen)


def copysign(x, other):
    """|x| with the sign of other, shapes broadcast."""
    size = ops.abs(floating(x))
    return ops.mul(size, ops.cast(ops.select(signbit(tensor(other)), -1.0, 1.0), size.dtype))


def signbit(input):
    """Whether a number is negative; -0 is."""
    input = tensor(input)
    if not is_floating_point(input):
        return ops.less(input, 0)
    zero = ops.equal(input, 0)
    safe = ops.select(zero, input, ops.ones_like(input))
    return ops.logical_or(ops.less(input, 0), ops.logical_and(zero, ops.less(ops.div(1.0, safe), 0)))


def heaviside(input, values):
    """0 below 0, 1 above, `values` at 0."""
    input = tensor(input)
    step = ops.cast(ops.greater(input, 0), input.dtype)
    return ops.select(ops.equal(input, 0), tensor(values), step)


def xlogy(input, other):
    """input log(other), 0 where input is 0; shapes broadcast."""
    a, b = alike(input, other)
    zero = ops.logical_and(ops.equal(a, 0), ops.logical_not(ops.isfinite(ops.log(b))))
    return ops.mul(a, ops.log(ops.select(zero, ops.ones_like(b), b)))


def xdivy(x, y):
    """x / y, 0 where x is 0; shapes broadcast."""
    x, y = alike(x, y)
    zero = ops.equal(x, 0)
    safe = ops.reciprocal(ops.select(zero, ops.ones_like(y), y))
    return ops.select(zero, ops.zeros_like(x), ops.mul(x, safe))


def div_no_nan(x1, x2):
    """x1 / x2, 0 where x2 is 0; shapes broadcast."""
    x1, x2 = alike(x1, x2)
    zero = ops.equal(x2, 0)
    return ops.select(zero, ops.zeros_like(x1), ops.div(x1, ops.select(zero, ops.ones_like(x2), x2)))


def mul_no_nan(x, y):
    """x y, 0 where y is 0 even for infinite x; shapes broadcast."""
    zero = ops.equal(y, 0)
    return ops.select(zero, ops.zeros_like(ops.mul(x, y)), ops.mul(x, y))


def truncate_div(x, y):
    """x / y rounded towards zero, shapes broadcast."""
    x, y = pair(x, y)
    if is_floating_point(x) or is_floating_point(y):
        return _math.trunc(ops.div(x, y))
    quotient = ops.floor_div(x, y)
    inexact = ops.not_equal(ops.mul(quotient, y), x)
    return ops.add(quotient, ops.cast(ops.logical_and(inexact, ops.less(quotient, 0)), quotient.dtype))


def truncate_mod(x, y):
    """x - y truncate_div(x, y), with the sign of x."""
    x, y = pair(x, y)
    return ops.sub(x, ops.mul(truncate_div(x, y), y))


def ldexp(x, other):
    """x 2^other, shapes broadcast."""
    return ops.mul(tensor(x), ops.pow(2.0, floating(other)))


def logaddexp(input, other):
    """log(e^input + e^other) without overflow, shapes broadcast."""
    input, other = alike(input, other)
    top = ops.stop_gradient(ops.maximum(input, other))
    top = ops.select(ops.isinf(top), ops.zeros_like(top), top)
    return ops.add(ops.log(ops.add(ops.exp(ops.sub(input, top)), ops.exp(ops.sub(other, top)))), top)


def logaddexp2(input, other):
    """log2(2^input + 2^other) without overflow, shapes broadcast."""
    input, other = alike(input, other)
    return ops.div(logaddexp(ops.mul(input, math.log(2)), ops.mul(other, math.log(2))), math.log(2))


def float_power(input, exponent):
    """input^exponent in float64."""
    return ops.pow(ops.cast(tensor(input), muster.float64), ops.cast(tensor(exponent), muster.float64))


def gcd(input, other):
    """The greatest common divisor of whole numbers, shapes broadcast."""
    input, other = pair(input, other)
    a, b = ops.abs(ops.add(input, ops.mul(other, 0))), ops.abs(ops.add(other, ops.mul(input, 0)))
    for _ in range(94 if a.dtype == muster.int64 else 48):  # the longest runs of Euclid's algorithm
        done = ops.equal(b, 0)
        rest = ops.mod(a, ops.select(done, ops.ones_like(b), b))
        a, b = ops.select(done, a, b), ops.select(done, b, rest)
    return a


def lcm(input, other):
    """The least common multiple of whole numbers, shapes broadcast."""
    input, other = pair(input, other)
    common = gcd(input, other)
    safe = ops.select(ops.equal(common, 0), ops.ones_like(common), common)
    return ops.abs(ops.mul(ops.floor_div(input, safe), other))


def bitwise_left_shift(input, other):
    """input 2^other of whole numbers; it wraps around."""
    return ops.mul(input, ops.pow(ops.add(ops.mul(input, 0), 2), other))


def bitwise_right_shift(input, other):
    """input / 2^other of whole numbers, rounded down."""
    return ops.floor_div(input, ops.pow(ops.add(ops.mul(input, 0), 2), other))


def nextafter(input, other):
    """The float next to input towards other."""
    input, other = alike(input, other)
    if input.dtype == muster.float64:
        return ops.nextafter(input, other)
    # One step of float64 and back rounds to the same float32: a step is made of its own distance.
    exponent = ops.floor(_math.log2(ops.maximum(ops.abs(input), 1.1754943508222875e-38)))
    size = ops.pow(ops.full_like(input, 2.0), ops.sub(exponent, 23.0))
    toward_zero = ops.less(ops.mul(ops.sub(other, input), ops.sign(input)), 0)
    edge = ops.logical_and(toward_zero, ops.equal(ops.abs(input), ops.pow(2.0, exponent)))
    size = ops.select(edge, ops.mul(size, 0.5), size)
    size = ops.select(ops.equal(input, 0), ops.full_like(input, 1.401298464324817e-45), size)
    moved = ops.add(input, ops.mul(ops.sign(ops.sub(other, input)), size))
    return ops.select(ops.equal(input, other), other, moved)


def polygamma(n, input):
    """The derivative of order n of digamma at input."""
    return ops.polygamma(*alike(n, input))


def zeta(input, other):
    """The Hurwitz zeta function, shapes broadcast."""
    return ops.zeta(*alike(input, other))


def igamma(input, other):
    """The regularized lower incomplete gamma function of a = input and x = other, shapes broadcast."""
    return ops.igamma(*alike(input, other))


def igammac(input, other):
    """The regularized upper incomplete gamma function of a = input and x = other, shapes broadcast."""
    return ops.igammac(*alike(input, other))


def lerp(input, end, weight):
    """input + weight (end - input), shapes broadcast."""
    return ops.add(input, ops.mul(weight, ops.sub(end, input)))


def addcdiv(input, tensor1, tensor2, value=1):
    """input + value tensor1 / tensor2, shapes broadcast."""
    return ops.add(input, ops.mul(ops.div(tensor1, tensor2), value))


def addcmul(input, tensor1, tensor2, value=1):
    """input + value tensor1 tensor2, shapes broadcast."""
    return ops.add(input, ops.mul(ops.mul(tensor1, tensor2), value))


# ---- One number --------------------------------------------------------------------------------------------


def exp2(input):
    """2^input."""
    x = floating(input)
    x = ops.cast(x, muster.float32) if x.dtype is muster.bfloat16 else x
    return ops.exp(ops.mul(x, math.log(2)))


def frac(x):
    """x without its whole part, with the sign of x."""
    x = ops.cast(x, muster.int64) if x.dtype is muster.bool_ else x
    return ops.sub(x, _math.trunc(x))


def sinc(input):
    """sin(pi input) / (pi input), 1 at 0."""
    x = ops.mul(floating(input), math.pi)
    zero = ops.equal(x, 0)
    safe = ops.select(zero, ops.ones_like(x), x)
    return ops.select(zero, ops.ones_like(x), ops.div(ops.sin(safe), safe))


def logit(input, eps=None):
    """log(x / (1 - x)); with `eps` of input between eps and 1 - eps."""
    x = floating(input)
    if eps is not None and eps >= 0:
        x = ops.clip(x, eps, 1 - eps)
    return ops.log(ops.div(x, ops.sub(1.0, x)))


def mvlgamma(input, p):
    """The logarithm of the multivariate gamma function of dimension p."""
    total = ops.mul(ops.ones_like(input), p * (p - 1) / 4 * math.log(math.pi))
    for j in range(p):
        total = ops.add(total, ops.lgamma(ops.sub(input, j / 2)))
    return total


def nan_to_num(input, nan=None, posinf=None, neginf=None):
    """NaN as `nan` (0), infinities as the greatest and smallest number unless said otherwise."""
    tops = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float64": 1.7976931348623157e308}
    top = tops.get(input.dtype.name, 3.4028234663852886e38)  # float32's is infinite in the shorter ones
    replaced = ops.select(ops.isnan(input), ops.full_like(input, 0.0 if nan is None else nan), input)
    infinite = ops.isinf(input)
    for sign, value in ((1, top if posinf is None else posinf), (-1, -top if neginf is None else neginf)):
        there = ops.logical_and(infinite, ops.greater(ops.mul(input, sign), 0))
        replaced = ops.select(there, ops.full_like(input, value), replaced)
    return replaced


def deg2rad(x):
    """Degrees as radians."""
    return ops.mul(floating(x), math.pi / 180)


def rad2deg(x):
    """Radians as degrees."""
    return ops.mul(floating(x), 180 / math.pi)


def inv(x):
    """1 / x; of whole numbers cut off to one, and 0 for 0."""
    if not _math._is_whole(x):
        return ops.reciprocal(x)
    return ops.select(ops.equal(ops.abs(x), 1), x, ops.zeros_like(x))


def sgn(input):
    """-1, 0 or 1."""
    return ops.sign(input)


def positive(input):
    """input."""
    return input


def real(input):
    """input, which has no imaginary part here."""
    return input


def isneginf(input):
    """Whether an element is minus infinity."""
    return ops.logical_and(ops.isinf(input), ops.less(input, 0))


def isposinf(input):
    """Whether an element is plus infinity."""
    return ops.logical_and(ops.isinf(input), ops.greater(input, 0))


def isreal(input):
    """True for each element: there are no complex ones here."""
    return ops.ones_like(ops.cast(input, muster.bool_))


def is_complex(input):
    """False: there are no complex dtypes here."""
    return False


def is_nonzero(input):
    """Whether the one element is not 0."""
    if input._size != 1:
        raise ValueError(f"is_nonzero: a tensor of one element is needed, not of shape {input.shape}")
    return bool(input.item())


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether |input - other| <= atol + rtol |other|, shapes broadcast."""
    input, other = tensor(input), tensor(other)
    near = ops.less_equal(ops.abs(ops.sub(input, other)), ops.add(ops.mul(ops.abs(other), rtol), atol))
    same = ops.equal(input, other)
    if is_floating_point(input) and is_floating_point(other):
        finite = ops.logical_and(ops.isfinite(input), ops.isfinite(other))
        near = ops.logical_and(near, finite)
        if equal_nan:
            same = ops.logical_or(same, ops.logical_and(ops.isnan(input), ops.isnan(other)))
    return ops.logical_or(near, same)


def approximate_equal(x, y, tolerance=1e-5):
    """Whether |x - y| < tolerance."""
    return ops.less(ops.abs(ops.sub(x, y)), tolerance)


def erfinv_(input):
    """ops.erfinv."""
    return ops.erfinv(input)


# ---- Over axes ---------------------------------------------------------------------------------------------


def count_nonzero(x, axis=(), keep_dims=False, dtype=muster.int32):
    """How many elements over `axis` (all axes by default) are not 0."""
    axis = None if axis == () else axis
    return ops.cast(ops.reduce_sum(ops.cast(ops.not_equal(x, 0), muster.int32), axis, keep_dims), dtype)


def aminmax(input, *, axis=0, keepdims=False):
    """The smallest and the greatest elements over `axis`."""
    return ops.reduce_min(input, axis, keepdims), ops.reduce_max(input, axis, keepdims)


def std_mean(input, axis=None, ddof=0, keepdims=False):
    """The standard deviation and the mean over `axis`."""
    return _math.std(input, axis, ddof, keepdims), ops.reduce_mean(input, axis, keepdims)


def var_mean(input, axis=None, ddof=0, keepdims=False):
    """The variance and the mean over `axis`."""
    return _math.var(input, axis, ddof, keepdims), ops.reduce_mean(input, axis, keepdims)


def reduce_std(input, axis=(), unbiased=True, keep_dims=False):
    """The standard deviation and the mean over `axis` (all axes by default)."""
    return std_mean(input, None if axis in ((), []) else axis, int(unbiased), keep_dims)


def nansum(input, axis=None, keepdims=False, *, dtype=None):
    """The sum over `axis` of the elements that are not NaN, in the dtype of the input; of bool int64."""
    filled = ops.select(ops.isnan(input), ops.zeros_like(input), input)
    own = muster.int64 if input.dtype == muster.bool_ else input.dtype
    return _math.sum(filled, axis, keepdims, dtype=dtype or own)


def nanmean(input, axis=None, keepdims=False, *, dtype=None):
    """The mean over `axis` of the elements that are not NaN."""
    count = ops.reduce_sum(ops.cast(ops.logical_not(ops.isnan(input)), input.dtype), axis, keepdims)
    return ops.div(nansum(input, axis, keepdims, dtype=dtype), count)


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):  # noqa: N803 - MindSpore's name
    """The norm of vectors along `dim`, or of matrices along two; of all elements as one vector without."""
    A = floating(A if dtype is None else ops.cast(A, dtype))  # noqa: N806
    if ord is None:
        return vector_norm(A, 2, dim, keepdim)
    if isinstance(dim, int) or (dim is None and A.ndim == 1) or (dim is not None and len(dim) == 1):
        return vector_norm(A, ord, dim, keepdim)
    from mindspore.ops import _lapack

    return _lapack.matrix_norm(A, ord, (0, 1) if dim is None else dim, keepdim)


def vector_norm(x, ord=2, axis=None, keepdims=False, *, dtype=None):
    """The p-norm over `axis` (all axes by default) for p = `ord`, a number or +-inf."""
    size = ops.abs(floating(x if dtype is None else ops.cast(x, dtype)))
    if ord == math.inf:
        return ops.reduce_max(size, axis, keepdims)
    if ord == -math.inf:
        return ops.reduce_min(size, axis, keepdims)
    if ord == 0:
        return ops.reduce_sum(ops.cast(ops.not_equal(size, 0), size.dtype), axis, keepdims)
    if ord == 1:
        return ops.reduce_sum(size, axis, keepdims)
    if ord == 2:
        return _root(ops.reduce_sum(ops.square(size), axis, keepdims), 2)
    return _root(ops.reduce_sum(ops.pow(size, float(ord)), axis, keepdims), ord)


def _root(x, p):
    """x^(1/p), whose gradient at 0 is 0."""
    zero = ops.equal(x, 0)
    safe = ops.select(zero, ops.ones_like(x), x)
    root = ops.sqrt(safe) if p == 2 else ops.pow(safe, 1.0 / p)
    at_zero = ops.zeros_like(x) if p > 0 else ops.full_like(x, math.inf)
    return ops.select(zero, at_zero, root)


def lp_norm(x, axis=None, p=2, keep_dims=False, epsilon=1e-12):
    """The p-norm over `axis`, at least epsilon."""
    return ops.maximum(vector_norm(x, p, axis, keep_dims), epsilon)


def l2_normalize(x, axis=0, epsilon=1e-4):
    """x over its 2-norm along `axis`, which counts as at least sqrt(epsilon)."""
    size = ops.reduce_sum(ops.square(x), axis, True)
    return ops.mul(x, ops.rsqrt(ops.maximum(size, epsilon)))


def dist(input, other, p=2):
    """The p-norm of input - other."""
    return vector_norm(ops.sub(input, other), p)


def cdist(x1, x2, p=2.0):
    """The p-norms between the rows of x1 (..., P, M) and of x2 (..., R, M): (..., P, R)."""
    away = ops.sub(ops.expand_dims(x1, -2), ops.expand_dims(x2, -3))
    return vector_norm(away, p, -1)


def renorm(input, p, axis, maxnorm):
    """input with each part along `axis` scaled down to a p-norm of at most maxnorm."""
    axes = tuple(each for each in range(input.ndim) if each != axis % input.ndim)
    size = vector_norm(input, p, axes, True)
    factor = ops.select(
        ops.greater(size, maxnorm), ops.div(maxnorm, ops.add(size, 1e-7)), ops.ones_like(size)
    )
    return ops.mul(input, factor)


def cosine_similarity(x1, x2, dim=1, eps=1e-08):
    """The cosine of the angle between x1 and x2 along `dim`."""
    product = ops.reduce_sum(ops.mul(x1, x2), dim)
    sizes = [ops.maximum(vector_norm(x, 2, dim), eps) for x in (x1, x2)]
    return ops.div(product, ops.mul(*sizes))


def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariances of the rows (variables) over the columns (observations)."""
    x = ops.reshape(input, (1, -1)) if input.ndim < 2 else input
    weights = None
    for given in (fweights, aweights):
        if given is not None:
            given = ops.cast(given, x.dtype)
            weights = given if weights is None else ops.mul(weights, given)
    weights = ops.ones(x.shape[1], x.dtype) if weights is None else weights
    total = ops.reduce_sum(weights)
    away = ops.sub(x, ops.div(ops.reduce_sum(ops.mul(x, weights), 1, True), total))
    if aweights is not None and correction != 0:
        scale = ops.div(ops.reduce_sum(ops.mul(weights, ops.cast(aweights, x.dtype))), total)
    else:
        scale = 1.0
    divisor = ops.sub(total, ops.mul(scale, float(correction)))
    made = ops.div(ops.matmul(ops.mul(away, weights), ops.transpose(away, (1, 0))), divisor)
    return ops.squeeze(made) if input.ndim < 2 else made


def trapz(y, x=None, *, dx=1.0, dim=-1):
    """The integral of y along `dim` by trapezoids, between the points x or ones `dx` apart."""
    size, y = y.shape[dim], floating(y)
    left, right = (ops.gather(y, _range(begin, begin + size - 1), dim) for begin in (0, 1))
    width = dx
    if x is not None:
        width = ops.sub(ops.gather(x, _range(1, size), -1), ops.gather(x, _range(0, size - 1), -1))
        if x.ndim == 1:
            width = ops.reshape(width, [size - 1 if at == dim % y.ndim else 1 for at in range(y.ndim)])
    return ops.reduce_sum(ops.mul(ops.mul(ops.add(left, right), 0.5), width), dim)


def _range(begin, end):
    return ops.arange(begin, end)


def diff(x, n=1, axis=-1, prepend=None, append=None):
    """The differences of neighbours along `axis`, n times."""
    parts = [part for part in (prepend, x, append) if part is not None]
    x = ops.concat(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        size = x.shape[axis]
        x = ops.sub(ops.gather(x, _range(1, size), axis), ops.gather(x, _range(0, size - 1), axis))
    return x


def cummax(input, axis):
    """(values, indices int64): the greatest elements so far along `axis`."""
    values, indices = ops.cummax(input, axis)
    return values, ops.cast(indices, muster.int64)


def cummin(input, axis):
    """(values, indices int32): the smallest elements so far along `axis`."""
    return ops.cummin(input, axis)


def accumulate_n(x):
    """The sum of tensors of one shape."""
    return _math.addn(x)


def scalar_number(value):
    """A tensor of one element as a number."""
    return value if isinstance(value, numbers.Number) else value.item()


_OWN = ("alike", "all_floating", "floating", "pair", "scalar_number", "tensor")
__all__ = [
    name
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_") and name not in _OWN
]
