"""mindspore.dataset.transforms: operations on any values."""

from muster.dataset import transforms as _ours
from muster.dataset.transforms import *  # noqa: F403 - what it lists

from mindspore import _names

__all__ = list(_ours.__all__)
__getattr__ = _names.missing(__name__)
