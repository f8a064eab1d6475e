"""mindspore.scipy.linalg: factors of matrices and systems of equations, by numpy, in graphs too."""

import muster
from mindspore import _names
from mindspore.ops import _array, _host, _lapack, _places
from muster import ops

_TYPES = (muster.int32, muster.int64, muster.float32, muster.float64)


def _matrix(name, a, square=True, what="a"):
    """`a` as floats, float64 where it is of whole numbers."""
    if not isinstance(a, muster.Tensor):
        raise TypeError(f"{name}: {what} is a Tensor, not {type(a).__name__}")
    if a.dtype not in _TYPES:
        raise TypeError(f"{name}: {what} is int32, int64, float32 or float64, not {a.dtype}")
    if square and (a.ndim < 2 or a.shape[-1] != a.shape[-2]):
        raise ValueError(f"{name}: {what} is a square matrix, not of the shape {tuple(a.shape)}")
    return ops.cast(a, muster.float64) if a.dtype in _TYPES[:2] else a


def _bools(name, **settings):
    for each, value in settings.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name}: {each} is a bool, not {type(value).__name__}")


def _solved(name, a, b):
    """Raises unless `b` may stand at the right of equations of `a`."""
    if not isinstance(b, muster.Tensor):
        raise TypeError(f"{name}: b is a Tensor, not {type(b).__name__}")
    rows = b.shape[-1] if b.ndim == a.ndim - 1 else b.shape[-2] if b.ndim == a.ndim else None
    if rows != a.shape[-1]:
        raise ValueError(f"{name}: b {tuple(b.shape)} does not fit a {tuple(a.shape)}")


def _columns(a, b, solve):
    """solve(b), where a vector is one column."""
    if b.ndim == a.ndim:
        return solve(b)
    return ops.squeeze(solve(ops.expand_dims(b, -1)), -1)


def _turned(a):
    return ops.swapaxes(a, -1, -2)


_DIRECTIONS = {"N": 0, "T": 1, "C": 2, 0: 0, 1: 1, 2: 2}


def solve_triangular(
    a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, debug=None, check_finite=True
):
    """x with a x = b for a triangular a, whose other half is not read.

    Args:
        a: Square matrices (..., n, n).
        b: (..., n) or (..., n, k).
        trans: 0 or 'N'; 1, 2, 'T' or 'C': of the transposed a.
        lower: Whether a is its lower half.
        unit_diagonal: Whether its diagonal counts as 1.
        overwrite_b: Changes nothing.
        debug: Changes nothing.
        check_finite: Changes nothing.
    """
    if trans not in _DIRECTIONS:
        raise ValueError(f"solve_triangular: trans is 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")
    a = _matrix("solve_triangular", a)
    _solved("solve_triangular", a, b)
    half = _array.tril(a) if lower else _array.triu(a)
    if unit_diagonal:
        ones = ops.cast(_array.eye(a.shape[-1]), a.dtype)
        half = ops.add(ops.mul(half, ops.sub(1.0, ones)), ones)
    b = ops.cast(b, a.dtype)
    return _columns(a, b, lambda right: _lapack.matrix_solve(half, right, bool(_DIRECTIONS[trans])))


def block_diag(*arrs):
    """The matrix with the given ones along its diagonal, 0 elsewhere; a vector is one row."""
    if not arrs:
        return ops.zeros((1, 0), muster.float32)
    if any(each.ndim > 2 for each in arrs):
        raise ValueError("block_diag: the matrices have at most 2 axes")
    rows = [ops.reshape(each, (1, -1)) if each.ndim < 2 else each for each in arrs]
    width, left, made = sum(each.shape[1] for each in rows), 0, []
    for each in rows:
        made.append(ops.pad(each, (left, width - left - each.shape[1])))
        left += each.shape[1]
    return ops.concat(made, 0)


def inv(a, overwrite_a=False, check_finite=True):
    """The inverse of square matrices."""
    _bools("inv", overwrite_a=overwrite_a, check_finite=check_finite)
    return _lapack.inverse(_matrix("inv", a))


def det(a, overwrite_a=False, check_finite=True):
    """The determinant of square matrices."""
    _bools("det", overwrite_a=overwrite_a, check_finite=check_finite)
    return _lapack.det(_matrix("det", a))


def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    """The Cholesky factor U of a = U^T U, or with `lower` L of a = L L^T."""
    _bools("cholesky", lower=lower, overwrite_a=overwrite_a, check_finite=check_finite)
    return _lapack.cholesky(_matrix("cholesky", a), upper=not lower)


def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """(the factor of cholesky, lower), for cho_solve."""
    return cholesky(a, lower, overwrite_a, check_finite), lower


def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """x with a x = b, where cho_factor gave c_and_lower of a."""
    factor, lower = c_and_lower
    _bools("cho_solve", lower=lower, overwrite_b=overwrite_b, check_finite=check_finite)
    x = solve_triangular(factor, b, "N" if lower else "T", lower)
    return solve_triangular(factor, x, "T" if lower else "N", lower)


