"""mindspore.mint.special: special functions of numbers."""

from mindspore import _names
from mindspore.numpy._shared import cast
from muster import ops


def round(input, *, decimals=0):
    """Each element rounded to `decimals` digits behind the point, halves to the even number."""
    return input.round(decimals)


def log_softmax(input, dim=None, *, dtype=None):
    """The logarithm of softmax along an axis."""
    from mindspore.mint.nn.functional import _axis_of_softmax

    return ops.log_softmax(cast(input, dtype), _axis_of_softmax(input, dim))


_HOLDERS = dict.fromkeys(("erfc", "exp2", "expm1", "log1p", "sinc"), "mindspore.ops")
__all__ = sorted({"log_softmax", "round", *_HOLDERS})
__getattr__ = _names.missing(__name__, holders=_HOLDERS)
