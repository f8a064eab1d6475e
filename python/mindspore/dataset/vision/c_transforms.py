"""mindspore.dataset.vision.c_transforms: an older path to the same names."""

from mindspore.dataset import vision
from mindspore.dataset.vision import *  # noqa: F403 - what it lists

__all__ = list(vision.__all__)
