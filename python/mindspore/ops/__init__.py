"""mindspore.ops: the functions and classes that mean the same in Muster."""

from mindspore import _names
from mindspore.ops import _functions, operations
from mindspore.ops import functional as functional
from mindspore.ops._functions import *  # noqa: F403
from mindspore.ops.operations import *  # noqa: F403

__all__ = sorted({"functional", "operations", *_functions.__all__, *operations.__all__})
__getattr__ = _names.missing(__name__)
