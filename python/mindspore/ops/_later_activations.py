"""mindspore.ops: further activations."""

import muster
from mindspore.ops import _math
from muster import ops


def threshold(input, thr, value):
    """input where it is above `thr`, else `value`."""
    return ops.select(ops.greater(input, thr), input, ops.full_like(input, value))


def hardshrink(input, lambd=0.5):
    """input where its size is above `lambd`, else 0."""
    return ops.select(_is_far(input, lambd), input, ops.zeros_like(input))


def _is_far(x, lambd):
    """Where |x| is above it, which float16 would round first."""
    wide = ops.cast(x, muster.float32) if x.dtype is muster.float16 else x
    return ops.greater(ops.abs(wide), lambd)


def softshrink(input, lambd=0.5):
    """input moved towards 0 by `lambd`, and 0 where its size is not above it."""
    moved = ops.sub(input, ops.mul(ops.sign(input), lambd))
    return ops.select(_is_far(input, lambd), moved, ops.zeros_like(input))


soft_shrink = softshrink


def tanhshrink(input):
    """input - tanh(input)."""
    return ops.sub(input, ops.tanh(input))


def softmin(x, axis=-1, *, dtype=None):
    """The softmax of -x."""
    return _math.softmax(ops.neg(x), axis, dtype=dtype)


def fast_gelu(x):
    """x e^(0.851 (x - |x|)) / (1 + e^(-1.702 |x|))."""
    size = ops.abs(x)
    top = ops.exp(ops.mul(ops.sub(x, size), 0.851))
    return ops.div(ops.mul(x, top), ops.add(ops.exp(ops.mul(size, -1.702)), 1.0))


def glu(x, axis=-1):
    """One half of x along `axis` times the sigmoid of the other."""
    a, b = ops.split(x, x.shape[axis] // 2, axis)
    return ops.mul(a, ops.sigmoid(b))


def swiglu(input, dim=-1):
    """silu of one half of input along `dim` times the other."""
    a, b = ops.split(input, input.shape[dim] // 2, dim)
    return ops.mul(ops.silu(a), b)


__all__ = [name for name, value in list(globals().items()) if callable(value) and not name.startswith("_")]
