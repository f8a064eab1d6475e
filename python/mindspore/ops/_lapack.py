"""mindspore.ops: what LAPACK computes of matrices: by numpy, in graphs too, most with gradients."""

import functools
import math

import muster
from mindspore.ops import _array, _host, _matrices, _numbers
from mindspore.ops._numbers import floating
from muster import ops


def _transposed(x):
    return ops.swapaxes(x, -1, -2)


def _function(name):
    """numpy.linalg's function of that name, or one of this file's for arrays."""
    import numpy

    return getattr(numpy.linalg, name)


def inverse(input):
    """The inverse of each matrix."""
    x = floating(input)
    return _host.with_gradient(
        "inverse",
        lambda a: _function("inv")(a),
        [x],
        [x.shape],
        lambda dy, y: ops.neg(ops.matmul(ops.matmul(_transposed(y), dy), _transposed(y))),
    )


def det(input):
    """The determinant of each matrix."""
    x = floating(input)

    def rule(dy, y):
        return ops.mul(ops.reshape(ops.mul(dy, y), (*y.shape, 1, 1)), _transposed(inverse(x)))

    return _host.with_gradient("det", lambda a: _function("det")(a), [x], [x.shape[:-2]], rule)


def in_float32(function):
    """The function of a tensor and more, computed in float32 where the tensor's dtype is float16."""

    @functools.wraps(function)
    def call(input, *others, **named):
        if not isinstance(input, muster.Tensor) or input.dtype is not muster.float16:
            return function(input, *others, **named)
        wide = [
            ops.cast(each, muster.float32)
            if isinstance(each, muster.Tensor) and each.dtype is muster.float16
            else each
            for each in (input, *others)
        ]
        made = function(*wide, **named)
        if isinstance(made, tuple):
            return tuple(ops.cast(each, muster.float16) for each in made)
        return ops.cast(made, muster.float16)

    return call


@in_float32
def slogdet(input):
    """(sign, log(|det|)) of each matrix."""
    x = floating(input)
    sign = ops.sign(ops.stop_gradient(det(x)))

    def rule(dy, y):
        return ops.mul(ops.reshape(dy, (*y.shape, 1, 1)), _transposed(inverse(x)))

    return sign, _host.with_gradient(
        "slogdet", lambda a: _function("slogdet")(a)[1], [x], [x.shape[:-2]], rule
    )


log_matrix_determinant = slogdet
matrix_determinant = det


def logdet(input):
    """log(det) of each matrix, NaN where det is below 0."""
    sign, size = slogdet(input)
    return ops.select(ops.less(sign, 0), ops.full_like(size, math.nan), size)


def matrix_solve(matrix, rhs, adjoint=False):
    """X with matrix X = rhs; of its transpose with `adjoint`."""
    return ops.matmul(inverse(_transposed(matrix) if adjoint else matrix), rhs)


def cholesky(input_x, upper=False):
    """L with L L^T = input_x, or its transpose with `upper`."""
    x = floating(input_x)

    def rule(dy, y):
        half = _array.tril(ops.matmul(_transposed(y), dy))
        half = ops.sub(half, ops.mul(_matrices.diag_embed(_matrices.diagonal(half, 0, -2, -1)), 0.5))
        back = inverse(y)
        middle = ops.matmul(ops.matmul(_transposed(back), half), back)
        return ops.mul(ops.add(middle, _transposed(middle)), 0.5)

    made = _host.with_gradient("cholesky", lambda a: _function("cholesky")(a), [x], [x.shape], rule)
    return _transposed(made) if upper else made


def cholesky_inverse(input_x, upper=False):
    """The inverse of the matrix whose Cholesky factor is given."""
    back = inverse(input_x)
    return ops.matmul(back, _transposed(back)) if upper else ops.matmul(_transposed(back), back)


def cholesky_solve(input, input2, upper=False):
    """X with A X = input, where input2 is the Cholesky factor of A; the other half of it is not read."""
    half = _array.triu(input2) if upper else _array.tril(input2)
    return ops.matmul(cholesky_inverse(half, upper), input)


def matrix_triangular_solve(matrix, rhs, lower=True, adjoint=False):
    """X with matrix X = rhs for a triangular matrix, of which the other half is not read."""
    half = _array.tril(matrix) if lower else _array.triu(matrix)
    return matrix_solve(half, rhs, adjoint)


def svd(input, full_matrices=False, compute_uv=True):
    """(s, u, v) with input = u diag(s) v^T, or s alone. The gradient is by s alone."""
    x = floating(input)
    rows, columns = x.shape[-2:]
    count, lead = min(rows, columns), x.shape[:-2]

    def parts(a):
        u, s, vh = _function("svd")(a, full_matrices=full_matrices)
        return s, u, vh.swapaxes(-1, -2)

    sizes = [
        (*lead, count),
        (*lead, rows, rows if full_matrices else count),
        (*lead, columns, columns if full_matrices else count),
    ]

    def rule(dy, y):
        left = ops.mul(y[1][..., :count], ops.expand_dims(dy[0], -2))
        return ops.matmul(left, _transposed(y[2][..., :count]))

    s, u, v = _host.with_gradient(("svd", full_matrices), parts, [x], sizes, rule)
    return (s, ops.stop_gradient(u), ops.stop_gradient(v)) if compute_uv else s


