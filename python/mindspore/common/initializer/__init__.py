"""mindspore.common.initializer."""

import math

from muster._core import ConstantInitializer as Constant
from muster._core import DiracInitializer as Dirac
from muster._core import HeNormalInitializer as HeNormal
from muster._core import HeUniformInitializer as HeUniform
from muster._core import IdentityInitializer as Identity
from muster._core import Initializer, initializer
from muster._core import NormalInitializer as Normal
from muster._core import OneInitializer as One
from muster._core import OrthogonalInitializer as Orthogonal
from muster._core import SparseInitializer as Sparse
from muster._core import TruncatedNormalInitializer as TruncatedNormal
from muster._core import UniformInitializer as Uniform
from muster._core import VarianceScalingInitializer as VarianceScaling
from muster._core import XavierNormalInitializer as XavierNormal
from muster._core import XavierUniformInitializer as XavierUniform
from muster._core import ZeroInitializer as Zero

from mindspore import _names

# ---- What initializers of one's own take from MindSpore's --------------------------------------------------


def _assignment(arr, num):
    """`arr`, every element of it set to `num`, a number or an array."""
    arr[...] = num
    return arr


def _calculate_fan_in_and_fan_out(shape):
    """(fan_in, fan_out) of a weight (out, in, ...): channels times the elements of the kernel."""
    if len(shape) < 2:
        raise ValueError(
            "'fan_in' and 'fan_out' can not be computed for tensor with fewer than 2 dimensions, but got "
            f"dimensions {len(shape)}."
        )
    area = math.prod(shape[2:])
    return shape[1] * area, shape[0] * area


def _calculate_correct_fan(shape, mode):
    """The one of both that `mode` names, 'fan_in' or 'fan_out'."""
    modes = ("fan_in", "fan_out")
    if mode.lower() not in modes:
        raise ValueError(f"'mode' {mode} not supported, please use one of {list(modes)}")
    return _calculate_fan_in_and_fan_out(shape)[modes.index(mode.lower())]


_GAINS = {"sigmoid": 1, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "linear": 1}
_GAINS.update(dict.fromkeys([f"conv{part}{n}d" for part in ("", "_transpose") for n in (1, 2, 3)], 1))


def _calculate_gain(nonlinearity, param=None):
    """How much wider weights begin before `nonlinearity`; `param`: the slope of 'leaky_relu', 0.01."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"For 'HeUniform', 'negative_slope' {param} is not a valid number.")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(
            "For 'HeUniform', the argument 'nonlinearity' should be one of ['sigmoid', 'tanh', 'relu' or "
            f"'leaky_relu'], but got {nonlinearity}."
        )
    return _GAINS[nonlinearity]


__all__ = [
    "Constant",
    "Dirac",
    "HeNormal",
    "HeUniform",
    "Identity",
    "Initializer",
    "Normal",
    "One",
    "Orthogonal",
    "Sparse",
    "TruncatedNormal",
    "Uniform",
    "VarianceScaling",
    "XavierNormal",
    "XavierUniform",
    "Zero",
    "initializer",
]
__getattr__ = _names.missing(__name__)
