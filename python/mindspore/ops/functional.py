"""mindspore.ops.functional, often imported as F: the ops as functions."""

from mindspore import _names
from mindspore.ops import _functions, _later
from mindspore.ops._functions import *  # noqa: F403
from mindspore.ops.composite import partial as partial

__getattr__ = _later.of(_names.missing(__name__), [*_functions.__all__, "partial"])
