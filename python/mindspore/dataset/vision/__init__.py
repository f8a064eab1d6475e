"""mindspore.dataset.vision: operations on images."""

from muster.dataset import vision as _ours
from muster.dataset.vision import *  # noqa: F403 - what it lists

from mindspore import _names

__all__ = list(_ours.__all__)
__getattr__ = _names.missing(__name__)