@in_float32
def qr(input, mode="reduced"):
    """(q, r) with input = q r, q orthogonal and r upper triangular; without a gradient."""
    x = floating(input)
    rows, columns = x.shape[-2:]
    count, lead = (rows if mode == "complete" else min(rows, columns)), x.shape[:-2]
    sizes = [(*lead, rows, count), (*lead, count, columns)]
    return _host.without_gradient(("qr", mode), lambda a: _function("qr")(a, mode), [x], sizes)


def matrix_power(input, n):
    """The product of n matrices, of their inverses for n below 0."""
    x = inverse(input) if n < 0 else input
    size = input.shape[-1]
    made = ops.broadcast_to(ops.cast(_array.eye(size), input.dtype), input.shape)
    for _ in range(abs(n)):
        made = ops.matmul(made, x)
    return made


def matrix_exp(input):
    """e^input of each matrix: scaled down by 2^s, a series of 18 terms, and squared s times."""
    steps = 8
    x = ops.div(input, float(2**steps))
    made = term = ops.broadcast_to(ops.cast(_array.eye(input.shape[-1]), input.dtype), input.shape)
    for k in range(1, 19):
        term = ops.div(ops.matmul(term, x), float(k))
        made = ops.add(made, term)
    for _ in range(steps):
        made = ops.matmul(made, made)
    return made


def pinv(x, *, atol=None, rtol=None, hermitian=False):
    """The pseudo-inverse of each matrix; without a gradient."""
    x = floating(x)
    sizes = [(*x.shape[:-2], x.shape[-1], x.shape[-2])]
    cut = rtol if rtol is not None else max(x.shape[-2:]) * 1.1920929e-07

    def made(a):
        return _function("pinv")(a, cut, hermitian=hermitian)

    return _host.without_gradient(("pinv", cut, hermitian), made, [x], sizes)


def matrix_norm(A, ord="fro", axis=(-2, -1), keepdims=False, *, dtype=None):  # noqa: N803
    """The norm of matrices: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf."""
    x = floating(A if dtype is None else ops.cast(A, dtype))
    rows, columns = (at % x.ndim for at in axis)
    if ord == "fro":
        return _numbers.vector_norm(x, 2, (rows, columns), keepdims)
    if ord in ("nuc", 2, -2):
        rest = [at for at in range(x.ndim) if at not in (rows, columns)]
        values = svd(ops.transpose(x, (*rest, rows, columns)), compute_uv=False)
        fold = {"nuc": ops.reduce_sum, 2: ops.reduce_max, -2: ops.reduce_min}[ord]
        made = fold(values, -1)
        kept = [1 if at in (rows, columns) else size for at, size in enumerate(x.shape)]
        return ops.reshape(made, kept) if keepdims else made
    if ord in (math.inf, -math.inf):
        rows, columns = columns, rows
    elif ord not in (1, -1):
        raise ValueError(f"matrix_norm: ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, not {ord!r}")
    sums = ops.reduce_sum(ops.abs(x), rows, True)
    made = (ops.reduce_max if ord > 0 else ops.reduce_min)(sums, columns, True)
    return made if keepdims else ops.squeeze(made, (rows, columns))


def cond(A, p=None):  # noqa: N803
    """The condition number: the norm of a matrix times that of its inverse."""
    if p is None or p in (2, -2):
        values = svd(A, compute_uv=False)
        most, least = ops.reduce_max(values, -1), ops.reduce_min(values, -1)
        return ops.div(least, most) if p == -2 else ops.div(most, least)
    return ops.mul(matrix_norm(A, p), matrix_norm(inverse(A), p))


def lstsq(input, A):  # noqa: N803
    """X with the least |input X - A|; without a gradient."""
    x, b = floating(input), floating(A)
    columns = ops.reshape(b, (-1, 1)) if b.ndim == 1 else b

    def made(a, c):
        return _function("lstsq")(a, c, rcond=None)[0].astype(a.dtype)

    return _host.without_gradient("lstsq", made, [x, columns], [(x.shape[1], columns.shape[1])])


def nuclear_norm(x, dim=None, keepdim=False):
    """The sum of the singular values."""
    return matrix_norm(x, "nuc", (0, 1) if dim is None else dim, keepdim)


def pdist(input, p=2.0):
    """The p-norms between the rows, each pair once."""
    rows = input.shape[-2]
    pairs = [(i, j) for i in range(rows) for j in range(i + 1, rows)]
    first, second = ([pair[k] for pair in pairs] for k in (0, 1))
    parts = [ops.gather(input, muster.Tensor(each, muster.int32), input.ndim - 2) for each in (first, second)]
    return _numbers.vector_norm(ops.sub(*parts), p, -1)


_OTHERS = ("floating",)
__all__ = [
    name
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_") and name not in _OTHERS
]
