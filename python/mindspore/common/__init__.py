"""mindspore.common: tensors, dtypes, seeds."""

from mindspore import _names
from mindspore.common import dtype, initializer
from muster import Parameter, Tensor, jit, set_seed

__all__ = ["Parameter", "Tensor", "dtype", "initializer", "jit", "set_seed"]
__getattr__ = _names.missing(__name__)
