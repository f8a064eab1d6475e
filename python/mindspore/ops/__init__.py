"""mindspore.ops: the functions that mean the same in Muster, and value_and_grad."""

from muster.ops import bias_add, cast, equal, flatten, matmul, relu, reshape, tanh

from mindspore import _names
from mindspore._gradient import value_and_grad

__all__ = [
    "bias_add",
    "cast",
    "equal",
    "flatten",
    "matmul",
    "relu",
    "reshape",
    "tanh",
    "value_and_grad",
]
__getattr__ = _names.missing(__name__)
