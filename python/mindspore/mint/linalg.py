"""mindspore.mint.linalg: functions of matrices."""

from mindspore import _names
from mindspore import ops as named
from mindspore.numpy import _products
from mindspore.numpy._shared import axes_of, cast


def inv(input):
    """The inverse of square matrices."""
    return named.inverse(input)


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The norm of vectors over the axes, of all elements by default."""
    x = cast(x, dtype)
    return _products._vector_norm(x, ord, axes_of(dim, x.ndim, "vector_norm"), keepdim)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):  # noqa: N803
    """The norm of matrices in two axes."""
    return named.matrix_norm(A, ord, dim, keepdim, dtype=dtype)


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):  # noqa: N803
    """The norm of vectors or matrices; without `ord` and `dim` the root of the sum of squares of all."""
    return named.norm(A, ord, dim, keepdim, dtype=dtype)


def qr(A, mode="reduced"):  # noqa: N803
    """(Q, R) with Q R = A, Q of orthogonal columns and R an upper triangle."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode is 'reduced' or 'complete', not {mode!r}")
    return named.qr(A, mode)


__all__ = ["inv", "matrix_norm", "norm", "qr", "vector_norm"]
__getattr__ = _names.missing(__name__)
