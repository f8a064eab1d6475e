"""mindspore.common.initializer."""

from muster._core import ConstantInitializer as Constant
from muster._core import HeNormalInitializer as HeNormal
from muster._core import HeUniformInitializer as HeUniform
from muster._core import IdentityInitializer as Identity
from muster._core import Initializer, initializer
from muster._core import NormalInitializer as Normal
from muster._core import OneInitializer as One
from muster._core import OrthogonalInitializer as Orthogonal
from muster._core import TruncatedNormalInitializer as TruncatedNormal
from muster._core import UniformInitializer as Uniform
from muster._core import XavierNormalInitializer as XavierNormal
from muster._core import XavierUniformInitializer as XavierUniform
from muster._core import ZeroInitializer as Zero

from mindspore import _names

__all__ = [
    "Constant",
    "HeNormal",
    "HeUniform",
    "Identity",
    "Initializer",
    "Normal",
    "One",
    "Orthogonal",
    "TruncatedNormal",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
    "Zero",
    "initializer",
]
__getattr__ = _names.missing(__name__)
