"""mindspore.dataset.transforms.py_transforms: an older path to the same names."""

from mindspore.dataset import transforms
from mindspore.dataset.transforms import *  # noqa: F403 - what it lists

__all__ = list(transforms.__all__)
