"""mindspore.common: tensors, dtypes, seeds."""

from mindspore import _names
from mindspore._misc import get_seed, set_seed
from mindspore.common import _texts as _texts
from mindspore.common import dtype, initializer, parameter
from mindspore.common.parameter import Parameter, ParameterTuple
from muster import Tensor, jit

__all__ = [
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "dtype",
    "get_seed",
    "initializer",
    "jit",
    "parameter",
    "set_seed",
]
__getattr__ = _names.missing(__name__)
