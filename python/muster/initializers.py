"""How parameters begin: numbers that depend on the seed and the name of the parameter, never on the rank."""

from muster._core import constant_initializer as constant
from muster._core import he_uniform_initializer as he_uniform
from muster._core import normal_initializer as normal
from muster._core import ones_initializer as ones
from muster._core import uniform_initializer as uniform
from muster._core import xavier_uniform_initializer as xavier_uniform
from muster._core import zeros_initializer as zeros

__all__ = ["constant", "he_uniform", "normal", "ones", "uniform", "xavier_uniform", "zeros"]
