"""mindspore.dataset.transforms: operations on any values."""

from muster.dataset.transforms import Compose, OneHot, TypeCast

from mindspore import _names

__all__ = ["Compose", "OneHot", "TypeCast"]
__getattr__ = _names.missing(__name__)
