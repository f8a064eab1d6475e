"""mindspore.common.initializer."""

from muster._core import Initializer, initializer
from muster._core import constant_initializer as Constant  # noqa: N812 - these are classes in MindSpore
from muster._core import he_uniform_initializer as HeUniform  # noqa: N812
from muster._core import normal_initializer as Normal  # noqa: N812
from muster._core import ones_initializer as One  # noqa: N812
from muster._core import uniform_initializer as Uniform  # noqa: N812
from muster._core import xavier_uniform_initializer as XavierUniform  # noqa: N812
from muster._core import zeros_initializer as Zero  # noqa: N812

from mindspore import _names

__all__ = [
    "Constant",
    "HeUniform",
    "Initializer",
    "Normal",
    "One",
    "Uniform",
    "XavierUniform",
    "Zero",
    "initializer",
]
__getattr__ = _names.missing(__name__)
