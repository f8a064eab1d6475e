"""Functions of mindspore.ops that the op rows name (muster/graph/ops), but for those that _math has."""

from mindspore.ops import _math
from muster import _core

_functions = {name: each for name, each in _core._mindspore_functions.items() if name not in _math.__all__}
globals().update(_functions)
__all__ = sorted(_functions)