def eigh(
    a,
    b=None,
    lower=True,
    eigvals_only=False,
    overwrite_a=False,
    overwrite_b=False,
    turbo=True,
    eigvals=None,
    type=1,
    check_finite=True,
):
    """(the eigenvalues in ascending order, the eigenvectors as columns) of symmetric matrices.

    Args:
        a: Square matrices, of which one half is read.
        b: None: other problems are not provided.
        lower: Which half is read.
        eigvals_only: Whether the eigenvalues alone are given.
        overwrite_a: Changes nothing.
        overwrite_b: Changes nothing.
        turbo: Changes nothing.
        eigvals: None: all of them.
        type: Changes nothing.
        check_finite: Changes nothing.
    """
    _names.refuse("mindspore.scipy.linalg.eigh", b=(b, None), eigvals=(eigvals, None))
    _bools("eigh", lower=lower, eigvals_only=eigvals_only, overwrite_a=overwrite_a, check_finite=check_finite)
    x = _matrix("eigh", a)
    half = "L" if lower else "U"

    def parts(array):
        import numpy

        return tuple(numpy.linalg.eigh(array, half))

    values, vectors = _host.without_gradient(("eigh", half), parts, [x], [x.shape[:-1], x.shape])
    return values if eigvals_only else (values, vectors)


def _eliminated(array):
    """(the packed factors, the exchanges of rows from 0, the order of rows), by partial pivots."""
    import numpy

    packed = numpy.array(array)
    rows, columns = packed.shape[-2:]
    count = min(rows, columns)
    flat = packed.reshape(-1, rows, columns)
    pivots = numpy.zeros((len(flat), count), numpy.int32)
    orders = numpy.tile(numpy.arange(rows, dtype=numpy.int32), (len(flat), 1))
    for matrix, exchanges, order in zip(flat, pivots, orders, strict=True):
        for at in range(count):
            best = at + int(numpy.abs(matrix[at:, at]).argmax())
            exchanges[at] = best
            if best != at:
                matrix[[at, best]], order[[at, best]] = matrix[[best, at]], order[[best, at]]
            if matrix[at, at] != 0:
                matrix[at + 1 :, at] /= matrix[at, at]
                matrix[at + 1 :, at + 1 :] -= numpy.outer(matrix[at + 1 :, at], matrix[at, at + 1 :])
    lead = packed.shape[:-2]
    return packed, pivots.reshape(*lead, count), orders.reshape(*lead, rows)


def _factored(a):
    rows, columns = a.shape[-2:]
    sizes = [a.shape, (*a.shape[:-2], min(rows, columns)), (*a.shape[:-2], rows)]
    return _host.without_gradient("lu", _eliminated, [a], sizes, [a.dtype, muster.int32, muster.int32])


def lu_factor(a, overwrite_a=False, check_finite=True):
    """(the factors L and U in one matrix, the row that each row was exchanged with), for lu_solve."""
    _bools("lu_factor", overwrite_a=overwrite_a, check_finite=check_finite)
    return _factored(_matrix("lu_factor", a))[:2]


def lu(a, permute_l=False, overwrite_a=False, check_finite=True):
    """(p, l, u) with a = p l u, p in int32, or with `permute_l` (p l, u)."""
    _bools("lu", permute_l=permute_l, overwrite_a=overwrite_a, check_finite=check_finite)
    x = _matrix("lu", a, square=False)
    if x.ndim != 2 or x.shape[0] > x.shape[1]:
        raise ValueError(f"lu: a matrix with no more rows than columns is needed, not {tuple(a.shape)}")
    packed, _, order = _factored(x)
    rows = x.shape[0]
    eye = ops.cast(_array.eye(rows), x.dtype)
    lower = ops.add(_array.tril(packed[:, :rows], -1), eye)
    exchanges = ops.transpose(ops.gather(eye, order, 0), (1, 0))
    upper = _array.triu(packed)
    if permute_l:
        return ops.matmul(exchanges, lower), upper
    return ops.cast(exchanges, muster.int32), lower, upper


def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    """x with a x = b, with trans 1 or 2 of the transposed a, where lu_factor gave both of a."""
    packed, pivots = lu_and_piv
    _bools("lu_solve", overwrite_b=overwrite_b, check_finite=check_finite)
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans is 0, 1 or 2, not {trans!r}")
    packed = _matrix("lu_solve", packed, what="lu_matrix")
    _solved("lu_solve", packed, b)
    order = _host.without_gradient("order of rows", _order_of, [pivots], [pivots.shape], [muster.int32])
    b = ops.cast(b, packed.dtype)
    if trans == 0:
        x = ops.gather(b, order, 0)
        x = solve_triangular(packed, x, 0, True, True)
        return solve_triangular(packed, x, 0, False)
    x = solve_triangular(packed, b, 1, False)
    x = solve_triangular(packed, x, 1, True, True)
    return ops.gather(x, _places.argsort(order), 0)


def _order_of(pivots):
    import numpy

    order = numpy.arange(len(pivots), dtype=numpy.int32)
    for row, other in enumerate(pivots):
        order[[row, other]] = order[[other, row]]
    return order


def lstsq(A, B, rcond=None, driver=None):  # noqa: N803 - MindSpore's names
    """(X with the least |A X - B|, the sums of squares that are left, the rank of A, its singular values).

    Args:
        A: (m, n).
        B: (m,) or (m, k).
        rcond: Singular values below this part of the greatest one count as 0.
        driver: Which function of LAPACK; changes nothing.
    """
    import numpy

    found = numpy.linalg.lstsq(_places.eager("lstsq", A), _places.eager("lstsq", B), rcond)
    kind = numpy.asarray(found[0]).dtype
    return tuple(
        muster.Tensor(numpy.asarray(each, numpy.int64 if at == 2 else kind)) for at, each in enumerate(found)
    )


__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "eigh",
    "inv",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "solve_triangular",
]
__getattr__ = _names.missing(__name__)
