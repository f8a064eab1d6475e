"""mindspore.ops: factors of matrices as LAPACK keeps them, and the incomplete beta function, by numpy."""

import muster
from mindspore.ops import _host, _lapack
from mindspore.ops._numbers import floating
from mindspore.ops._primitive import class_keeper
from muster import ops

_made = {}
_class = class_keeper(_made)


def geqrf(input):
    """(the factor R with the Householder vectors below its diagonal, their factors tau): input = Q R."""
    x = floating(input)
    rows, columns = x.shape[-2:]

    def parts(a):
        import numpy

        packed, tau = numpy.linalg.qr(a, mode="raw")
        return packed.swapaxes(-1, -2), tau

    sizes = [x.shape, (*x.shape[:-2], min(rows, columns))]
    return _host.without_gradient("geqrf", parts, [x], sizes)


def _reflected(numpy, vectors, tau, start):
    """The product of the reflections I - tau v v^T, the first one leftmost, times the matrices `start`."""
    made = start
    rows = vectors.shape[-2]
    for at in reversed(range(tau.shape[-1])):
        v = numpy.where(numpy.arange(rows) > at, vectors[..., :, at], 0)
        v[..., at] = 1
        along = numpy.einsum("...r,...rc->...c", v, made)
        made = made - tau[..., at, None, None] * v[..., :, None] * along[..., None, :]
    return made


def orgqr(input, input2):
    """The first columns of Q, as many as input has, of the vectors and factors that geqrf gives."""
    x = floating(input)

    def parts(a, tau):
        import numpy

        start = numpy.broadcast_to(numpy.eye(*a.shape[-2:], dtype=a.dtype), a.shape)
        return _reflected(numpy, a, tau, start).astype(a.dtype)

    return _host.without_gradient("orgqr", parts, [x, input2], [x.shape])


def ormqr(input, tau, other, left=True, transpose=False):
    """Q other, of the vectors and factors that geqrf gives; other Q with left=False, Q^T with `transpose`."""
    x = floating(input)

    def parts(a, factors, b):
        import numpy

        size = a.shape[-2]
        whole = _reflected(
            numpy, a, factors, numpy.broadcast_to(numpy.eye(size), (*a.shape[:-2], size, size))
        )
        whole = whole.swapaxes(-1, -2) if transpose else whole
        return (whole @ b if left else b @ whole).astype(b.dtype)

    key = ("ormqr", left, transpose)
    return _host.without_gradient(key, parts, [x, tau, other], [other.shape])


def _permuted(numpy, pivots, rows):
    """The order in which exchanges of rows, counted from 1, bring them."""
    flat = pivots.reshape(-1, pivots.shape[-1])
    orders = numpy.tile(numpy.arange(rows), (len(flat), 1))
    for order, exchanges in zip(orders, flat, strict=True):
        for row, other in enumerate(exchanges - 1):
            order[[row, other]] = order[[other, row]]
    return orders.reshape(*pivots.shape[:-1], rows)


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):  # noqa: N803 - MindSpore's names
    """(P, L, U) of a packed factor and the exchanges of its rows, counted from 1: the matrix is P L U."""
    x = floating(LU_data)
    rows, columns = x.shape[-2:]
    count, lead = min(rows, columns), x.shape[:-2]

    def parts(a, pivots):  # kept for all shapes
        import numpy

        rows, count = a.shape[-2], min(a.shape[-2:])
        lower = numpy.tril(a[..., :count], -1) + numpy.eye(rows, count, dtype=a.dtype)
        order = _permuted(numpy, pivots, rows)
        exchanges = numpy.eye(rows, dtype=a.dtype)[order].swapaxes(-1, -2)
        return exchanges, lower, numpy.triu(a[..., :count, :])

    sizes = [(*lead, rows, rows), (*lead, rows, count), (*lead, count, columns)]
    made = _host.without_gradient("lu_unpack", parts, [x, LU_pivots], sizes, [x.dtype] * 3)
    return (made[0] if unpack_pivots else None), *(made[1:] if unpack_data else (None, None))


@_lapack.in_float32
def lu_solve(b, LU_data, LU_pivots):  # noqa: N803 - MindSpore's names
    """X with A X = b for an A whose packed factors and exchanges of rows, counted from 1, are given."""
    right = floating(b)

    def parts(c, a, pivots):
        import numpy

        rows = a.shape[-1]
        order = numpy.broadcast_to(_permuted(numpy, pivots, rows), (*a.shape[:-2], rows))
        lower = numpy.tril(a, -1) + numpy.eye(rows, dtype=a.dtype)
        moved = numpy.take_along_axis(c, order[..., :, None], -2)
        return numpy.linalg.solve(numpy.triu(a), numpy.linalg.solve(lower, moved)).astype(c.dtype)

    return _host.without_gradient("lu_solve", parts, [right, LU_data, LU_pivots], [right.shape])


