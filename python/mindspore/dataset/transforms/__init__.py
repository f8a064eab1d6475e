"""mindspore.dataset.transforms: operations on any values."""

from muster.dataset.transforms import TypeCast

from mindspore import _names

__all__ = ["TypeCast"]
__getattr__ = _names.missing(__name__)
