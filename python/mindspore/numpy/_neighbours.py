"""What is computed of neighbours along an axis, and polynomials."""

import builtins
import math

import muster
from mindspore.numpy import _shared, array_ops
from mindspore.numpy._elementwise import _remainder, add, multiply
from mindspore.numpy._shared import (
    axes_of,
    axis_of,
    cast,
    real,
    same_dtype,
    tensor,
)
from mindspore.numpy._statistics import searchsorted
from mindspore.numpy.array_creations import full
from muster import ops

# ---- Neighbours --------------------------------------------------------------------------------------------


def diff(a, n=1, axis=-1, prepend=None, append=None):
    """The differences of neighbours along an axis, n times."""
    a = tensor(a)
    axis = axis_of(axis, a.ndim, "diff")
    if not isinstance(n, int) or n < 0:
        raise ValueError(f"diff: n is a whole number from 0, not {n!r}")
    sides = [[] if each is None else [array_ops.atleast_1d(each)] for each in (prepend, append)]
    if prepend is not None or append is not None:
        a = array_ops.concatenate((*sides[0], a, *sides[1]), axis)
    for _ in builtins.range(n):
        a = ops.sub(_between(a, axis, 1, None), _between(a, axis, 0, -1))
    return a


def _between(a, axis, start, stop, step=None):
    return a[(*(slice(None),) * axis, slice(start, stop, step))]


def ediff1d(ary, to_end=None, to_begin=None):
    """The differences of neighbours among all elements, with others in front and behind."""
    ary = ops.reshape(tensor(ary), (-1,))
    parts = [
        None if each is None else ops.reshape(tensor(each, ary.dtype), (-1,)) for each in (to_begin, to_end)
    ]
    joined = [parts[0], diff(ary), parts[1]]
    return ops.concat([each for each in joined if each is not None], 0)


def gradient(f, *varargs, axis=None, edge_order=1):
    """The slope along each axis from the neighbours on both sides, the only one at an edge, as a list."""
    if edge_order != 1:
        raise ValueError(f"gradient: edge_order is 1, not {edge_order!r}")
    f = real(f)
    axes = axes_of(axis, f.ndim, "gradient")
    spacings = [1.0] * len(axes) if not varargs else list(varargs)
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    if len(spacings) != len(axes):
        raise ValueError(f"gradient: {len(varargs)} distances for {len(axes)} axes")
    made = [_slope(f, at, spacing) for at, spacing in zip(axes, spacings, strict=True)]
    return made[0] if len(made) == 1 else made


def _slope(f, axis, spacing):
    if f.shape[axis] < 2:
        raise ValueError(f"gradient: axis {axis} of {f.shape} has fewer than two elements")
    if isinstance(spacing, muster.Tensor) and spacing.ndim:
        raise NotImplementedError("gradient: distances are numbers here")
    first = ops.sub(_between(f, axis, 1, 2), _between(f, axis, 0, 1))
    last = ops.sub(_between(f, axis, -1, None), _between(f, axis, -2, -1))
    inside = ops.mul(ops.sub(_between(f, axis, 2, None), _between(f, axis, 0, -2)), 0.5)
    return ops.div(ops.concat([first, inside, last], axis), spacing)


def trapz(y, x=None, dx=1.0, axis=-1):
    """The integral along an axis by trapezoids; x gives the places, else they are dx apart."""
    y = real(y)
    axis = axis_of(axis, y.ndim, "trapz")
    pairs = ops.mul(ops.add(_between(y, axis, 1, None), _between(y, axis, 0, -1)), 0.5)
    if x is None:
        return ops.reduce_sum(ops.mul(pairs, float(dx)), axis)
    widths = diff(real(x), axis=-1 if tensor(x).ndim == 1 else axis)
    if widths.ndim == 1:
        widths = ops.reshape(widths, [-1 if at == axis else 1 for at in builtins.range(y.ndim)])
    return ops.reduce_sum(ops.mul(pairs, widths), axis)


def interp(x, xp, fp, left=None, right=None):
    """The value at x of the line through the points (xp, fp), xp ascending; outside `left` and `right`."""
    x, xp, fp = real(x), real(xp), real(fp)
    if xp.ndim != 1 or xp.shape != fp.shape or xp.size == 0:
        raise ValueError(f"interp: xp and fp are one axis of one length, not {xp.shape} and {fp.shape}")
    last = xp.size - 1
    if last == 0:
        made = ops.broadcast_to(fp, x.shape) if x.ndim else fp[0]
    else:
        above = ops.clip(searchsorted(xp, x, "right"), 1, last)
        below = ops.sub(above, 1)
        x0, x1, y0, y1 = (
            ops.gather(each, at, 0) for each, at in ((xp, below), (xp, above), (fp, below), (fp, above))
        )
        made = ops.add(y0, ops.div(ops.mul(ops.sub(x, x0), ops.sub(y1, y0)), ops.sub(x1, x0)))
    made = ops.select(ops.less(x, xp[0]), tensor(fp[0] if left is None else left, made.dtype), made)
    return ops.select(
        ops.greater(x, xp[last]), tensor(fp[last] if right is None else right, made.dtype), made
    )


