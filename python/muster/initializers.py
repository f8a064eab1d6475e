"""How parameters begin: numbers that depend on the seed and the name of the parameter, never on the rank."""

# ruff: noqa: N813 - they are classes, and read as functions
from muster._core import ConstantInitializer as constant
from muster._core import HeNormalInitializer as he_normal
from muster._core import HeUniformInitializer as he_uniform
from muster._core import IdentityInitializer as identity
from muster._core import NormalInitializer as normal
from muster._core import OneInitializer as ones
from muster._core import OrthogonalInitializer as orthogonal
from muster._core import TruncatedNormalInitializer as truncated_normal
from muster._core import UniformInitializer as uniform
from muster._core import XavierNormalInitializer as xavier_normal
from muster._core import XavierUniformInitializer as xavier_uniform
from muster._core import ZeroInitializer as zeros

__all__ = [
    "constant",
    "he_normal",
    "he_uniform",
    "identity",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]
