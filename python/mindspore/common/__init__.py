"""mindspore.common: tensors, dtypes, seeds."""

from mindspore import _names
from mindspore.common import dtype, initializer, parameter
from mindspore.common.parameter import Parameter, ParameterTuple
from muster import Tensor, jit, set_seed

__all__ = ["Parameter", "ParameterTuple", "Tensor", "dtype", "initializer", "jit", "parameter", "set_seed"]
__getattr__ = _names.missing(__name__)
