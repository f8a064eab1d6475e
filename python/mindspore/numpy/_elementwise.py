"""Functions of numbers, element by element."""

import math

import muster
from mindspore import ops as named
from mindspore.numpy import _shared, array_ops
from mindspore.numpy._shared import cast, countable, is_float, real, same_dtype, tensor
from muster import ops

# ---- One tensor --------------------------------------------------------------------------------------------


def _of_one(name, compute, words, prepared=tensor):
    def function(x, dtype=None):
        return cast(compute(prepared(x)), dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = words
    return function


def _angle(x):
    """A tensor of floats: numbers of eight bits and bool in float16, as numpy's and MindSpore's."""
    x = tensor(x)
    return ops.cast(x, muster.float16) if x.dtype.name in ("bool", "int8", "uint8") else real(x)


def _single(x):
    """A tensor of floats of at least 32 bits."""
    x = real(x)
    return ops.cast(x, muster.float32) if x.dtype.itemsize < 4 else x


def _of_two(name, compute, words, prepared=tensor):
    def function(x1, x2, dtype=None):
        x1, x2 = same_dtype(_pair(prepared(x1), prepared(x2), x1, x2))
        return cast(compute(x1, x2), dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = words
    return function


def _pair(first, second, given_first, given_second):
    """Two tensors; a whole number of Python takes the dtype of the tensor beside it."""
    if _is_number(given_second) and _keeps(first, given_second):
        second = cast(second, first.dtype)
    if _is_number(given_first) and _keeps(second, given_first):
        first = cast(first, second.dtype)
    return first, second


def _is_number(value) -> bool:
    return isinstance(value, int | float)


def _keeps(value, number) -> bool:
    return value.dtype != muster.bool_ and (is_float(value.dtype) or not isinstance(number, float))


def _magnitude(x):
    return x if x.dtype == muster.bool_ or x.dtype.name.startswith("uint") else ops.abs(x)


def _whole_reciprocal(x):
    if is_float(x.dtype):
        return ops.reciprocal(x)
    greatest = 2 ** (8 * x.dtype.itemsize - (not x.dtype.name.startswith("u"))) - 1  # of 0, as in MindSpore
    parts = ops.cast(ops.div(1.0, ops.cast(x, muster.float64)), x.dtype)
    return ops.select(ops.equal(x, 0), muster.Tensor(greatest, x.dtype), parts)


def _sinh(x):
    x = real(x)
    grown = ops.expm1(x)
    return ops.mul(ops.add(grown, ops.div(grown, ops.add(grown, 1.0))), 0.5)


def _cosh(x):
    x = real(x)
    return ops.mul(ops.add(ops.exp(x), ops.exp(ops.neg(x))), 0.5)


abs = _of_one("abs", _magnitude, "|x|.")
absolute = _of_one("absolute", _magnitude, "|x|, the same as abs.")
fabs = _of_one("fabs", lambda x: ops.abs(x), "|x| of real numbers.", real)
negative = _of_one("negative", ops.neg, "-x.")
positive = _of_one("positive", lambda x: x, "x itself.")
square = _of_one("square", ops.square, "x times x.")
sqrt = _of_one("sqrt", ops.sqrt, "The square root of x.", real)
reciprocal = _of_one("reciprocal", _whole_reciprocal, "1 / x; of whole numbers, rounded towards zero.")
exp = _of_one("exp", ops.exp, "e to the power of x.", real)
expm1 = _of_one("expm1", ops.expm1, "e to the power of x, less 1, exact near 0.", real)
log = _of_one("log", ops.log, "The natural logarithm of x.", real)
log1p = _of_one("log1p", ops.log1p, "The natural logarithm of 1 + x, exact near 0.", real)
log2 = _of_one("log2", named.log2, "The logarithm of x to base 2.", real)
log10 = _of_one("log10", named.log10, "The logarithm of x to base 10.", real)
sin = _of_one("sin", ops.sin, "The sine of x.", _angle)
cos = _of_one("cos", ops.cos, "The cosine of x.", _angle)
tan = _of_one("tan", named.tan, "The tangent of x.", _angle)
sinh = _of_one("sinh", _sinh, "The hyperbolic sine of x.", _angle)
cosh = _of_one("cosh", _cosh, "The hyperbolic cosine of x.", _angle)
tanh = _of_one("tanh", ops.tanh, "The hyperbolic tangent of x.", _angle)
floor = _of_one("floor", ops.floor, "x rounded down.", real)
ceil = _of_one("ceil", ops.ceil, "x rounded up.", real)
rint = _of_one("rint", ops.round, "x rounded to the nearest whole number, halves to the even one.", real)
trunc = _of_one("trunc", named.trunc, "x rounded towards zero.", real)
deg2rad = _of_one("deg2rad", lambda x: ops.mul(x, math.pi / 180), "Degrees as radians.", real)
radians = _of_one("radians", lambda x: ops.mul(x, math.pi / 180), "Degrees as radians.", real)
rad2deg = _of_one("rad2deg", lambda x: ops.mul(x, 180 / math.pi), "Radians as degrees.", real)
sign = _of_one("sign", ops.sign, "-1, 0 or 1, as x is negative, 0 or positive.", real)
exp2 = _of_one("exp2", lambda x: ops.pow(tensor(2, x.dtype), x), "2 to the power of x.")


def arccos(input, dtype=None):
    """The arc cosine of x."""
    return cast(named.acos(_angle(input)), dtype)


arcsin = _of_one("arcsin", lambda x: named.asin(x), "The arc sine of x.", _angle)
arctan = _of_one("arctan", lambda x: named.atan(x), "The arc tangent of x.", _angle)
arcsinh = _of_one("arcsinh", lambda x: named.asinh(x), "The inverse hyperbolic sine of x.", _angle)
arccosh = _of_one("arccosh", lambda x: named.acosh(x), "The inverse hyperbolic cosine of x.", _angle)
arctanh = _of_one("arctanh", lambda x: named.atanh(x), "The inverse hyperbolic tangent of x.", _angle)
cbrt = _of_one(
    "cbrt",
    lambda x: ops.mul(ops.sign(x), ops.pow(ops.abs(x), 1 / 3)),
    "The cube root of x.",
    real,
)
signbit = _of_one(
    "signbit",
    lambda x: ops.less(ops.select(ops.equal(x, 0), ops.reciprocal(real(x)), real(x)), 0),
    "Whether x is negative, or -0, as bool.",
)
bitwise_not = _of_one("bitwise_not", lambda x: _inverted(x), "All bits of x turned; of bool, not x.")
invert = _of_one("invert", lambda x: _inverted(x), "All bits of x turned; of bool, not x.")


def _inverted(x):
    return ops.logical_not(x) if x.dtype == muster.bool_ else ops.sub(ops.neg(x), 1)


def fix(x):
    """x rounded towards zero; bfloat16 as float32."""
    x = real(x)
    return named.trunc(ops.cast(x, muster.float32) if x.dtype is muster.bfloat16 else x)


def around(a, decimals=0):
    """a rounded to `decimals` digits behind the point, halves to the even one."""
    a = tensor(a)
    if not is_float(a.dtype):
        return a
    if decimals == 0:
        return ops.round(a)
    scale = 10.0**decimals
    return ops.div(ops.round(ops.mul(a, scale)), scale)


round = around


# ---- Two tensors -------------------------------------------------------------------------------------------


def _countable_pair(compute):
    return lambda x, y: compute(countable(x), countable(y))


def _remainder(x, y):
    if x.dtype == muster.bool_:
        return cast(_remainder(cast(x, muster.int32), cast(y, muster.int32)), muster.bool_)
    return ops.sub(x, ops.mul(y, ops.floor_div(x, y)))


def _fmod(x, y):
    return cast(named.fmod(x, y), x.dtype)


def _copysign(x, y):
    x, y = countable(x), countable(y)
    return ops.select(signbit(y), ops.neg(ops.abs(x)), ops.abs(x))


def _heaviside(x, y):
    step = array_ops.where(ops.equal(x, 0), y, ops.cast(ops.greater(x, 0), x.dtype))
    return array_ops.where(ops.isnan(x), x, step) if is_float(x.dtype) else step


def _logaddexp(x, y):
    top = ops.maximum(x, y)
    away = ops.neg(ops.abs(ops.sub(x, y)))
    return ops.add(top, ops.log1p(ops.exp(away)))


def _logaddexp2(x, y):
    x, y, scale = real(x), real(y), math.log(2)
    return ops.div(_logaddexp(ops.mul(x, scale), ops.mul(y, scale)), scale)


add = _of_two("add", _countable_pair(ops.add), "x1 + x2, shapes broadcast.")
subtract = _of_two("subtract", ops.sub, "x1 - x2, shapes broadcast.")
multiply = _of_two("multiply", ops.mul, "x1 times x2, shapes broadcast.")
divide = _of_two("divide", ops.div, "x1 / x2, shapes broadcast.", real)
true_divide = _of_two("true_divide", ops.div, "x1 / x2, shapes broadcast, the same as divide.", real)
floor_divide = _of_two("floor_divide", ops.floor_div, "x1 / x2 rounded down, shapes broadcast.")
power = _of_two("power", ops.pow, "x1 to the power of x2, shapes broadcast.")
float_power = _of_two("float_power", ops.pow, "x1 to the power of x2, as real numbers.", _single)
remainder = _of_two("remainder", _remainder, "What x1 / x2 rounded down leaves, with the sign of x2.")
mod = _of_two("mod", _remainder, "What x1 / x2 rounded down leaves, with the sign of x2.")
fmod = _of_two("fmod", _fmod, "What x1 / x2 rounded towards zero leaves, with the sign of x1.")
maximum = _of_two("maximum", ops.maximum, "The greater of x1 and x2, shapes broadcast.")
minimum = _of_two("minimum", ops.minimum, "The smaller of x1 and x2, shapes broadcast.")
hypot = _of_two(
    "hypot",
    lambda x, y: ops.sqrt(ops.add(ops.square(x), ops.square(y))),
    "sqrt(x1^2 + x2^2), shapes broadcast.",
    real,
)
copysign = _of_two("copysign", _copysign, "|x1| with the sign of x2, shapes broadcast.")
heaviside = _of_two("heaviside", _heaviside, "0 for negative x1, x2 for 0, else 1, shapes broadcast.")
logaddexp = _of_two("logaddexp", _logaddexp, "log(e^x1 + e^x2), shapes broadcast.", real)
logaddexp2 = _of_two("logaddexp2", _logaddexp2, "log2(2^x1 + 2^x2), shapes broadcast.")
arctan2 = _of_two("arctan2", lambda x, y: named.atan2(x, y), "The angle of (x2, x1), shapes broadcast.", real)
bitwise_and = _of_two("bitwise_and", lambda x, y: x & y, "x1 and x2, bit by bit.")
bitwise_or = _of_two("bitwise_or", lambda x, y: x | y, "x1 or x2, bit by bit.")
bitwise_xor = _of_two("bitwise_xor", lambda x, y: x ^ y, "Bits that x1 or x2 has, not both.")


def divmod(x1, x2, dtype=None):
    """(x1 / x2 rounded down, what is left), shapes broadcast."""
    return floor_divide(x1, x2, dtype), remainder(x1, x2, dtype)


def _euclid(x, y):
    """The greatest common divisor, by as many steps as numbers of 64 bits may need."""
    x, y = ops.abs(x), ops.abs(y)
    x, y = ops.maximum(x, y), ops.minimum(x, y)
    for _ in range(46 if x.dtype.itemsize < 8 else 92):
        left = _remainder(x, ops.maximum(y, 1))
        done = ops.equal(y, 0)
        x, y = ops.select(done, x, y), ops.select(done, y, left)
    return x


def gcd(x1, x2, dtype=None):
    """The greatest whole number that divides both, shapes broadcast."""
    x1, x2 = array_ops.broadcast_arrays(*same_dtype(_pair(tensor(x1), tensor(x2), x1, x2)))
    return cast(_euclid(x1, x2), dtype)


def lcm(x1, x2, dtype=None):
    """The smallest positive whole number that both divide, shapes broadcast; 0 where one is 0."""
    x1, x2 = array_ops.broadcast_arrays(*same_dtype(_pair(tensor(x1), tensor(x2), x1, x2)))
    common = ops.maximum(_euclid(x1, x2), 1)
    return cast(ops.mul(ops.floor_div(ops.abs(x1), common), ops.abs(x2)), dtype)


def clip(x, xmin, xmax, dtype=None):
    """x between two bounds, numbers or tensors; one may be None."""
    if xmin is None and xmax is None:
        raise ValueError("clip: one of the bounds is needed")
    x = tensor(x)
    if xmin is not None:
        x = maximum(x, tensor(xmin, x.dtype))
    if xmax is not None:
        x = minimum(x, tensor(xmax, x.dtype))
    return cast(x, dtype)


__all__ = _shared.public(globals(), __name__)
