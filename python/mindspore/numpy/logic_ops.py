"""mindspore.numpy.logic_ops: comparisons and truth values."""

import muster
from mindspore import _names
from mindspore.numpy import _shared
from mindspore.numpy._shared import axes_of, cast, real, same_dtype, tensor
from muster import ops


def _comparison(name, compute, words):
    def function(x1, x2, dtype=None):
        x1, x2 = same_dtype([tensor(x1), tensor(x2)])
        return cast(compute(x1, x2), dtype)

    return _named(function, name, f"Whether x1 {words} x2, as bool; shapes broadcast.")


def _question(name, compute, words):
    def function(x, dtype=None):
        return cast(compute(tensor(x)), dtype)

    return _named(function, name, f"Whether an element is {words}, as bool.")


def _named(function, name, words):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = words
    return function


equal = _comparison("equal", ops.equal, "is equal to")
not_equal = _comparison("not_equal", ops.not_equal, "differs from")
less = _comparison("less", ops.less, "is less than")
less_equal = _comparison("less_equal", ops.less_equal, "is at most")
greater = _comparison("greater", ops.greater, "is greater than")
greater_equal = _comparison("greater_equal", ops.greater_equal, "is at least")
isnan = _question("isnan", ops.isnan, "no number")
isinf = _question("isinf", ops.isinf, "infinite")
isfinite = _question("isfinite", ops.isfinite, "a finite number")


def isposinf(x):
    """Whether an element is positive infinity, as bool."""
    return ops.equal(real(x), float("inf"))


def isneginf(x):
    """Whether an element is negative infinity, as bool."""
    return ops.equal(real(x), float("-inf"))


def isscalar(element):
    """Whether it is a number, a truth value or a string of Python; a tensor is none."""
    return isinstance(element, int | float | bool | str | complex)


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether |a - b| <= atol + rtol |b|, as bool."""
    a, b = same_dtype([real(a), real(b)])
    near = ops.less_equal(ops.abs(ops.sub(a, b)), ops.add(ops.mul(ops.abs(b), float(rtol)), float(atol)))
    finite = ops.logical_and(ops.isfinite(a), ops.isfinite(b))
    close = ops.logical_or(ops.equal(a, b), ops.logical_and(near, finite))
    return ops.logical_or(close, ops.logical_and(ops.isnan(a), ops.isnan(b))) if equal_nan else close


def _truth(x):
    return cast(tensor(x), muster.bool_)


def logical_not(a, dtype=None):
    """Whether an element is 0, as bool."""
    return cast(ops.logical_not(_truth(a)), dtype)


def logical_and(x1, x2, dtype=None):
    """Whether both are true, as bool; shapes broadcast."""
    return cast(ops.logical_and(_truth(x1), _truth(x2)), dtype)


def logical_or(x1, x2, dtype=None):
    """Whether one or both are true, as bool; shapes broadcast."""
    return cast(ops.logical_or(_truth(x1), _truth(x2)), dtype)


def logical_xor(x1, x2, dtype=None):
    """Whether just one is true, as bool; shapes broadcast."""
    return cast(ops.not_equal(_truth(x1), _truth(x2)), dtype)


def sometrue(a, axis=None, keepdims=False):
    """Whether an element along the axes is true, as bool."""
    a = _truth(a)
    return ops.reduce_any(a, axes_of(axis, a.ndim, "sometrue"), keepdims)


def array_equal(a1, a2, equal_nan=False):
    """Whether shapes and elements are equal, as bool."""
    a1, a2 = tensor(a1), tensor(a2)
    if a1.shape != a2.shape:
        return muster.Tensor(False)
    same = equal(a1, a2)
    if equal_nan:
        same = ops.logical_or(same, ops.logical_and(ops.isnan(a1), ops.isnan(a2)))
    return ops.reduce_all(same)


def array_equiv(a1, a2):
    """Whether one broadcasts to the other and the elements are equal, as bool."""
    a1, a2 = tensor(a1), tensor(a2)
    try:
        shape = _shared.broadcast_shape(a1.shape, a2.shape)
    except ValueError:
        return muster.Tensor(False)
    return ops.reduce_all(equal(*(ops.broadcast_to(each, shape) for each in (a1, a2))))


def in1d(ar1, ar2, invert=False):
    """Whether each element of the first is one of the second, along one axis, as bool."""
    return isin(ops.reshape(tensor(ar1), (-1,)), ar2, invert)


def isin(element, test_elements, invert=False):
    """Whether each element is one of `test_elements`, or none with `invert`, as bool."""
    element = tensor(element)
    found = ops.reduce_any(
        equal(ops.expand_dims(element, element.ndim), ops.reshape(tensor(test_elements), (-1,))), -1
    )
    return ops.logical_not(found) if invert else found


__all__ = sorted(_shared.public(globals(), __name__))
__getattr__ = _names.missing(__name__)