def unwrap(p, discont=3.141592653589793, axis=-1):
    """Angles without jumps of more than `discont`: a whole turn is added instead."""
    p = real(p)
    axis = axis_of(axis, p.ndim, "unwrap")
    steps = diff(p, axis=axis)
    folded = ops.sub(_remainder(ops.add(steps, math.pi), tensor(2 * math.pi, p.dtype)), math.pi)
    turned = ops.logical_and(ops.equal(folded, -math.pi), ops.greater(steps, 0))
    folded = ops.select(turned, tensor(math.pi, p.dtype), folded)
    added = ops.sub(folded, steps)
    added = ops.select(ops.less(ops.abs(steps), float(discont)), ops.zeros_like(added), added)
    rest = ops.add(_between(p, axis, 1, None), ops.cumsum(added, axis))
    return ops.concat([_between(p, axis, 0, 1), rest], axis)


def convolve(a, v, mode="full"):
    """The sums of products of `a` with `v` turned round and moved along it: 'full', 'same' or 'valid'."""
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"convolve: mode is 'full', 'same' or 'valid', not {mode!r}")
    a, v = same_dtype([tensor(a), tensor(v)])
    if a.ndim != 1 or v.ndim != 1 or not a.size or not v.size:
        raise ValueError(f"convolve: one axis with elements is needed, not {a.shape} and {v.shape}")
    if a.size < v.size:
        a, v = v, a
    size = v.size
    around_it = {"full": (size - 1, size - 1), "same": (size // 2, (size - 1) // 2), "valid": (0, 0)}[mode]
    padded = ops.pad(a, around_it) if size > 1 else a
    count = padded.size - size + 1
    windows = ops.stack([padded[at : at + count] for at in builtins.range(size)], 0)
    return cast(ops.reduce_sum(ops.mul(windows, ops.expand_dims(ops.flip(v, (0,)), 1)), 0), a.dtype)


def correlate(a, v, mode="valid"):
    """The sums of products of `a` with `v` moved along it: 'full', 'same' or 'valid'."""
    a, v = same_dtype([tensor(a), tensor(v)])
    made = convolve(a, ops.flip(v, (0,)), mode)
    return ops.flip(made, (0,)) if a.size < v.size and mode != "full" else made


# ---- Polynomials -------------------------------------------------------------------------------------------


def _same_length(a1, a2):
    a1, a2 = same_dtype([array_ops.atleast_1d(a1), array_ops.atleast_1d(a2)])
    size = builtins.max(a1.size, a2.size)
    return (ops.pad(each, (size - each.size, 0)) if each.size < size else each for each in (a1, a2))


def polyadd(a1, a2):
    """The sum of two polynomials, whose coefficients begin with the highest power."""
    return ops.add(*_same_length(a1, a2))


def polysub(a1, a2):
    """The difference of two polynomials, whose coefficients begin with the highest power."""
    return ops.sub(*_same_length(a1, a2))


def polymul(a1, a2):
    """The product of two polynomials, whose coefficients begin with the highest power."""
    return convolve(array_ops.atleast_1d(a1), array_ops.atleast_1d(a2))


def polyval(p, x):
    """The value of a polynomial at x; its coefficients begin with the highest power."""
    p, x = array_ops.atleast_1d(p), tensor(x)
    if p.ndim != 1:
        raise ValueError(f"polyval: coefficients have one axis, not {p.shape}")
    result = ops.zeros_like(x)
    for each in ops.unstack(p, 0):
        result = add(multiply(result, x), each)
    return result


def polyder(p, m=1):
    """The derivative of a polynomial, m times."""
    p = array_ops.atleast_1d(p)
    if not isinstance(m, int) or m < 0:
        raise ValueError(f"polyder: m is a whole number from 0, not {m!r}")
    for _ in builtins.range(m):
        if p.size == 1:
            return ops.zeros((1,), p.dtype)
        powers = ops.flip(ops.cast(ops.arange(1, p.size), p.dtype), (0,))
        p = ops.mul(p[:-1], powers)
    return p


def polyint(p, m=1, k=None):
    """The integral of a polynomial, m times, with the constants k, or 0."""
    p = array_ops.atleast_1d(real(p))
    if not isinstance(m, int) or m < 0:
        raise ValueError(f"polyint: m is a whole number from 0, not {m!r}")
    given = [0] if k is None else [k] if isinstance(k, int | float) else list(k)
    constants = given * m if len(given) == 1 else given
    for constant in constants[:m]:
        powers = ops.flip(ops.cast(ops.arange(1, p.size + 1), p.dtype), (0,))
        p = ops.concat([ops.div(p, powers), full((1,), constant, p.dtype)], 0)
    return p


__all__ = _shared.public(globals(), __name__)
