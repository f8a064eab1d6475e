"""mindspore.dataset.vision.utils: an older path to the same names."""

from mindspore.dataset.vision import Border, Inter

__all__ = ["Border", "Inter"]
