"""mindspore.nn.probability: distributions."""

from mindspore import _names
from mindspore.nn.probability import distribution

__all__ = ["distribution"]
__getattr__ = _names.missing(__name__)
