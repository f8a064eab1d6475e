"""mindspore.nn.probability: distributions, and functions between them."""

from mindspore import _names
from mindspore.nn.probability import bijector, distribution

__all__ = ["bijector", "distribution"]
__getattr__ = _names.missing(__name__)
