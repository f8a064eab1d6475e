"""mindspore.dataset.transforms.py_transforms: an older path to the same names."""

from mindspore.dataset import transforms

__all__ = list(transforms.__all__)


def __getattr__(name: str):
    return getattr(transforms, name)