@_class("Geqrf")
def _geqrf(x):
    """ops.geqrf."""
    return geqrf(x)


@_class("Ormqr", left=True, transpose=False)
def _ormqr(x, tau, other, left, transpose):
    """ops.ormqr."""
    return ormqr(x, tau, other, left, transpose)


@_class("Lstsq", fast=True, l2_regularizer=0.0)
def _lstsq(x, a, fast, l2_regularizer):
    """X with the least |x X - a|; a length of X counts with l2_regularizer where fast is set."""
    if fast and l2_regularizer:
        raise NotImplementedError("Lstsq(l2_regularizer=) other than 0 is not provided")
    return _lapack.lstsq(x, a)


# ---- The incomplete beta function --------------------------------------------------------------------------

_TERMS_MAX = 400
_TINY = 1e-300


def _fraction(numpy, a, b, x):
    """The continued fraction of the incomplete beta function, by Lentz's method."""

    def away(value):
        return numpy.where(numpy.abs(value) < _TINY, _TINY, value)

    c = numpy.ones_like(x)
    d = 1 / away(1 - (a + b) * x / (a + 1))
    made = d
    for m in range(1, _TERMS_MAX):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / away(1 + factor * d)
            c = away(1 + factor / c)
            made = made * d * c
        if numpy.nanmax(numpy.abs(d * c - 1), initial=0) < 1e-15:
            break
    return made


def _incomplete_beta(a, b, x):
    import math

    import numpy

    kind = numpy.result_type(a, b, x)
    a, b, x = numpy.broadcast_arrays(*(each.astype(numpy.float64) for each in (a, b, x)))
    log_gamma = numpy.vectorize(math.lgamma, otypes=[numpy.float64])
    with numpy.errstate(all="ignore"):
        turned = x > (a + 1) / (a + b + 2)
        p, q, y = numpy.where(turned, b, a), numpy.where(turned, a, b), numpy.where(turned, 1 - x, x)
        front = log_gamma(p + q) - log_gamma(p) - log_gamma(q) + p * numpy.log(y) + q * numpy.log1p(-y)
        part = numpy.exp(front) * _fraction(numpy, p, q, y) / p
        made = numpy.where(turned, 1 - part, part)
    made = numpy.where(x <= 0, 0.0, numpy.where(x >= 1, 1.0, made))
    return numpy.where((x < 0) | (x > 1) | (a <= 0) | (b <= 0), numpy.nan, made).astype(kind)


@_class("Betainc")
def _betainc(a, b, x):
    """The regularized incomplete beta function I_x(a, b), of tensors of one shape; without a gradient."""
    a, b, x = (floating(each) for each in (a, b, x))
    return _host.without_gradient("betainc", _incomplete_beta, [a, b, x], [x.shape])


# ---- Frequencies -------------------------------------------------------------------------------------------


def _frequencies(numbers, n, d, dtype):
    made = ops.div(ops.cast(numbers, muster.float32), float(n * d))
    return made if dtype is None else ops.cast(made, dtype)


def fftfreq(n, d=1.0, *, dtype=None):
    """The frequencies of a Fourier transform of n samples that are d apart: 0, 1, ..., -2, -1 over n d."""
    numbers = [at if at < (n + 1) // 2 else at - n for at in range(n)]
    return _frequencies(muster.Tensor(numbers, muster.float32), n, d, dtype)


def rfftfreq(n, d=1.0, *, dtype=None):
    """Those of a transform of real samples: 0, 1, ..., n / 2 over n d."""
    return _frequencies(ops.arange(n // 2 + 1), n, d, dtype)


def _rolled(input, dim, shift):
    dims = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    for at in dims:
        size = input.shape[at]
        order = muster.Tensor([(place - shift(size)) % size for place in range(size)], muster.int32)
        input = ops.gather(input, order, at % input.ndim)
    return input


def fftshift(input, dim=None):
    """The elements along the axes (all by default) moved so that the first one comes to the middle."""
    return _rolled(input, dim, lambda size: size // 2)


def ifftshift(input, dim=None):
    """What undoes fftshift."""
    return _rolled(input, dim, lambda size: -(size // 2))


globals().update(_made)
_NAMES = ("fftfreq", "fftshift", "ifftshift", "rfftfreq")
__all__ = [*_NAMES, "geqrf", "lu_solve", "lu_unpack", "orgqr", "ormqr", *sorted(_made)]
