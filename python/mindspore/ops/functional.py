"""mindspore.ops.functional, often imported as F: the ops as functions."""

from mindspore import _names
from mindspore.ops import _functions
from mindspore.ops._functions import *  # noqa: F403
from mindspore.ops.composite import partial

__all__ = [*_functions.__all__, "partial"]
__getattr__ = _names.missing(__name__)
