"""mindspore.nn.probability.bijector: functions that make one distribution of another."""

from mindspore import _names
from mindspore.nn.probability.bijector._base import Bijector
from mindspore.nn.probability.bijector._functions import (
    Exp,
    GumbelCDF,
    Invert,
    PowerTransform,
    ScalarAffine,
    Softplus,
)

__all__ = ["Bijector", "Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus"]
__getattr__ = _names.missing(__name__)
