"""mindspore.dataset.vision.py_transforms: an older path to the same names."""

from mindspore.dataset import vision

__all__ = list(vision.__all__)


def __getattr__(name: str):
    return getattr(vision, name)
