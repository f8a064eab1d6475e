"""mindspore.dataset.transforms.c_transforms: an older path to the same names."""

from mindspore.dataset.transforms import Compose, OneHot, TypeCast

__all__ = ["Compose", "OneHot", "TypeCast"]
