"""mindspore.dataset.vision.utils: an older path to the same names."""

from mindspore import _names
from mindspore.dataset.vision._enums import (
    AutoAugmentPolicy,
    Border,
    ConvertMode,
    ImageBatchFormat,
    ImageReadMode,
    Inter,
    SliceMode,
)

__all__ = [
    "AutoAugmentPolicy",
    "Border",
    "ConvertMode",
    "ImageBatchFormat",
    "ImageReadMode",
    "Inter",
    "SliceMode",
]
__getattr__ = _names.missing(__name__)
