"""mindspore.ops: the functions and classes that mean the same in Muster."""

from mindspore import _names
from mindspore._jit import _primexpr as _primexpr
from mindspore._jit import constexpr as constexpr
from mindspore.ops import _functions, _later, composite, operations
from mindspore.ops import functional as functional
from mindspore.ops._functions import *  # noqa: F403
from mindspore.ops.composite import *  # noqa: F403
from muster import _signatures

# Not by `import *`, which would ask for all of its names and load those that wait.
globals().update((name, getattr(operations, name)) for name in operations._own)
_own = [
    "composite",
    "constexpr",
    "functional",
    "operations",
    *_functions.__all__,
    *composite.__all__,
    *operations._own,
]
for _name in _own:
    if type(globals()[_name]).__name__ == "nb_func":
        globals()[_name] = _signatures.python_function(globals()[_name])
        if _name in vars(functional):
            setattr(functional, _name, globals()[_name])
__getattr__ = _later.of(_names.missing(__name__), _own)
