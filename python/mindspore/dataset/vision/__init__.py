"""mindspore.dataset.vision: operations on images."""

from muster.dataset.vision import HWC2CHW, Normalize, Rescale

from mindspore import _names

__all__ = ["HWC2CHW", "Normalize", "Rescale"]
__getattr__ = _names.missing(__name__)
