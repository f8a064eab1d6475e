"""mindspore.ops.functional, often imported as F: the ops as functions."""

from mindspore import _names
from mindspore.ops import _functions
from mindspore.ops._functions import *  # noqa: F403

__all__ = list(_functions.__all__)
__getattr__ = _names.missing(__name__)
