"""mindspore.mint.optim: optimizers with groups of parameters."""

from mindspore import _names
from mindspore.experimental.optim import SGD, Adam, AdamW

__all__ = ["SGD", "Adam", "AdamW"]
__getattr__ = _names.missing(__name__)
__path__: list = []  # MindSpore has it as a package: more paths to these names
