"""mindspore.common.dtype: the dtypes that tensors have."""

from mindspore import _names
from muster import bfloat16, bool_, float32, float64, int8, int32, int64, uint8, uint32

__all__ = ["bfloat16", "bool_", "float32", "float64", "int8", "int32", "int64", "uint8", "uint32"]
__getattr__ = _names.missing(__name__)
