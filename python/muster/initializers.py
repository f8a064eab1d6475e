"""How parameters begin: numbers that depend on the seed and the name of the parameter, never on the rank."""

# ruff: noqa: N813 - they are classes, and read as functions
from muster._core import ConstantInitializer as constant
from muster._core import DiracInitializer as dirac
from muster._core import HeNormalInitializer as he_normal
from muster._core import HeUniformInitializer as he_uniform
from muster._core import IdentityInitializer as identity
from muster._core import NormalInitializer as normal
from muster._core import OneInitializer as ones
from muster._core import OrthogonalInitializer as orthogonal
from muster._core import SparseInitializer as sparse
from muster._core import TruncatedNormalInitializer as truncated_normal
from muster._core import UniformInitializer as uniform
from muster._core import VarianceScalingInitializer as variance_scaling
from muster._core import XavierNormalInitializer as xavier_normal
from muster._core import XavierUniformInitializer as xavier_uniform
from muster._core import ZeroInitializer as zeros

__all__ = [
    "constant",
    "dirac",
    "he_normal",
    "he_uniform",
    "identity",
    "normal",
    "ones",
    "orthogonal",
    "sparse",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]
