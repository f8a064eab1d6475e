"""mindspore.common: tensors, dtypes, seeds."""

import sys

from mindspore import _jit, _names
from mindspore._jit import JitConfig, jit, jit_class, lazy_inline, mutable
from mindspore._misc import _no_grad as _no_grad
from mindspore._misc import _pynative_executor as _pynative_executor
from mindspore._misc import get_seed, set_seed
from mindspore.common import _texts as _texts
from mindspore.common import dtype, initializer, parameter
from mindspore.common._executor import _cell_graph_executor as _cell_graph_executor
from mindspore.common.parameter import Parameter, ParameterTuple
from muster import Tensor, recompute

# Paths that end like a function here, which it stays when they are imported.
sys.modules[f"{__name__}.lazy_inline"] = sys.modules[f"{__name__}.mutable"] = _jit

__all__ = [
    "JitConfig",
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "dtype",
    "get_seed",
    "initializer",
    "jit",
    "jit_class",
    "lazy_inline",
    "mutable",
    "parameter",
    "recompute",
    "set_seed",
]
__getattr__ = _names.missing(
    __name__,
    holders={
        **dict.fromkeys(("load_mindir", "save_mindir"), "mindspore.train._mindir._cells"),
        "Symbol": "mindspore._symbol",
        "_Function": "mindspore.common._grad_function",
    },
)
