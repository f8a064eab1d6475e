"""Functions of mindspore.ops that the op rows name (muster/graph/ops), but for those that _math has."""

from mindspore.ops import _math
from muster import _core

_IN_NAMED = ("stop_gradient",)  # _named has them
_functions = {
    name: each
    for name, each in _core._mindspore_functions.items()
    if name not in (*_math.__all__, *_IN_NAMED)
}
globals().update(_functions)
__all__ = sorted(_functions)
