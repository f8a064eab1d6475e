"""mindspore.experimental: optimizers with groups of parameters."""

from mindspore import _names
from mindspore.experimental import optim

__all__ = ["optim"]
__getattr__ = _names.missing(__name__)
