"""mindspore.ops: the functions and classes that mean the same in Muster."""

from mindspore import _names
from mindspore._jit import _primexpr as _primexpr
from mindspore._jit import constexpr as constexpr
from mindspore.ops import _functions, composite, operations
from mindspore.ops import functional as functional
from mindspore.ops._functions import *  # noqa: F403
from mindspore.ops.composite import *  # noqa: F403
from mindspore.ops.operations import *  # noqa: F403
from muster import _signatures

__all__ = sorted(
    {
        "composite",
        "constexpr",
        "functional",
        "operations",
        *_functions.__all__,
        *composite.__all__,
        *operations.__all__,
    }
)
for _name in __all__:
    if type(globals()[_name]).__name__ == "nb_func":
        globals()[_name] = _signatures.python_function(globals()[_name])
__getattr__ = _names.missing(__name__)
