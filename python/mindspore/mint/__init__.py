"""mindspore.mint: functions with the arguments of PyTorch's, as MindSpore 2.7.0 has them."""

from mindspore import _names
from mindspore.mint import _functions, _random
from mindspore.mint._functions import *  # noqa: F403
from mindspore.mint._random import *  # noqa: F403
from mindspore.ops import _inputs

# Functions of mindspore.ops that take the same arguments.
_OF_OPS = """
    abs acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh
    bincount bitwise_and bitwise_not bitwise_or bitwise_xor broadcast_to ceil clamp clip cos cosh cross
    div divide einsum eq erf erfc erfinv exp exp2 expm1 eye float_power floor floor_divide fmod gcd ge
    greater greater_equal gt isclose isfinite isinf isneginf le lerp less less_equal log log10 log1p
    log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logsumexp lt masked_select
    matmul maximum minimum mm mul nan_to_num ne neg negative not_equal outer pow ravel
    reciprocal remainder reshape rsqrt searchsorted sigmoid sign sin sinc sinh square t tan tanh
    tril triu trunc unbind unique_consecutive unsqueeze xlogy
"""
_HOLDERS = dict.fromkeys(_OF_OPS.split(), "mindspore.ops")
_own = sorted({*_functions.__all__, *_random.__all__})
globals().update((_name, _inputs.watch(__name__, _name, globals()[_name])) for _name in _own)
__all__ = sorted({*_own, *_HOLDERS})
# Beside its own the file of MindSpore has what it imports.
_IMPORTED = {"Tensor": "mindspore", "functional": "mindspore.mint.nn"}
__getattr__ = _names.missing(
    __name__,
    later=("distributed", "linalg", "nn", "optim", "special"),
    holders={**_HOLDERS, **_IMPORTED},
)
