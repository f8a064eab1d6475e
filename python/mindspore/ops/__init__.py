"""mindspore.ops: the functions and classes that mean the same in Muster."""

from mindspore import _names
from mindspore.ops import _functions, composite, operations
from mindspore.ops import functional as functional
from mindspore.ops._functions import *  # noqa: F403
from mindspore.ops.composite import *  # noqa: F403
from mindspore.ops.operations import *  # noqa: F403

__all__ = sorted(
    {"composite", "functional", "operations", *_functions.__all__, *composite.__all__, *operations.__all__}
)
__getattr__ = _names.missing(__name__)
